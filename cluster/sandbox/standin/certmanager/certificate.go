package certmanager

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	lifetime  = 90 * 24 * time.Hour // upstream's default
	notPlayed = "stand-in: "        // begins an error that upstream has not
)

// certificate is a Certificate, as far as it is played.
type certificate struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CommonName  string           `json:"commonName"`
		DNSNames    []string         `json:"dnsNames"`
		IPAddresses []string         `json:"ipAddresses"`
		Duration    *metav1.Duration `json:"duration"`
		RenewBefore *metav1.Duration `json:"renewBefore"`
		Usages      []string         `json:"usages"`
		IsCA        bool             `json:"isCA"`
		SecretName  string           `json:"secretName"`
		Template    struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"secretTemplate"`
		PrivateKey struct {
			Algorithm string `json:"algorithm"`
			Size      int    `json:"size"`
			Rotation  string `json:"rotationPolicy"`
			Encoding  string `json:"encoding"`
		} `json:"privateKey"`
		IssuerRef struct {
			Name  string `json:"name"`
			Kind  string `json:"kind"`
			Group string `json:"group"`
		} `json:"issuerRef"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
		Revision   int64       `json:"revision"`
	} `json:"status"`
}

func (c *certificate) duration() time.Duration {
	if c.Spec.Duration != nil {
		return c.Spec.Duration.Duration
	}
	return lifetime
}

// renewal is when a certificate that is valid so long is signed again.
func (c *certificate) renewal(cert *x509.Certificate) time.Time {
	before := cert.NotAfter.Sub(cert.NotBefore) / 3
	if c.Spec.RenewBefore != nil {
		before = c.Spec.RenewBefore.Duration
	}
	return cert.NotAfter.Add(-before)
}

// keep sees to it that a Certificate's Secret holds what it asks for.
func (p *Player) keep(ctx context.Context, c *certificate) error {
	secret, err := p.client.CoreV1().Secrets(c.Namespace).Get(ctx, c.Spec.SecretName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		secret = nil
	}
	gone := p.expired[c.Namespace+"/"+c.Name]
	reason, why, has := c.wants(secret, time.Now(), gone)
	if reason == "" {
		return p.stands(ctx, c, has)
	}
	if gone && reason != "Expired" { // somebody has asked for it
		delete(p.expired, c.Namespace+"/"+c.Name)
		gone = false
	}
	if err := p.sign(ctx, c, secret, gone); err != nil {
		return p.waits(ctx, c, reason, why+": "+err.Error()) // what is wrong is the Certificate's to say
	}
	if reason == "ManuallyTriggered" { // it is done
		return p.status(ctx, certificates, c.Namespace, c.Name, func(status map[string]any) {
			status["conditions"] = plain(slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(c condition) bool { return c.Type == "Issuing" }))
		})
	}
	return nil // the next look says that it stands
}

// wants returns why a Certificate has to be signed, as upstream names it; "" is
// not at all.
func (c *certificate) wants(secret *corev1.Secret, now time.Time, gone bool) (reason, why string, has *x509.Certificate) {
	if secret == nil {
		return "DoesNotExist", "Issuing certificate as Secret does not exist", nil
	}
	held, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return "InvalidKeyPair", "Issuing certificate as Secret contains an invalid key-pair: " + err.Error(), nil
	}
	ref := c.Spec.IssuerRef
	if secret.Annotations["cert-manager.io/issuer-name"] != ref.Name || secret.Annotations["cert-manager.io/issuer-kind"] != kindOr(ref.Kind) {
		return "IncorrectIssuer", "Issuing certificate as Secret was previously issued by another issuer", nil
	}
	if fault := c.differs(held.cert); fault != "" {
		return "RequestChanged", "Fields on existing CertificateRequest resource not up to date: [" + fault + "]", nil
	}
	switch {
	case asked(c.Status.Conditions):
		return "ManuallyTriggered", "Certificate re-issuance manually triggered", nil
	case gone && now.Before(held.cert.NotAfter):
		return "Expired", "stand-in: it is made to have run out", nil
	case gone:
		return "", "", held.cert
	case now.After(c.renewal(held.cert)):
		return "Renewing", fmt.Sprintf("Renewing certificate as renewal was scheduled at %s", c.renewal(held.cert)), nil
	case held.cert.NotAfter.Sub(held.cert.NotBefore).Round(time.Hour) != c.duration().Round(time.Hour):
		return "RequestChanged", "Fields on existing CertificateRequest resource not up to date: [spec.duration]", nil
	}
	return "", "", held.cert
}

// differs names a field in which a certificate is not what is asked for.
func (c *certificate) differs(cert *x509.Certificate) string {
	var ips []string
	for _, ip := range cert.IPAddresses {
		ips = append(ips, ip.String())
	}
	var asked []string
	for _, text := range c.Spec.IPAddresses {
		asked = append(asked, net.ParseIP(text).String())
	}
	switch {
	case cert.Subject.CommonName != c.Spec.CommonName:
		return "spec.commonName"
	case !same(cert.DNSNames, c.Spec.DNSNames):
		return "spec.dnsNames"
	case !same(ips, asked):
		return "spec.ipAddresses"
	case cert.IsCA != c.Spec.IsCA:
		return "spec.isCA"
	}
	return ""
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// asked tells whether somebody wants it signed again, as `cmctl renew` does.
func asked(all []condition) bool {
	return slices.ContainsFunc(all, func(c condition) bool {
		return c.Type == "Issuing" && c.Status == "True" && c.Reason == "ManuallyTriggered"
	})
}

// sign signs a Certificate and puts it into its Secret.
func (p *Player) sign(ctx context.Context, c *certificate, secret *corev1.Secret, gone bool) error {
	by, err := p.find(ctx, c)
	if err != nil {
		return err
	}
	r := request{
		name: c.Spec.CommonName, dns: c.Spec.DNSNames, ips: c.Spec.IPAddresses, isCA: c.Spec.IsCA, usages: c.Spec.Usages,
		from: time.Now(), algorithm: c.Spec.PrivateKey.Algorithm, size: c.Spec.PrivateKey.Size, encoding: c.Spec.PrivateKey.Encoding,
	}
	r.until = r.from.Add(c.duration())
	if gone {
		r.until = time.Now().Add(-time.Hour)
		r.from = r.until.Add(-c.duration())
	}
	if c.Spec.PrivateKey.Rotation == "Never" && secret != nil {
		if held, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err == nil {
			r.key = held.key
		}
	}
	switch {
	case by.Spec.CA != nil:
		if r.by, err = p.authority(ctx, by); err != nil {
			return err
		}
	case by.Spec.SelfSigned == nil:
		return errors.New("stand-in: only issuers of the kinds selfSigned and ca are played")
	}
	made, err := r.sign()
	if err != nil {
		return err
	}
	return p.put(ctx, c, secret, made)
}

// put writes the Secret.
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
	ref := c.Spec.IssuerRef
	maps.Copy(secret.Annotations, map[string]string{
		"cert-manager.io/certificate-name": c.Name, "cert-manager.io/issuer-name": ref.Name, "cert-manager.io/issuer-kind": kindOr(ref.Kind),
		"cert-manager.io/issuer-group": ref.Group, "cert-manager.io/common-name": c.Spec.CommonName,
		"cert-manager.io/alt-names": strings.Join(c.Spec.DNSNames, ","), "cert-manager.io/ip-sans": strings.Join(c.Spec.IPAddresses, ","),
	})
	maps.Copy(secret.Annotations, c.Spec.Template.Annotations)
	maps.Copy(secret.Labels, map[string]string{"controller.cert-manager.io/fao": "true"})
	maps.Copy(secret.Labels, c.Spec.Template.Labels)
	secret.Data = map[string][]byte{corev1.TLSCertKey: made.certPEM, corev1.TLSPrivateKeyKey: made.keyPEM, "ca.crt": made.caPEM}
	var err error
	if was == nil {
		_, err = p.client.CoreV1().Secrets(c.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: manager})
	} else {
		_, err = p.client.CoreV1().Secrets(c.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: manager})
	}
	return err
}

// stands says that a Certificate is what its Secret holds.
func (p *Player) stands(ctx context.Context, c *certificate, cert *x509.Certificate) error {
	ready := condition{Type: "Ready", Status: "True", Reason: "Ready", Message: "Certificate is up to date and has not expired", ObservedGeneration: c.Generation}
	if time.Now().After(cert.NotAfter) {
		ready.Status, ready.Reason, ready.Message = "False", "Expired", fmt.Sprintf("Certificate expired on %s", cert.NotAfter.Format(time.RFC1123))
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

// waits says why a Certificate is not signed.
func (p *Player) waits(ctx context.Context, c *certificate, reason, why string) error {
	now, changed := with(c.Status.Conditions, condition{Type: "Ready", Status: "False", Reason: reason, Message: why, ObservedGeneration: c.Generation})
	now, also := with(now, condition{Type: "Issuing", Status: "True", Reason: reason, Message: why, ObservedGeneration: c.Generation})
	if !changed && !also {
		return nil
	}
	return p.status(ctx, certificates, c.Namespace, c.Name, func(status map[string]any) { status["conditions"] = plain(now) })
}
