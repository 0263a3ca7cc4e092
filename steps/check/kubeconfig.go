package check

import (
	"context"
	"strings"
	"time"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/probe"
	"carrick/steps"
)

// Kubeconfig parses the kubeconfig in a secret fact of this side. If the kubeconfig itself is invalid, the error is a
// kubeconfig.Error.
func Kubeconfig(e steps.Env, fact string) (kubeconfig.Config, error) {
	m, err := e.Own.Masked(fact)
	if err != nil {
		return kubeconfig.Config{}, err
	}
	return kubeconfig.Parse([]byte(m.Reveal()))
}

// WithKubeconfig returns a cluster client whose only credential is the kubeconfig in a secret fact of this side. It
// returns the same errors as Kubeconfig.
func WithKubeconfig(e steps.Env, fact string) (*cluster.Cluster, error) {
	m, err := e.Own.Masked(fact)
	if err != nil {
		return nil, err
	}
	return e.Cluster.As([]byte(m.Reveal()))
}

// Details joins the problems of a kubeconfig.
func Details(problems []kubeconfig.Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Detail)
	}
	return strings.Join(out, "; ")
}

// InsideOnly reports whether a host name is cluster-internal, such as kubernetes.default.svc. In each cluster such a
// name resolves to that cluster's own API server.
func InsideOnly(host string) bool {
	return host == "kubernetes" || strings.HasPrefix(host, "kubernetes.default") ||
		strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

// ServerTrusted verifies the server's certificate against the CA in the kubeconfig. fix returns the fix for a
// certificate that does not verify. The certificate must be valid for the host name that fix receives.
func ServerTrusted(
	ctx context.Context, k kubeconfig.Config, fix func(shown probe.TLSReport, name string) string,
) (probe.TLSReport, steps.Result) {
	where, name := ServerOf(k)
	shown, err := serverShows(ctx, k)
	switch {
	case err != nil:
		return shown, steps.Failed("no TLS connection to "+where+" from this machine: "+failure.Explain(err),
			"curl -v "+steps.Quoted(k.Server+"/version")+"    # firewall, load balancer, port?")
	case !shown.Trusted:
		return shown, steps.Failed(where+" presents an invalid certificate: "+shown.Problem, fix(shown, name))
	}
	return shown, steps.Passed("%s, %s until %s", where, shown.Version, shown.NotAfter.Format(time.DateOnly))
}

// BeginHandshake starts the handshake of ServerTrusted while the kubeconfig is still being read. stop cancels the
// handshake.
func BeginHandshake(ctx context.Context, server string) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() { _, _ = serverShows(ctx, kubeconfig.Config{Server: server}) }()
	return stop
}
