package certmanager

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	lifetime       = 90 * 24 * time.Hour // upstream's default
	nameAnnotation = "cert-manager.io/certificate-name"
	issuerGroup    = "cert-manager.io" // upstream's default
	notPlayed      = "stand-in: "      // prefix of errors that upstream does not have
)

// certificate contains the fields of a Certificate that this fake supports.
type certificate struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		CommonName  string           `json:"commonName"`
		DNSNames    []string         `json:"dnsNames"`
		IPAddresses []string         `json:"ipAddresses"`
		Duration    *metav1.Duration `json:"duration"`
		RenewBefore *metav1.Duration `json:"renewBefore"`
		Percentage  int              `json:"renewBeforePercentage"`
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

// renewal returns the renewal time of cert (pkg/util/pki/renewaltime.go).
func (c *certificate) renewal(cert *x509.Certificate) time.Time {
	life := cert.NotAfter.Sub(cert.NotBefore)
	before := life / 3
	switch set := c.Spec.RenewBefore; {
	case set != nil && set.Duration > 0 && set.Duration < life:
		before = set.Duration
	case c.Spec.Percentage > 0 && c.Spec.Percentage < 100:
		before = time.Duration(float64(life) * float64(c.Spec.Percentage) / 100)
	}
	return cert.NotAfter.Add(-before)
}

// keep makes the Secret of a Certificate match its spec.
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
	switch owns, err := p.owns(ctx, c, secret); {
	case err != nil:
		return err
	case !owns:
		return p.notReady(ctx, c, reason, why, false)
	}
	if key := c.Namespace + "/" + c.Name; gone && reason != "Expired" { // the user requested a renewal
		changed := reason == "RequestChanged" || reason == "SecretMismatch"
		if p.backs[key] && !changed && !asked(c.Status.Conditions) {
			return p.notReady(ctx, c, reason, why, false)
		}
		delete(p.expired, key)
		delete(p.backs, key)
		gone = false
	}
	if err := p.sign(ctx, c, secret, gone); err != nil {
		if strings.HasPrefix(err.Error(), notPlayed) {
			why += ": " + err.Error()
		}
		return p.notReady(ctx, c, reason, why, true)
	}
	if reason == "ManuallyTriggered" { // the request is fulfilled
		return p.status(ctx, certificates, c.Namespace, c.Name, func(status map[string]any) {
			status["conditions"] = plain(
				slices.DeleteFunc(slices.Clone(c.Status.Conditions), func(c condition) bool { return c.Type == "Issuing" }),
			)
			delete(status, "lastFailureTime")
			delete(status, "failedIssuanceAttempts")
		})
	}
	return nil // the next Look sets the condition Ready
}

// owns reports whether a Certificate is allowed to write its Secret. If several Certificates share a Secret, the first
// one to write it owns it (internal/controller/certificates/certificates.go, CertificateOwnsSecret).
func (p *Player) owns(ctx context.Context, c *certificate, secret *corev1.Secret) (bool, error) {
	if secret == nil || secret.Annotations[nameAnnotation] == "" || secret.Annotations[nameAnnotation] == c.Name {
		return true, nil
	}
	other, err := p.dynamic.Resource(certificates).Namespace(c.Namespace).Get(
		ctx, secret.Annotations[nameAnnotation], metav1.GetOptions{},
	)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	fills, _, _ := unstructured.NestedString(other.Object, "spec", "secretName")
	return fills != c.Spec.SecretName, nil
}

// wants returns why a Certificate must be issued. reason is "" if the Certificate is up to date. The messages and
// their order are the same as upstream's (internal/controller/certificates/policies/policies.go,
// NewTriggerPolicyChain, and checks.go).
func (c *certificate) wants(
	secret *corev1.Secret, now time.Time, gone bool,
) (reason, why string, has *x509.Certificate) {
	switch {
	case secret == nil:
		return "DoesNotExist", "Issuing certificate as Secret does not exist", nil
	case len(secret.Data[corev1.TLSPrivateKeyKey]) == 0:
		return "MissingData", "Issuing certificate as Secret does not contain a private key", nil
	case len(secret.Data[corev1.TLSCertKey]) == 0:
		return "MissingData", "Issuing certificate as Secret does not contain a certificate", nil
	}
	held, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return "InvalidKeyPair", "Issuing certificate as Secret contains an invalid key-pair: " + err.Error(), nil
	}
	if other := c.otherIssuer(secret); other != "" {
		return "IncorrectIssuer", fmt.Sprintf("Issuing certificate as Secret was previously issued by %q", other), nil
	}
	name, issued := secret.Annotations[nameAnnotation]
	if issued && name != c.Name {
		return "IncorrectCertificate", fmt.Sprintf(
			"Secret was issued for %q. If this message is not transient, you might have two conflicting Certificates pointing "+
				"to the same secret.",
			name,
		), nil
	}
	if fault := c.keyDiffers(held.key); fault != "" {
		return "SecretMismatch", "Existing private key is not up to date for spec: [" + fault + "]", nil
	}
	switch fault := c.differs(held.cert, issued); {
	case fault != "" && issued:
		return "RequestChanged", "Fields on existing CertificateRequest resource not up to date: [" + fault + "]", nil
	case fault != "":
		return "SecretMismatch", "Issuing certificate as Existing issued Secret is not up to date for spec: [" + fault +
			"]", nil
	}
	switch {
	case asked(c.Status.Conditions):
		return "ManuallyTriggered", "Certificate re-issuance manually triggered", nil
	case gone && now.Before(held.cert.NotAfter):
		return "Expired", "stand-in: the sandbox forces the certificate to expire", nil
	case gone:
		return "", "", held.cert
	case now.After(c.renewal(held.cert)):
		return "Renewing", fmt.Sprintf("Renewing certificate as renewal was scheduled at %s", c.renewal(held.cert)), nil
	case issued && c.Spec.Duration != nil &&
		held.cert.NotAfter.Sub(held.cert.NotBefore).Round(time.Hour) != c.duration().Round(time.Hour):
		return "RequestChanged", "Fields on existing CertificateRequest resource not up to date: [spec.duration]", nil
	}
	return "", "", held.cert
}

// otherIssuer returns the issuer in the Secret's annotations, or "" if it is the Certificate's issuer. A Secret without
// these annotations matches every Issuer.
func (c *certificate) otherIssuer(secret *corev1.Secret) string {
	const prefix = "cert-manager.io/issuer-"
	name, hasName := secret.Annotations[prefix+"name"]
	kind, hasKind := secret.Annotations[prefix+"kind"]
	group, hasGroup := secret.Annotations[prefix+"group"]
	kind, group = kindOr(kind), cmp.Or(group, issuerGroup)
	ref := c.Spec.IssuerRef
	if (hasName || hasKind || hasGroup) && name != ref.Name || kind != kindOr(ref.Kind) ||
		group != cmp.Or(ref.Group, issuerGroup) {
		return fmt.Sprintf("%s.%s/%s", kind, group, name)
	}
	return ""
}

// keyDiffers returns the first field in the spec that the key does not match, or "" if the key matches
// (pkg/util/pki/match.go, PrivateKeyMatchesSpec).
func (c *certificate) keyDiffers(key crypto.Signer) string {
	has, size, algorithm := "", 0, cmp.Or(c.Spec.PrivateKey.Algorithm, "RSA")
	switch key := key.(type) {
	case *rsa.PrivateKey:
		has, size = "RSA", key.N.BitLen()
	case *ecdsa.PrivateKey:
		has, size = "ECDSA", key.Curve.Params().BitSize
	case ed25519.PrivateKey:
		has = "Ed25519"
	}
	wanted := cmp.Or(c.Spec.PrivateKey.Size, map[string]int{"RSA": 2048, "ECDSA": 256}[algorithm])
	switch {
	case has != algorithm:
		return "spec.privateKey.algorithm"
	case has != "Ed25519" && size != wanted:
		return "spec.privateKey.size"
	}
	return ""
}

// differs returns the first field in the spec that the certificate does not match, or "" if the certificate matches.
// issued means that cert-manager issued the certificate. If issued is false, the check is less strict: a name can be
// the common name or a DNS name, and isCA is ignored (pkg/util/pki/match.go, RequestMatchesSpec and
// FuzzyX509AltNamesMatchSpec).
func (c *certificate) differs(cert *x509.Certificate, issued bool) string {
	var ips []string
	for _, ip := range cert.IPAddresses {
		ips = append(ips, ip.String())
	}
	var asked []string
	for _, text := range c.Spec.IPAddresses {
		asked = append(asked, net.ParseIP(text).String())
	}
	if !issued {
		all := func(names []string, name string) []string {
			names = slices.Sorted(slices.Values(append(slices.Clone(names), name)))
			return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		}
		switch {
		case !same(all(cert.DNSNames, cert.Subject.CommonName), all(c.Spec.DNSNames, c.Spec.CommonName)):
			return "spec.dnsNames"
		case !same(ips, asked):
			return "spec.ipAddresses"
		}
		return ""
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

// asked reports whether a user has requested a renewal, for example with cmctl renew.
func asked(all []condition) bool {
	return slices.ContainsFunc(all, func(c condition) bool {
		return c.Type == "Issuing" && c.Status == "True" && c.Reason == "ManuallyTriggered"
	})
}
