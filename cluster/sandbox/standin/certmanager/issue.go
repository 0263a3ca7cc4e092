package certmanager

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sign issues a Certificate and writes its Secret.
func (p *Player) sign(ctx context.Context, c *certificate, secret *corev1.Secret, gone bool) error {
	by, err := p.find(ctx, c)
	if err != nil {
		return err
	}
	r := request{
		name: c.Spec.CommonName, dns: c.Spec.DNSNames, ips: c.Spec.IPAddresses, isCA: c.Spec.IsCA, usages: c.Spec.Usages,
		from: time.Now(), algorithm: c.Spec.PrivateKey.Algorithm, size: c.Spec.PrivateKey.Size,
		encoding: c.Spec.PrivateKey.Encoding,
	}
	r.until = r.from.Add(c.duration())
	if gone {
		r.until = time.Now().Add(-time.Hour)
		r.from = r.until.Add(-c.duration())
	}
	if c.Spec.PrivateKey.Rotation == "Never" && secret != nil {
		if held, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err == nil {
			if fault := c.keyDiffers(held.key); fault != "" { // upstream waits until the user changes the key
				return fmt.Errorf("the key must not be replaced, and differs in %s", fault)
			}
			r.key = held.key
		}
	}
	switch {
	case by.Spec.CA != nil:
		if r.by, err = p.authority(ctx, by); err != nil {
			return err
		}
	case by.Spec.SelfSigned == nil:
		return errors.New(notPlayed + "only issuers of the kinds selfSigned and ca are supported")
	}
	made, err := r.sign()
	if err != nil {
		return err
	}
	return p.put(ctx, c, secret, made)
}

// put writes the Secret and keeps its other keys (pkg/controller/certificates/issuing/internal/secret.go).
func (p *Player) put(ctx context.Context, c *certificate, secret *corev1.Secret, made *pair) error {
	was := secret
	if secret == nil {
		secret = &corev1.Secret{Type: corev1.SecretTypeTLS}
		secret.Name, secret.Namespace = c.Spec.SecretName, c.Namespace
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	ref := c.Spec.IssuerRef
	maps.Copy(secret.Annotations, c.Spec.Template.Annotations)
	maps.Copy(secret.Annotations, map[string]string{
		nameAnnotation: c.Name, "cert-manager.io/issuer-name": ref.Name, "cert-manager.io/issuer-kind": kindOr(ref.Kind),
		"cert-manager.io/issuer-group": ref.Group, "cert-manager.io/common-name": c.Spec.CommonName,
		"cert-manager.io/alt-names": strings.Join(c.Spec.DNSNames, ","),
		"cert-manager.io/ip-sans":   strings.Join(c.Spec.IPAddresses, ","),
		"cert-manager.io/uri-sans":  "",
	})
	maps.Copy(secret.Labels, c.Spec.Template.Labels)
	maps.Copy(secret.Labels, map[string]string{"controller.cert-manager.io/fao": "true"})
	maps.Copy(
		secret.Data,
		map[string][]byte{corev1.TLSCertKey: made.certPEM, corev1.TLSPrivateKeyKey: made.keyPEM, "ca.crt": made.caPEM},
	)
	var err error
	if was == nil {
		_, err = p.client.CoreV1().Secrets(c.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: manager})
	} else {
		_, err = p.client.CoreV1().Secrets(c.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: manager})
	}
	return err
}

// stands sets the condition Ready and copies the validity of the certificate to the status.
func (p *Player) stands(ctx context.Context, c *certificate, cert *x509.Certificate) error {
	ready := condition{
		Type: "Ready", Status: "True", Reason: "Ready", Message: "Certificate is up to date and has not expired",
		ObservedGeneration: c.Generation,
	}
	if time.Now().After(cert.NotAfter) {
		ready.Status, ready.Reason, ready.Message = "False", "Expired", fmt.Sprintf(
			"Certificate expired on %s", cert.NotAfter.Format(time.RFC1123),
		)
	}
	all := slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(c condition) bool { return c.Type == "Issuing" })
	now, _ := with(all, ready)
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return p.status(ctx, certificates, c.Namespace, c.Name, func(status map[string]any) {
		if status["notAfter"] != stamp(cert.NotAfter) {
			status["revision"] = c.Status.Revision + 1
		}
		status["conditions"] = plain(now)
		status["notBefore"], status["notAfter"] = stamp(cert.NotBefore), stamp(cert.NotAfter)
		status["renewalTime"] = stamp(c.renewal(cert))
	})
}

// notReady sets the conditions of a Certificate that is not issued, with upstream's messages. The messages do not
// contain errors from the issuer, because upstream writes these errors only to the CertificateRequest
// (pkg/controller/certificates/readiness/readiness_controller.go and trigger/trigger_controller.go).
func (p *Player) notReady(ctx context.Context, c *certificate, reason, why string, issuing bool) error {
	now, changed := with(
		c.Status.Conditions,
		condition{Type: "Ready", Status: "False", Reason: reason, Message: why, ObservedGeneration: c.Generation},
	)
	if issuing {
		var also bool
		now, also = with(
			now, condition{Type: "Issuing", Status: "True", Reason: reason, Message: why, ObservedGeneration: c.Generation},
		)
		changed = changed || also
	}
	if !changed {
		return nil
	}
	return p.status(
		ctx, certificates, c.Namespace, c.Name, func(status map[string]any) { status["conditions"] = plain(now) },
	)
}
