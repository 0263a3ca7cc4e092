package renku

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

func serverAddress(_ context.Context, e steps.Env) steps.Result {
	k, err := check.Kubeconfig(e, kubeconfigFact)
	if err != nil {
		return kubeconfigUnread(err)
	}
	return judgeAddress(k, e.Peer)
}

// judgeAddress checks whether Renku's pods can use the server address in k. local contains the
// facts of the cluster where Renku runs.
func judgeAddress(k kubeconfig.Config, local steps.Facts) steps.Result {
	u, err := url.Parse(k.Server)
	if err != nil {
		return steps.Failed("the server is not a valid address: "+k.Server, "set remote.server to a valid https URL")
	}
	fix := "set remote.server to an address that Renku's pods can reach: a load balancer or a node, port 6443"
	host := u.Hostname()
	ip, notIP := netip.ParseAddr(host)
	switch {
	case strings.Contains(u.Path, "/k8s/clusters/"):
		return steps.Failed(k.Server+" is Rancher's authenticating proxy, which accepts no ServiceAccount tokens",
			"set remote.server to the cluster's own address (Rancher: Authorized Cluster Endpoint)")
	case check.OnLoopback(k.Server):
		own, err := local.Text(check.ServerFact)
		if err == nil && check.OnLoopback(own) {
			return steps.Passed("%s is on loopback like the local API server, so both clusters run on one machine", k.Server)
		}
		return steps.Failed(host+" in Renku's pods points to the pod itself", fix)
	case notIP == nil && ip.IsUnspecified():
		return steps.Failed(host+" is not a server address", fix)
	case check.InsideOnly(host):
		return steps.Failed(host+" in Renku's pods points to the local cluster's own API server", fix)
	case notIP == nil && ip.IsPrivate():
		return steps.Warned(
			host+" is a private address, which must be routed between the two clusters",
			"set reach.job to yes to test the address from inside the local cluster",
		)
	}
	return steps.Passed("%s", k.Server)
}

func serverTLS(ctx context.Context, e steps.Env) steps.Result {
	if builtHere(e) { // start the handshake while the token is read
		defer check.BeginHandshake(ctx, e.Answers.Text("remote.server"))()
	}
	k, err := check.Kubeconfig(e, kubeconfigFact)
	if err != nil {
		return kubeconfigUnread(err)
	}
	return judgeTLS(ctx, k)
}

func judgeTLS(ctx context.Context, k kubeconfig.Config) steps.Result {
	_, r := check.ServerTrusted(ctx, k, func(shown probe.TLSReport, name string) string {
		if shown.Kind == probe.NameMismatch {
			return fmt.Sprintf(
				"set remote.server to a name in the certificate (%v), or add %s to the API server's certificate",
				shown.Names, name,
			)
		}
		return "set kubeconfig.ca to context if your context's CA is correct for the address"
	})
	return r
}
