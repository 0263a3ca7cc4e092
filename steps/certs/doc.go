// Package certs issues a server certificate, stores it in a Secret and renews it. The signer is a CA that carrick
// creates, or cert-manager. Guides define the Secrets, the host names and the validity. The package depends on no
// guide.
package certs

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// These are the resources of cert-manager (cert-manager/cert-manager: pkg/apis/certmanager/v1).
var (
	Certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	Issuers      = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "issuers"}

	certificateRequests = Certificates.GroupVersion().WithResource("certificaterequests")
)

// Source is the upstream reference for the fields of a Certificate.
const Source = "cert-manager/cert-manager: internal/apis/certmanager/types_certificate.go"

// These are the signers of a certificate, as answers to the question cert.source of a guide.
const (
	ByCertManager = "cert-manager"
	ByCarrick     = "own"
)

// Signers returns the choices that every guide offers for the question cert.source.
func Signers() []steps.Choice {
	return []steps.Choice{
		{Value: ByCertManager, Title: "cert-manager: renews automatically"},
		{Value: ByCarrick, Title: "own: a CA that carrick creates, renewed by apply"},
	}
}

// DefaultSigner returns the Default function of the question cert.source. The default is cert-manager if the fact
// called served is known. Served reads that fact.
func DefaultSigner(served string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if _, err := e.Own.Text(served); err == nil {
			return ByCertManager, "the cluster's certificates.cert-manager.io API"
		}
		return ByCarrick, "the cluster, which has no cert-manager"
	}
}

// Served returns the name of cert-manager's CRD for Certificates, or an AbsentError if the cluster does not serve it.
func Served(ctx context.Context, e steps.Env) (any, error) {
	name := Certificates.GroupResource().String()
	_, err := e.Cluster.Get(ctx, check.CRDs, "", name)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("the cluster does not serve %s", name)
	}
	if err != nil {
		return nil, err
	}
	return name, nil
}

// ServedCheck returns the check "cert-manager-ready". It verifies that the cluster serves cert-manager's Certificate
// resource. when reports whether the answers require cert-manager. If the resource is missing, the admin can set
// cert.source to own.
func ServedCheck(when func(steps.Env) bool) steps.Check {
	return steps.Check{
		Name: "cert-manager-ready", Title: "The cluster serves cert-manager's API", On: steps.Local,
		Needs: []string{"signed-in"}, When: when,
		Why: "Without cert-manager's CRDs nothing signs or renews the certificates.", References: []string{Source},
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			return check.Served(ctx, e.Cluster, Certificates.GroupResource().String(), Certificates.Version, e.Helm()+
				" upgrade --install cert-manager oci://quay.io/jetstack/charts/cert-manager -n cert-manager --create-namespace "+
				"--set crds.enabled=true    # or set cert.source to own")
		},
	}
}

// Secret reads a Secret with a certificate, its key and its CA. If the Secret does not exist, it returns an
// AbsentError.
func Secret(ctx context.Context, e steps.Env, namespace, name string) (*cluster.Secret, error) {
	s, err := e.Cluster.Secret(ctx, namespace, name, "tls.crt", "tls.key", "ca.crt")
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("Secret %s does not exist in %s yet", name, namespace)
	}
	return s, err
}

// Hours returns a function that converts an answer to a duration for cert-manager, such as "2160h". days is the number
// of days in one unit of the answer.
func Hours(key string, days int) func(context.Context, steps.Env) (any, error) {
	return func(_ context.Context, e steps.Env) (any, error) {
		return fmt.Sprintf("%dh", e.Answers.Int(key)*days*24), nil
	}
}

// Life returns the total validity of a certificate.
func Life(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

// Soon returns how long before its expiry a certificate is reported as expiring soon. This is one month or a third of
// the validity, whichever is shorter.
func Soon(c *x509.Certificate) time.Duration { return min(check.Month, Life(c)/3) }

func wholeDays(life time.Duration) int  { return int(math.Round(life.Hours() / 24)) }
func wholeYears(life time.Duration) int { return int(math.Round(life.Hours() / 24 / 365.25)) }

// pemText encodes certificates as PEM.
func pemText(certs []*x509.Certificate) string {
	var b strings.Builder
	for _, c := range certs {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // writes to a Builder never fail
	}
	return b.String()
}

// Only re-encodes the certificates in text as PEM and drops all other content.
func Only(text []byte) (string, error) {
	all, err := probe.ParseCerts(text)
	if err != nil {
		return "", err
	}
	return pemText(all), nil
}
