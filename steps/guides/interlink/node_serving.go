package interlink

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	servingSource = "interlink-hq/interLink: pkg/virtualkubelet/cert-retriever.go"
	// Keys of the virtual kubelet's configuration since 0.6.1.
	keyServingCert   = "KubeletCertFile"
	keyServingKey    = "KubeletKeyFile"
	keyNoRequest     = "DisableCSR"
	keyServingSigner = "KubeletCSRSignerName"
	// keyErrorsOnly suppresses warnings in the log unless VerboseLogging is true, in all releases.
	keyErrorsOnly = "ErrorsOnlyLogging"
	// misses is the warning that virtual kubelets since 0.6.1 log every ten seconds after their certificate request was
	// deleted. In earlier releases, client-go's certificate manager creates another request instead.
	misses = "Failed to get CSR"
)

// firstServing is the first release of the virtual kubelet with settings for its serving certificate. Releases 0.5.2
// and 0.6.0 always use the signer kubernetes.io/kubelet-serving (interlink-hq/interLink: cmd/virtual-kubelet/main.go).
var firstServing = version.MustParseGeneric("0.6.1")

func servingCheck() steps.Check {
	return steps.Check{
		Name: "serving-certificate", Title: "The virtual node's serving certificate is issued", On: steps.Local,
		Needs: []string{"config-parses"},
		Why: "Since 0.5.2 the virtual kubelet requests this certificate. Kubernetes does not approve the request " +
			"automatically, and until then kubectl logs fails.",
		References: []string{
			servingSource,
			"https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers",
		},
		Run: servingCertificate,
	}
}

// servingCertificate checks the newest certificate request that the virtual kubelet's own account has created. It
// ignores requests of other accounts: any user who can create requests can name any node in them, and the fix asks an
// admin to approve the request (interLink f6321757).
func servingCertificate(ctx context.Context, e steps.Env) steps.Result {
	values, err := e.Own.Map("vk-config")
	if err != nil {
		return steps.Errored(err)
	}
	_, c, err := theKubelet(ctx, e)
	if err != nil && !apierrors.IsNotFound(err) {
		return steps.Errored(err)
	}
	if c != nil {
		if v, err := version.ParseGeneric(tagOf(c.Image)); err == nil && v.LessThan(firstServing) {
			values = nil
		}
	}
	text := func(key string) string { v, _ := values[key].(string); return v }
	if file := text(keyServingCert); file != "" && text(keyServingKey) != "" {
		return steps.Skipped(
			"the virtual kubelet serves the certificate in %s, so it requests no certificate", clean.Text(file),
		)
	}
	if values[keyNoRequest] == true {
		return steps.Skipped(
			"%s is true, so the virtual kubelet signs its own certificate. kubectl logs works only if the API server does not "+
				"verify kubelets (without --kubelet-certificate-authority)",
			keyNoRequest,
		)
	}
	signer := text(keyServingSigner)
	if signer == "" {
		signer = certificatesv1.KubeletServingSignerName
	}
	all, err := check.List[certificatesv1.CertificateSigningRequest](
		ctx, e.Cluster, check.SigningRequests, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	var newest *certificatesv1.CertificateSigningRequest
	var asks *x509.CertificateRequest
	for _, r := range all {
		parsed := parsedRequest(r.Spec.Request)
		ours := r.Spec.SignerName == signer && r.Spec.Username == vkUser(e) &&
			parsed != nil && parsed.Subject.CommonName == "system:node:"+nodeName(e)
		if ours && (newest == nil || newest.CreationTimestamp.Before(&r.CreationTimestamp)) {
			newest, asks = r, parsed
		}
	}
	if newest == nil {
		return withoutRequest(ctx, e, values[keyErrorsOnly] == true && values[keyVerbose] != true)
	}
	return servingVerdict(ctx, e, newest, asks)
}

func parsedRequest(request []byte) *x509.CertificateRequest {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil
	}
	return parsed
}

func servingVerdict(
	ctx context.Context, e steps.Env, r *certificatesv1.CertificateSigningRequest, asks *x509.CertificateRequest,
) steps.Result {
	what := "CertificateSigningRequest " + r.Name
	look := e.Kubectl() + " describe csr " + r.Name
	approved := false
	for _, c := range r.Status.Conditions {
		said := quoted(cmp.Or(c.Message, c.Reason, "no reason given"))
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return steps.Failed(what+" was denied: "+said,
				look+"    # the virtual kubelet sends another request within seconds; approve the new request")
		case certificatesv1.CertificateFailed:
			return steps.Failed(what+" could not be signed: "+said, look)
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	switch {
	case len(r.Status.Certificate) > 0:
		return steps.Passed("%s is issued", what)
	case approved:
		return steps.Waits(r.CreationTimestamp.Time, "%s is approved but not signed yet", what).
			Or(look + "    # check that the cluster runs a controller for signer " + r.Spec.SignerName)
	}
	n, err := check.Get[corev1.Node](ctx, e.Cluster, check.Nodes, "", nodeName(e))
	if err != nil {
		return steps.Errored(err)
	}
	if others := othersIn(asks, n); len(others) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"%s requests %s, which is not an address of node %s", what, clean.Text(strings.Join(others, ", ")), n.Name,
			),
			e.Kubectl()+" get node "+n.Name+" -o wide    # approve the request only if you know the address")
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s of the virtual kubelet is waiting for approval: kubectl logs fails for all pods of node %s", what, n.Name,
		),
		e.Kubectl()+" certificate approve "+r.Name+
			"    # the virtual kubelet sends another request when a fifth of the certificate's validity is left")
}

// othersIn returns the names and addresses in asks that do not belong to node n.
func othersIn(asks *x509.CertificateRequest, n *corev1.Node) []string {
	names := slices.Concat(asks.DNSNames, asks.EmailAddresses)
	for _, ip := range asks.IPAddresses {
		names = append(names, ip.String())
	}
	for _, u := range asks.URIs {
		names = append(names, u.String())
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == name })
	})
}

// withoutRequest returns the result for a virtual kubelet without a certificate request. Kubernetes deletes an
// unapproved request after a day and a signed request after an hour (kubernetes/kubernetes:
// pkg/controller/certificates/cleaner). If the deleted request was unapproved, the virtual kubelet keeps reading it and
// logs a warning each time. If errorsOnly is true, the virtual kubelet logs no warnings.
func withoutRequest(ctx context.Context, e steps.Env, errorsOnly bool) steps.Result {
	pods, err := podsOfKubelet(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range pods {
		key := "log-csr/" + p.Namespace + "/" + p.Name + "/" + string(p.UID)
		lost, err := tracked.Look(ctx, key, time.Minute, func(ctx context.Context) (bool, error) {
			log, err := e.Cluster.Logs(ctx, p.Namespace, p.Name, kubeletName, 100)
			return strings.Contains(log, misses), err
		})
		if err != nil {
			return steps.Errored(err)
		}
		if lost {
			return steps.Failed(
				fmt.Sprintf(
					"pod %s/%s waits for a deleted CertificateSigningRequest: kubectl logs fails for all pods of node %s", p.Namespace,
					p.Name, nodeName(e),
				),
				fmt.Sprintf(
					"%s -n %s rollout restart deploy/%s    # the virtual kubelet then sends a new request; run this check again to "+
						"see which request to approve",
					e.Kubectl(), vkNamespace(e), vkDeployment(e),
				))
		}
	}
	if errorsOnly {
		return steps.Skipped(
			"no CertificateSigningRequest of %s exists. Because of %s the log does not show whether the virtual kubelet still "+
				"waits for a deleted request. If kubectl logs fails for a pod of node %s, restart the virtual kubelet: %s -n %s "+
				"rollout restart deploy/%s",
			vkUser(e), keyErrorsOnly, nodeName(e), e.Kubectl(), vkNamespace(e), vkDeployment(e),
		)
	}
	return steps.Skipped(
		"no CertificateSigningRequest of %s exists. Kubernetes deletes a request an hour after signing it, and a virtual "+
			"kubelet before 0.5.2 sends no request", vkUser(e),
	)
}
