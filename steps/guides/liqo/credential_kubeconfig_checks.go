package liqo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// kubeconfigName is the name of the fact with the kubeconfig for the provider.
const kubeconfigName = "kubeconfig"

// unparsed returns the result of a check that cannot read or parse the kubeconfig. After a parse error, the result is a
// skip, because the check kubeconfig-self-contained reports the error.
func unparsed(err error) steps.Result {
	if errors.As(err, new(kubeconfig.Error)) {
		return steps.Skipped("the kubeconfig is not usable")
	}
	return steps.Errored(err)
}

// replaceKubeconfig returns the command that replaces the content of an unmanaged kubeconfig. The command keeps the
// Secret, because Liqo blocks its deletion until all copied objects are deleted.
func replaceKubeconfig(e steps.Env) string {
	name := e.Own.FieldText("control-plane", "name")
	return e.Kubectl() + " -n " + tenantNamespace(e) + " patch secret " + steps.Quoted(name) +
		` --type merge -p "{\"data\":{\"kubeconfig\":\"$(base64 < FILE | tr -d '\n')\"}}"    # FILE: a valid kubeconfig`
}

// kubeconfigFix returns built if carrick builds the kubeconfig. Otherwise it returns the command that replaces the
// unmanaged kubeconfig.
func kubeconfigFix(e steps.Env, built string) string {
	if foreign(e.Own) {
		return replaceKubeconfig(e)
	}
	return built
}

func kubeconfigWhole(_ context.Context, e steps.Env) steps.Result {
	m, err := e.Own.Masked("kubeconfig")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Waits(time.Time{}, "%s", absent.Why) // other steps create the parts of the kubeconfig
	}
	if err != nil {
		return steps.Errored(err)
	}
	fix := kubeconfigFix(
		e, "set provider.server to an https address, and set provider.ca; then "+e.ApplyStep("credentials"),
	)
	k, err := kubeconfig.Parse([]byte(m.Reveal()))
	var broken kubeconfig.Error
	if errors.As(err, &broken) && e.Own.Field("control-plane", "aws") == true {
		return steps.Skipped(
			"the Secret has AWS keys, which Liqo uses on EKS. carrick cannot test them",
		)
	}
	if errors.As(err, &broken) {
		return steps.Failed(check.Details(broken.Problems), fix)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if contexts, users := entries(m); contexts > 1 || users > 1 {
		return steps.Warned(
			fmt.Sprintf(
				"the kubeconfig has %d contexts and %d users, and Liqo uses only context %s. The Secret exposes the other "+
					"contexts and users, too",
				contexts, users, k.Name,
			),
			kubeconfigFix(e, fix),
		)
	}
	return steps.Passed("context %s, namespace %s, server %s", k.Name, k.Namespace, k.Server)
}

// entries counts the contexts and users in a kubeconfig.
func entries(m masked.Value) (contexts, users int) {
	var file struct {
		Contexts []any `yaml:"contexts"`
		Users    []any `yaml:"users"`
	}
	_ = yaml.Unmarshal([]byte(m.Reveal()), &file) // cannot fail, because the kubeconfig has already been parsed
	return len(file.Contexts), len(file.Users)
}

func kubeconfigServer(ctx context.Context, e steps.Env) steps.Result {
	defer check.BeginHandshake(ctx, e.Answers.Text("provider.server"))() // runs concurrently with check.Kubeconfig
	k, err := check.Kubeconfig(e, kubeconfigName)
	if err != nil {
		return unparsed(err)
	}
	if k.ProxyURL != "" {
		return steps.Skipped(
			"the kubeconfig uses proxy %s, which is meant for the consumer's pods, not for this machine", k.ProxyURL,
		)
	}
	own, _ := e.Own.Text(check.ServerFact)
	address := judgeServerAddress(
		k.Server, own,
		kubeconfigFix(
			e,
			"set provider.server to an address that the consumer's pods can reach, such as a load balancer or a node "+
				"with port 6443",
		),
	)
	if !address.Status.Holds() {
		return address
	}
	if shown := serverProves(ctx, e, k); shown.Status != steps.Pass || address.Status == steps.Pass {
		if shown.Status == steps.Pass {
			shown.Found = address.Found + ": " + shown.Found
		}
		return shown
	}
	return address
}

// judgeServerAddress returns the verdict on whether the consumer's pods can reach server. own is the address of the
// consumer's own API server.
func judgeServerAddress(server, own, fix string) steps.Result {
	u, err := url.Parse(server)
	if err != nil {
		return steps.Failed("the server address is not valid: "+server, fix)
	}
	host := u.Hostname()
	ip, notIP := netip.ParseAddr(host)
	switch {
	case strings.Contains(u.Path, "/k8s/clusters/"):
		return steps.Failed(
			server+" is Rancher's proxy, which accepts neither client certificates nor ServiceAccount tokens",
			fix+" (in Rancher: an Authorized Cluster Endpoint)",
		)
	case server == own:
		return steps.Failed(server+" is the consumer's own API server", fix)
	case check.OnLoopback(server) && check.OnLoopback(own):
		return steps.Passed(
			"%s is a loopback address of the machine that runs both clusters", host,
		)
	case check.OnLoopback(server):
		return steps.Failed(host+" is a loopback address, so Liqo's pods would connect to themselves", fix)
	case notIP == nil && (ip.IsUnspecified() || ip.IsLinkLocalUnicast()):
		return steps.Failed(host+" is not reachable from another machine", fix)
	case check.InsideOnly(host):
		return steps.Failed(host+" resolves to the consumer's own API server in Liqo's pods", fix)
	case notIP != nil && !strings.Contains(host, "."):
		return steps.Warned(
			host+
				" is a host name without a domain, which the consumer's pods can resolve only if their DNS has a record for it, "+
				"as in kind clusters", fix,
		)
	case notIP == nil && ip.IsPrivate():
		return steps.Passed("%s is a private address, which the consumer's pods can reach only if a route exists", host)
	}
	return steps.Passed("%s", host)
}

// serverProves verifies the server's certificate in a TLS handshake with the kubeconfig's CA, as Liqo does.
func serverProves(ctx context.Context, e steps.Env, k kubeconfig.Config) steps.Result {
	shown, r := check.ServerTrusted(ctx, k, func(shown probe.TLSReport, name string) string {
		fix := "set provider.ca to context, if the CA of your kubeconfig context is the CA for that address; then " +
			e.ApplyStep("credentials")
		if shown.Kind == probe.NameMismatch {
			fix = fmt.Sprintf(
				"set provider.server to a name in the certificate (%s), or add %s to the certificate of the provider's API server",
				check.OrNone(shown.Names), name,
			)
		}
		return kubeconfigFix(e, fix)
	})
	if r.Status == steps.Pass {
		by := "the CA in the kubeconfig"
		if len(k.CA) == 0 {
			by = "a public CA (the kubeconfig has no CA, so Liqo's pods use the system CAs)"
		}
		r.Found = fmt.Sprintf(
			"%s, certificate valid until %s, verified by %s", shown.Version, shown.NotAfter.Format(time.DateOnly), by,
		)
	}
	return r
}
