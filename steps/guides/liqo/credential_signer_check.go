package liqo

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// noSigner is the fix for a cluster that approves requests but does not sign them.
const noSigner = "start kube-controller-manager with --cluster-signing-cert-file and --cluster-signing-key-file. On " +
	"a managed control plane (EKS), set auth.kind to service-account and install Liqo with its AWS settings, because " +
	"Liqo also requests certificates"

// signedWithin is the maximum time between the approval of a request and its certificate.
const signedWithin = 30 * time.Second

// decision returns the state of a CertificateSigningRequest ("Approved", "Denied", "Failed" or ""), the reason for the
// state, and the time of the last state change.
func decision(csr *unstructured.Unstructured) (state, reason string, since time.Time) {
	state, since = approval(csr), csr.GetCreationTimestamp().Time
	conditions, _, _ := unstructured.NestedSlice(csr.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] != state {
			continue
		}
		reason = fmt.Sprintf("%v: %v", m["reason"], m["message"])
		for _, key := range []string{"lastTransitionTime", "lastUpdateTime"} {
			s, _ := m[key].(string)
			if t, err := time.Parse(time.RFC3339, s); err == nil {
				since = t
			}
		}
	}
	return state, reason, since
}

// lastDecided returns the most recently approved CertificateSigningRequest for a client certificate, or nil if no
// request is approved.
func lastDecided(all []*unstructured.Unstructured) *unstructured.Unstructured {
	var out *unstructured.Unstructured
	var newest time.Time
	for _, csr := range all {
		state, _, since := decision(csr)
		if text(csr, "spec", "signerName") == signer && state == "Approved" && (out == nil || since.After(newest)) {
			out, newest = csr, since
		}
	}
	return out
}

// signsCertificates verifies that the provider's cluster signs client certificates. It searches for a signed
// CertificateSigningRequest, and then for a certificate that the cluster signed earlier.
func signsCertificates(ctx context.Context, e steps.Env) steps.Result {
	all, err := e.Cluster.List(ctx, check.SigningRequests, "", cluster.Selector{})
	if csr := lastDecided(all); csr != nil {
		_, _, since := decision(csr)
		if text(csr, "status", "certificate") != "" {
			return steps.Passed("the cluster signed CertificateSigningRequest %s", csr.GetName())
		}
		if time.Since(since) > signedWithin {
			return steps.Failed(
				fmt.Sprintf("CertificateSigningRequest %s is approved but still not signed", csr.GetName()), noSigner,
			)
		}
		return steps.Waits(since, "CertificateSigningRequest %s is approved but not signed yet", csr.GetName()).Or(noSigner)
	}
	if ours, _ := e.Own.Text("client-ca"); issuedBy(e.Peer.Field("control-plane", "certificate"), ours) {
		return steps.Passed("the cluster signed the consumer's certificate")
	}
	if err != nil {
		return steps.Errored(err)
	}
	if _, err := e.Peer.Value("control-plane"); err != nil && !steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	slices, err := living(ctx, e, resourceSlices, tenantNamespace(e), "")
	if err != nil {
		return steps.Errored(err)
	}
	for _, s := range slices {
		if text(s, "status", "authParams", "signedCRT") != "" {
			return steps.Passed("the cluster signed a certificate for ResourceSlice %s", s.GetName())
		}
	}
	return steps.Warned("no signed certificate found. Kubernetes removes requests an hour after signing",
		"to test the signer, request the consumer's certificate: "+e.ApplyStep("credentials"))
}

// issuedBy reports whether certificate verifies against one of the authorities. Both parameters are PEM.
func issuedBy(certificate any, authorities string) bool {
	c, _ := certificate.(string)
	chain, err := probe.ParseCerts([]byte(c))
	if err != nil || authorities == "" {
		return false
	}
	pool, err := probe.Pool([]byte(authorities))
	if err != nil {
		return false
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots: pool, CurrentTime: chain[0].NotBefore.Add(time.Minute), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}
