package interlink

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
)

// endpointRenewed verifies that the endpoint serves the certificate in its Secret.
func endpointRenewed(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	got, no := endpointHandshake(ctx, e, t)
	if no != nil {
		return *no
	}
	issued, _, err := endpointCertificates(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	name, err := endpointSecret(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	is, want := got.Chain[0], issued[0]
	if is.Equal(want) {
		return steps.Passed(
			"the endpoint serves the certificate of Secret %s/%s, valid from %s", space(e), name,
			want.NotBefore.UTC().Format(time.DateTime),
		)
	}
	if !bytes.Equal(is.RawIssuer, want.RawIssuer) {
		return steps.Skipped("the endpoint serves a certificate of another CA (endpoint-certificate)")
	}
	found := fmt.Sprintf(
		"the endpoint serves a certificate valid from %s to %s, but the certificate in Secret %s/%s is valid from %s to %s",
		is.NotBefore.UTC().Format(time.DateTime), is.NotAfter.UTC().Format(time.DateOnly),
		space(e), name, want.NotBefore.UTC().Format(time.DateTime), want.NotAfter.UTC().Format(time.DateOnly),
	)
	if mode(e) == byIngress {
		return steps.Waits(
			want.NotBefore, "%s", found,
		).Or(
			e.Kubectl() + " get pods -n " + space(e) +
				"    # the controller loads a renewed certificate automatically; check its log",
		)
	}
	restart := e.Kubectl() + " rollout restart deployment " + proxyName + " -n " + space(e)
	renewed, err := reloadsCertificate(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if !renewed {
		return steps.Failed(
			found+": nginx.conf has a fixed file name, so nginx read the certificate only at start",
			restart+"    # after each renewal; not needed with carrick's nginx.conf: "+e.ApplyStep("proxy"),
		)
	}
	return steps.Waits(want.NotBefore, "%s", found).Or(restart)
}

// reloadsCertificate reports whether the proxy reads its certificate at each handshake. nginx does so if the file name
// in ssl_certificate contains a variable.
func reloadsCertificate(ctx context.Context, e steps.Env) (bool, error) {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, space(e), proxyName)
	if err != nil {
		return false, err
	}
	said, err := readNginx(m.Data["nginx.conf"])
	if err != nil {
		return false, err
	}
	for _, d := range every(said, "ssl_certificate") {
		if len(d.words) == 2 && strings.Contains(string(d.words[1]), "$") {
			return true, nil
		}
	}
	return false, nil
}
