package renku

import (
	"context"
	"errors"
	"fmt"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// rebuild is the fix for an invalid kubeconfig that carrick did not build.
const rebuild = "leave kubeconfig.file empty, so that carrick builds a kubeconfig"

const kubeconfigSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services/k8s/config.py; " +
	"kr8s-org/kr8s: kr8s/_auth.py"

func fileChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubeconfig-context", Title: "The kubeconfig has a complete current context", On: steps.Remote,
			Needs: []string{"token-secret"},
			Why: "Without a current context Renku ignores the kubeconfig and logs one warning. The published guide's example " +
				"has no current context.",
			References: []string{kubeconfigSource, "kr8s-org/kr8s issue 737"},
			Run:        kubeconfigContext,
		},
		{
			Name: "kubeconfig-self-contained", Title: "The kubeconfig is self-contained", On: steps.Remote,
			Needs: []string{"token-secret"},
			Why: "Renku's pods do not have this machine's files or login plugins. Renku does not accept passwords or " +
				"unverified servers.",
			References: []string{kubeconfigSource},
			Run:        kubeconfigAlone,
		},
		{
			Name: "token-encoding", Title: "The token belongs to the ServiceAccount", On: steps.Remote,
			Needs:      []string{"token-secret"},
			Why:        "A common mistake is to copy the token from the Secret without decoding it.",
			References: []string{page},
			Run:        tokenEncoding,
		},
		{
			Name: "token-lifetime", Title: "The kubeconfig's token does not expire", On: steps.Remote,
			Needs: []string{"token-encoding"},
			Why: "Renku never renews the token. With a token from kubectl create token, Renku loses access to the cluster " +
				"after one hour.",
			Run: tokenLasts,
		},
		{
			Name: "ca-certificate", Title: "The kubeconfig's CA certificate is valid", On: steps.Remote,
			Needs:      []string{"kubeconfig-context"},
			Why:        "Renku trusts only this CA for the remote API server.",
			References: []string{kubeconfigSource},
			Run:        caCertificate,
		},
		{
			Name: "server-address", Title: "Renku can use the kubeconfig's server address", On: steps.Remote,
			Needs: []string{"kubeconfig-context"},
			Why:   "Inside Renku's pods, localhost and names such as kubernetes.default do not point to the remote cluster.",
			Run:   serverAddress,
		},
		{
			Name: "server-tls", Title: "The server certificate verifies against the kubeconfig's CA", On: steps.Remote,
			From:  "this machine",
			Needs: []string{"server-address", "ca-certificate"},
			Why:   "A load balancer or an authenticating proxy may present a different certificate than the API server.",
			Run:   serverTLS,
		},
	}
}

// contextAlone returns the name, namespace and server of the current context, even if other parts
// of the kubeconfig are invalid. It returns an empty Config if the context does not exist.
func contextAlone(e steps.Env) (kubeconfig.Config, error) {
	m, err := e.Own.Masked("kubeconfig")
	if err != nil {
		return kubeconfig.Config{}, err
	}
	k, err := check.ReadLoosely([]byte(m.Reveal()))
	if err != nil {
		return kubeconfig.Config{}, err
	}
	c, found := k.Context(k.Current)
	if !found {
		return kubeconfig.Config{}, nil
	}
	at, _ := k.Cluster(c.Cluster)
	return kubeconfig.Config{Name: k.Current, Namespace: c.Namespace, Server: at.Server}, nil
}

// kubeconfigUnread returns Skipped for an invalid kubeconfig, because other checks report its
// problems.
func kubeconfigUnread(err error) steps.Result {
	var broken kubeconfig.Error
	if errors.As(err, &broken) {
		return steps.Skipped("the kubeconfig cannot be read: %s", broken.Problems[0].Detail)
	}
	return steps.Errored(err)
}

func kubeconfigContext(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(
		e, kubeconfig.RuleNotYAML, kubeconfig.RuleTooLarge, kubeconfig.RuleSeveralDocuments, kubeconfig.RuleAlias,
		kubeconfig.RuleDuplicateKey,
		kubeconfig.RuleUnknownKey, kubeconfig.RuleWrongType, kubeconfig.RuleWrongKind, kubeconfig.RuleDuplicateName,
		kubeconfig.RuleNoName,
		kubeconfig.RuleNoCurrentContext, kubeconfig.RuleUnknownContext, kubeconfig.RuleNoCluster, kubeconfig.RuleNoUser,
		kubeconfig.RuleNoServer,
		kubeconfig.RuleBadServer, kubeconfig.RuleNotHTTPS, kubeconfig.RuleBadProxy,
	)
	if len(bad) > 0 {
		return steps.Failed(check.Details(bad), "kubectl --kubeconfig FILE config use-context NAME    # or "+rebuild)
	}
	k, perr := check.Kubeconfig(e, kubeconfigFact)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if perr != nil { // later checks report the other problems
		if k, err = contextAlone(e); err != nil {
			return steps.Errored(err)
		}
	}
	if k.Namespace == "" {
		return steps.Failed("context "+k.Name+" names no namespace, so Renku would use namespace default",
			"kubectl --kubeconfig FILE config set-context --current --namespace="+sessionsNamespace(e))
	}
	if k.Namespace != sessionsNamespace(e) {
		return steps.Failed(
			fmt.Sprintf("context %s uses namespace %s, not %s", k.Name, k.Namespace, sessionsNamespace(e)),
			"set sessions.namespace to "+k.Namespace+", or "+rebuild,
		)
	}
	return steps.Passed("context %s, namespace %s, server %s", k.Name, k.Namespace, k.Server)
}

func kubeconfigAlone(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(
		e, kubeconfig.RuleFileReference, kubeconfig.RuleExec, kubeconfig.RuleAuthProvider, kubeconfig.RuleBasicAuth,
		kubeconfig.RuleInsecure,
		kubeconfig.RuleImpersonation, kubeconfig.RuleNoCredentials, kubeconfig.RuleBadClientCert,
	)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if len(bad) > 0 {
		return steps.Failed(
			check.Details(bad), rebuild+"; or: kubectl --kubeconfig FILE config view --raw --flatten --minify",
		)
	}
	return steps.Passed("the kubeconfig uses no login plugin, file or password, and verifies the server")
}

func tokenEncoding(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(e, kubeconfig.RuleDoubleBase64, kubeconfig.RuleBadToken)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if len(bad) > 0 {
		return steps.Failed(
			check.Details(bad),
			e.Kubectl()+" -n "+sessionsNamespace(e)+" get secret "+e.Answers.Text("identity.token-secret")+
				" -o jsonpath='{.data.token}' | base64 -d",
		)
	}
	k, err := check.Kubeconfig(e, kubeconfigFact)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if k.Token.IsZero() {
		return steps.Warned("the kubeconfig authenticates with a client certificate, not with a token", rebuild)
	}
	t, err := bearer.Parse(k.Token)
	if err != nil {
		return steps.Failed(err.Error(), rebuild)
	}
	if t.Subject != userName(e) {
		return steps.Failed(
			fmt.Sprintf("the token belongs to %s, not to %s", t.Subject, userName(e)),
			"set identity.name to that ServiceAccount, or "+rebuild,
		)
	}
	return steps.Passed("the token belongs to %s", t.Subject)
}

func tokenLasts(_ context.Context, e steps.Env) steps.Result {
	k, err := check.Kubeconfig(e, kubeconfigFact)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if k.Token.IsZero() {
		return judgeClientCertificate(k)
	}
	t, err := bearer.Parse(k.Token)
	if err != nil {
		return steps.Skipped("the token cannot be read")
	}
	if t.Expires.IsZero() {
		return steps.Passed("the token has no expiration date")
	}
	when := t.Expires.Format(time.DateTime)
	if t.Expired(time.Now()) {
		return steps.Failed("the token expired on "+when, rebuild+": a token from a Secret does not expire")
	}
	r := steps.Failed(
		"the token expires on "+when+". After that, Renku cannot access the cluster",
		rebuild+": a token from a Secret does not expire",
	)
	r.Again = t.Expires
	return r
}

// judgeClientCertificate checks a kubeconfig that contains a client certificate instead of a token.
// Client certificates always expire.
func judgeClientCertificate(k kubeconfig.Config) steps.Result {
	certs, err := probe.ParseCerts(k.ClientCert)
	if err != nil {
		return steps.Errored(err)
	}
	end := certs[0].NotAfter
	if time.Now().After(end) {
		return steps.Failed(
			"the client certificate expired on "+end.Format(time.DateTime), rebuild+": a token from a Secret does not expire",
		)
	}
	r := steps.Warned(
		"the kubeconfig authenticates with a client certificate, not with a token. The certificate expires on "+
			end.Format(time.DateTime)+
			". After that, Renku cannot access the cluster",
		rebuild+": a token from a Secret does not expire",
	)
	r.Again = end
	return r
}

func caCertificate(_ context.Context, e steps.Env) steps.Result {
	bad, err := breaks(e, kubeconfig.RuleBadCA)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if len(bad) > 0 {
		return steps.Failed(
			check.Details(bad),
			"copy ca.crt of the token Secret unchanged into certificate-authority-data: the value is already base64-encoded",
		)
	}
	k, err := check.Kubeconfig(e, kubeconfigFact)
	if err != nil {
		return kubeconfigUnread(err)
	}
	if len(k.CA) == 0 {
		return steps.Warned(
			"the kubeconfig names no CA, so Renku's pods trust their system roots",
			"set certificate-authority-data, unless a public CA signed the API server's certificate",
		)
	}
	certs, err := probe.ParseCerts(k.CA)
	if err != nil {
		return steps.Errored(err)
	}
	return check.Lasts(certs[0], check.Month, time.Now(), "renew the cluster's CA, then build the kubeconfig again")
}
