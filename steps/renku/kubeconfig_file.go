package renku

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// rebuild is the fix where somebody else's file is at fault.
const rebuild = "leave kubeconfig.file empty and let carrick build one"

// kubeconfigSource is where upstream's rules for this file stand.
const kubeconfigSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services/k8s/config.py; kr8s-org/kr8s: kr8s/_auth.py"

func fileChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubeconfig-context", Title: "the kubeconfig has a current context that is whole", On: steps.Remote, Needs: []string{"token-secret"},
			Why: "Renku takes the current context and nothing else; without one it ignores the file with a single warning. The published guide's example has none",
			See: []string{kubeconfigSource, "kr8s-org/kr8s issue 737"},
			Run: kubeconfigContext,
		},
		{
			Name: "kubeconfig-self-contained", Title: "the kubeconfig needs nothing but itself", On: steps.Remote, Needs: []string{"token-secret"},
			Why: "files and login plugins of this machine are not in Renku's pods",
			See: []string{kubeconfigSource},
			Run: kubeconfigAlone,
		},
		{
			Name: "token-encoding", Title: "its token is decoded, and the ServiceAccount's", On: steps.Remote, Needs: []string{"token-secret"},
			Why: "copying the token out of the Secret without decoding it is the usual mistake",
			See: []string{page},
			Run: tokenEncoding,
		},
		{
			Name: "token-lasts", Title: "its token does not expire", On: steps.Remote, Needs: []string{"token-encoding"},
			Why: "Renku never renews it: with a token of kubectl create token the cluster drops out after an hour",
			Run: tokenLasts,
		},
		{
			Name: "ca-certificate", Title: "its CA is a certificate that is valid", On: steps.Remote, Needs: []string{"kubeconfig-context"},
			Why: "Renku trusts this CA alone for the remote API server",
			See: []string{kubeconfigSource},
			Run: caCertificate,
		},
		{
			Name: "server-address", Title: "its server is an address that Renku can use", On: steps.Remote, Needs: []string{"kubeconfig-context"},
			Why: "localhost and names of the inside of the remote cluster mean something else in Renku's pods",
			Run: serverAddress,
		},
		{
			Name: "server-tls", Title: "the server there proves itself to that CA", On: steps.Remote, From: "this machine", Needs: []string{"server-address", "ca-certificate"},
			Why: "a load balancer or an authenticating proxy may show another certificate than the API server's own",
			Run: serverTLS,
		},
	}
}

// unread turns the error of getting the kubeconfig into a verdict.
func unread(err error) steps.Result {
	var broken cluster.KubeconfigError
	if errors.As(err, &broken) {
		return steps.Skipped("the kubeconfig can't be read: %s", broken.Problems[0].Detail)
	}
	return steps.Unseen(err)
}

func details(problems []cluster.Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Detail)
	}
	return strings.Join(out, "; ")
}

func kubeconfigContext(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(e, cluster.RuleNotYAML, cluster.RuleTooLarge, cluster.RuleSeveralDocuments, cluster.RuleAlias, cluster.RuleDuplicateKey,
		cluster.RuleUnknownKey, cluster.RuleWrongType, cluster.RuleWrongKind, cluster.RuleDuplicateName, cluster.RuleNoName,
		cluster.RuleNoCurrentContext, cluster.RuleUnknownContext, cluster.RuleNoCluster, cluster.RuleNoUser, cluster.RuleNoServer,
		cluster.RuleBadServer, cluster.RuleNotHTTPS, cluster.RuleBadProxy)
	if len(bad) > 0 {
		return steps.Failed(details(bad), "kubectl --kubeconfig FILE config use-context NAME    # or "+rebuild)
	}
	k, perr := parsed(e)
	if err != nil {
		return unread(err)
	}
	if perr != nil {
		return steps.Passed("a current context is set; what else is wrong stands in the next rows")
	}
	if k.Namespace == "" {
		return steps.Failed("context "+k.Name+" names no namespace: Renku would look in default",
			"kubectl --kubeconfig FILE config set-context --current --namespace="+sessionsNamespace(e))
	}
	if k.Namespace != sessionsNamespace(e) {
		return steps.Failed(fmt.Sprintf("context %s is for namespace %s, not %s", k.Name, k.Namespace, sessionsNamespace(e)), "answer sessions.namespace with "+k.Namespace+", or "+rebuild)
	}
	return steps.Passed("context %s, namespace %s, server %s", k.Name, k.Namespace, k.Server)
}

func kubeconfigAlone(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(e, cluster.RuleFileReference, cluster.RuleExec, cluster.RuleAuthProvider, cluster.RuleBasicAuth, cluster.RuleInsecure,
		cluster.RuleImpersonation, cluster.RuleNoCredentials, cluster.RuleBadClientCert)
	if err != nil {
		return unread(err)
	}
	if len(bad) > 0 {
		return steps.Failed(details(bad), rebuild+"; or: kubectl --kubeconfig FILE config view --raw --flatten --minify")
	}
	return steps.Passed("no login plugin, no file, no password, and the server is verified")
}

func tokenEncoding(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(e, cluster.RuleDoubleBase64, cluster.RuleBadToken)
	if err != nil {
		return unread(err)
	}
	if len(bad) > 0 {
		return steps.Failed(details(bad), e.Kubectl()+" -n "+sessionsNamespace(e)+" get secret "+e.Answers.Text("identity.token-secret")+" -o jsonpath='{.data.token}' | base64 -d")
	}
	k, err := parsed(e)
	if err != nil {
		return unread(err)
	}
	if k.Token.IsZero() {
		return steps.Warned("it signs in with a client certificate, not with a token", rebuild)
	}
	t, err := cluster.ParseToken(k.Token)
	if err != nil {
		return steps.Failed(err.Error(), rebuild)
	}
	if t.Subject != userName(e) {
		return steps.Failed(fmt.Sprintf("the token is of %s, not of %s", t.Subject, userName(e)), "answer identity.name, or "+rebuild)
	}
	return steps.Passed("a token of %s", t.Subject)
}

func tokenLasts(_ context.Context, e steps.Env) steps.Result {
	k, err := parsed(e)
	if err != nil {
		return unread(err)
	}
	t, err := cluster.ParseToken(k.Token)
	if err != nil {
		return steps.Skipped("the token can't be read")
	}
	if t.Expires.IsZero() {
		return steps.Passed("it names no end")
	}
	when := t.Expires.Format(time.DateTime)
	if t.Expired(time.Now()) {
		return steps.Failed("it expired on "+when, rebuild+": the token of a Secret does not expire")
	}
	r := steps.Failed("it expires on "+when+": the cluster then drops out of Renku", rebuild+": the token of a Secret does not expire")
	r.Again = t.Expires
	return r
}

func caCertificate(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(e, cluster.RuleBadCA)
	if err != nil {
		return unread(err)
	}
	if len(bad) > 0 {
		return steps.Failed(details(bad), "take certificate-authority-data from ca.crt of the token Secret, as it stands there: it is base64 already")
	}
	k, err := parsed(e)
	if err != nil {
		return unread(err)
	}
	if len(k.CA) == 0 {
		return steps.Warned("it names no CA: the pods' system roots are trusted", "set certificate-authority-data, unless a public CA signs the API server's certificate")
	}
	certs, err := probe.ParseCerts(k.CA)
	if err != nil {
		return steps.Failed("the CA: "+err.Error(), rebuild)
	}
	return check.Lasts(certs[0], 30*24*time.Hour, time.Now(), "renew the cluster's CA, then build the kubeconfig again")
}

// insideOnly tells whether a host means the cluster itself when it is asked
// from within.
func insideOnly(host string) bool {
	return host == "kubernetes" || strings.HasPrefix(host, "kubernetes.default") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
}

func loopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || (err == nil && ip.IsLoopback())
}

func serverAddress(_ context.Context, e steps.Env) steps.Result {
	k, err := parsed(e)
	if err != nil {
		return unread(err)
	}
	return judgeAddress(k, e.Peer)
}

// judgeAddress says whether Renku can use the address of a kubeconfig's server.
// local are the facts of the cluster that Renku runs on.
func judgeAddress(k cluster.Kubeconfig, local steps.Facts) steps.Result {
	u, err := url.Parse(k.Server)
	if err != nil {
		return steps.Failed("the server is no address: "+k.Server, "answer remote.server")
	}
	fix := "answer remote.server with the address that Renku's pods can reach: a load balancer or a node, port 6443"
	host := u.Hostname()
	ip, notIP := netip.ParseAddr(host)
	switch {
	case strings.Contains(u.Path, "/k8s/clusters/"):
		return steps.Failed(k.Server+" is Rancher's authenticating proxy, which takes no ServiceAccount tokens",
			"answer remote.server with the cluster's own address (Rancher: Authorized Cluster Endpoint)")
	case loopback(k.Server):
		own, err := local.Text(check.ServerFact)
		if err == nil && loopback(own) {
			return steps.Passed("%s: on loopback, as the local API server is, so both stand on one machine", k.Server)
		}
		return steps.Failed(host+" means the pod itself when Renku asks", fix)
	case notIP == nil && ip.IsUnspecified():
		return steps.Failed(host+" is no address of a server", fix)
	case insideOnly(host):
		return steps.Failed(host+" means the local cluster's own API server when Renku asks", fix)
	case notIP == nil && ip.IsPrivate():
		return steps.Warned(host+" is a private address: it must be routed between the two clusters", "answer reach.job with yes to have it tried from inside")
	}
	return steps.Passed("%s", k.Server)
}

func serverTLS(ctx context.Context, e steps.Env) steps.Result {
	if builtHere(e) { // ahead, as it takes as long as reading the token does
		early, stop := context.WithCancel(ctx)
		defer stop()
		go func() { _, _ = handshake(early, cluster.Kubeconfig{Server: e.Answers.Text("remote.server")}) }()
	}
	k, err := parsed(e)
	if err != nil {
		return unread(err)
	}
	return judgeTLS(ctx, k)
}

// judgeTLS asks the server of a kubeconfig to prove itself to the CA in it.
func judgeTLS(ctx context.Context, k cluster.Kubeconfig) steps.Result {
	where, name := serverOf(k)
	report, err := handshake(ctx, k)
	if err == nil {
		report, err = report.Judge(name, k.CA)
	}
	if err != nil {
		return steps.Failed("no TLS with "+where+" from this machine: "+cluster.Explain(err), "curl -v "+k.Server+"/version    # firewall, load balancer, port?")
	}
	if report.Trusted {
		return steps.Passed("%s, %s until %s", where, report.Version, report.NotAfter.Format(time.DateOnly))
	}
	fix := "answer kubeconfig.ca with context, if the CA of your own context is the right one for that address"
	if report.Kind == probe.NameMismatch {
		fix = fmt.Sprintf("answer remote.server with a name of the certificate (%v), or add %s to the API server's certificate", report.Names, name)
	}
	return steps.Failed(where+" shows a certificate that is not good here: "+report.Problem, fix)
}

// handshake is what the server of a kubeconfig shows; whether it is good is
// for the kubeconfig's CA to say.
func handshake(ctx context.Context, k cluster.Kubeconfig) (probe.TLSReport, error) {
	where, name := serverOf(k)
	return cluster.Look(ctx, "tls/"+where+"/"+name, time.Minute, func(ctx context.Context) (probe.TLSReport, error) {
		return probe.TLS(ctx, where, name, nil)
	})
}

// serverOf is the host and port of a kubeconfig's server, and the name that its
// certificate must be good for.
func serverOf(k cluster.Kubeconfig) (where, name string) {
	u, err := url.Parse(k.Server)
	if err != nil {
		return k.Server, k.TLSServerName // which no handshake can be had with
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")), cmp.Or(k.TLSServerName, u.Hostname())
}
