package argocd

import (
	"context"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

const clusterAuth = "argoproj/argo-cd: util/clusterauth/clusterauth.go" // used by argocd cluster add

func identity() steps.Step {
	return steps.Step{
		Name: "identity", Title: "Identity",
		Map: steps.MapRow{Remote: "ServiceAccount, token"},
		Why: "Argo CD acts on the destination as one ServiceAccount. As with argocd cluster add, its token does not " +
			"expire, because Argo CD cannot renew tokens. To replace the token, delete the token Secret and apply again.",
		Ask: []steps.Question{
			{
				Key: "access.namespaces", Title: "Namespaces that Argo CD deploys to", Kind: steps.Namespace, Many: true, Opt: true,
				On: steps.Remote,
				Help: "Enter existing namespaces, such as team-a. Leave it empty to grant all permissions on the whole cluster, " +
					"as argocd cluster add does.",
			},
			{
				Key: "identity.namespace", Title: "Namespace of the ServiceAccount", Kind: steps.Namespace, On: steps.Remote,
				Help: "carrick creates the namespace if it does not exist. Everyone who can read Secrets there can use Argo " +
					"CD's token.",
				Default: steps.Fixed("argocd-manager", "carrick's default, a namespace used for nothing else"),
			},
			{
				Key: "destination.server", Title: "Address of the destination's API server", Kind: steps.URL, On: steps.Remote,
				Help: "Enter an address that Argo CD's pods can reach, such as https://192.0.2.10:6443. The API server's " +
					"certificate must be valid for the address.",
				Default: steps.FromFact(check.ServerFact, "from your context"),
			},
		},
		Facts: []steps.Fact{
			{Name: "credential", Title: "Argo CD's credential", On: steps.Remote, Secret: true, Shared: true, Learn: credential},
		},
		Actions: []steps.Action{
			{
				Name: "account", Title: "Create the ServiceAccount and its token", On: steps.Remote, Needs: []string{"signed-in"},
				Doer: action.Manifest{File: "account.yaml"},
			},
			{
				Name: "cluster-role", Title: "Grant the ServiceAccount all permissions on the cluster", On: steps.Remote,
				Doer: action.Manifest{File: "cluster-role.yaml"},
				When: func(e steps.Env) bool { return !limited(e) },
			},
			{
				Name: "roles", Title: "Grant the ServiceAccount permissions in each namespace", On: steps.Remote, When: limited,
				Needs: []string{"namespaces"},
				Doer: action.Manifest{File: "role.yaml", Each: func(_ context.Context, e steps.Env) (out []any, err error) {
					for _, ns := range deploysTo(e) {
						out = append(out, ns)
					}
					return out, nil
				}},
			},
		},
		Checks: identityChecks(),
	}
}

func identityChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "namespaces", Title: "The namespaces that Argo CD deploys to exist", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why:   "Argo CD cannot create the namespaces, because its Roles grant permissions only inside namespaces.",
			When:  limited, Run: namespacesExist,
		},
		{
			Name: "token-secret", Title: "The token Secret contains a token", On: steps.Remote, FixedBy: "account",
			Needs: []string{"signed-in"},
			Why: "Kubernetes writes the token into the Secret, and revokes the token when the Secret or the " +
				"ServiceAccount is deleted.",
			References: []string{clusterAuth + " (getOrCreateServiceAccountTokenSecret)"},
			Timeout:    30 * time.Second, Run: tokenSecret,
		},
		{
			Name: "server-address", Title: "The address points Argo CD's pods to the destination", On: steps.Remote,
			Needs:      []string{"signed-in"},
			Why:        "With localhost or kubernetes.default.svc Argo CD would deploy to the cluster that it runs on.",
			References: []string{"argoproj/argo-cd: pkg/apis/application/v1alpha1/types.go (RawRestConfig)"},
			Run:        serverAddress,
		},
		{
			Name: "server-tls", Title: "The API server's certificate verifies against the CA", On: steps.Remote,
			From: "this machine",
			Why:  "Argo CD trusts only the CA in the cluster Secret.", Needs: []string{"server-address", "token-secret"},
			Run:        serverTLS,
			References: []string{"argoproj/argo-cd: cmd/util/cluster.go (NewCluster)"},
		},
		{
			Name: "roles", Title: "The ServiceAccount's roles grant the required permissions", On: steps.Remote,
			Needs:      []string{"signed-in", "namespaces"},
			Why:        "Without its roles and their bindings, Argo CD's token has no permissions.",
			References: []string{clusterAuth + " (InstallClusterManagerRBAC)"}, Run: roles,
		},
		{
			Name: "permissions", Title: "The token allows everything that Argo CD does", On: steps.Remote,
			From:  "Argo CD's token",
			Why:   "If the token cannot list one kind, Argo CD's cache of the whole cluster fails.",
			Needs: []string{"server-tls", "roles"}, Run: permissions,
			References: []string{"argoproj/argo-cd: gitops-engine/pkg/cache/cluster.go (sync)", clusterAuth},
		},
		{
			Name: "least-privilege", Title: "The token grants nothing beyond its role", On: steps.Remote,
			From:  "Argo CD's token",
			Why:   "The token is stored on Argo CD's cluster, and everyone who can deploy with Argo CD uses its permissions.",
			Needs: []string{"permissions"}, When: limited, Run: nothingBeyond,
		},
	}
}

func deploysTo(e steps.Env) []string { return e.Answers.List("access.namespaces") }
func limited(e steps.Env) bool       { return len(deploysTo(e)) > 0 }

func account(e steps.Env) check.Account {
	return check.Account{Namespace: e.Answers.Text("identity.namespace"), Name: "argocd-" + e.Link}
}

// tokenName returns the name that upstream gives the token Secret of a ServiceAccount.
func tokenName(e steps.Env) string { return account(e).Name + "-long-lived-token" }

// server returns the answer destination.server without trailing slashes. Argo CD also removes them before it stores the
// address (argoproj/argo-cd: util/db/cluster.go, clusterToSecret).
func server(e steps.Env) string { return strings.TrimRight(e.Answers.Text("destination.server"), "/") }

// rules lists the permissions that Argo CD requires in a namespace. Argo CD's cache lists and
// watches every kind in the namespace, unless resource.respectRBAC is set
// (gitops-engine/pkg/cache/cluster.go, sync). Upstream grants every verb, including escalate,
// bind and impersonate (util/clusterauth/clusterauth.go, ArgoCDManagerNamespacePolicyRules).
var rules = []rbacv1.PolicyRule{{
	APIGroups: []string{"*"}, Resources: []string{"*"},
	Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
}}

// everything is what Argo CD requires for the whole cluster.
var everything = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}

// credential returns the kubeconfig that carrick gives to Argo CD. If the admin's kubeconfig context has the same
// server address, the CA comes from that context, as in argocd cluster add (cmd/util/cluster.go, NewCluster). Otherwise
// the CA comes from the token Secret.
func credential(ctx context.Context, e steps.Env) (any, error) {
	s, err := e.Cluster.Secret(ctx, account(e).Namespace, tokenName(e), "token", "ca.crt")
	if apierrors.IsNotFound(err) || err == nil && s.Data["token"].IsZero() {
		return nil, steps.Absent("Secret %s/%s has no token yet", account(e).Namespace, tokenName(e))
	} else if err != nil {
		return nil, err
	}
	ca := []byte(s.Data["ca.crt"].Reveal())
	if server(e) == strings.TrimRight(e.Cluster.Server(), "/") {
		ca = e.Cluster.CA()
	}
	return kubeconfig.Config{Server: server(e), CA: ca, Token: s.Data["token"]}.Bytes(), nil
}

func namespacesExist(ctx context.Context, e steps.Env) (r steps.Result) {
	for _, ns := range deploysTo(e) {
		r = check.Exists(ctx, e.Cluster, check.Namespaces, "", ns, "namespace "+ns, e.Kubectl()+" create namespace "+ns)
		if r.Status != steps.Pass {
			break
		}
	}
	return r
}

func replaceToken(e steps.Env) string {
	return e.Kubectl() + " -n " + account(e).Namespace + " delete secret " + tokenName(e) +
		"    # then carrick apply " + e.LinkFile()
}

func tokenSecret(ctx context.Context, e steps.Env) steps.Result {
	s, err := e.Cluster.Secret(ctx, account(e).Namespace, tokenName(e))
	if err != nil {
		return check.Missing(err, "Secret "+account(e).Namespace+"/"+tokenName(e), "")
	}
	return check.TokenSecret(e, s, account(e).Name, replaceToken(e), "token", "ca.crt")
}

func serverAddress(_ context.Context, e steps.Env) steps.Result {
	_, host := check.ServerOf(kubeconfig.Config{Server: server(e)})
	own, err := e.Peer.Text(check.ServerFact)
	if check.InsideOnly(host) || check.OnLoopback(server(e)) && (err != nil || !check.OnLoopback(own)) {
		return steps.Failed(server(e)+" points Argo CD's pods to themselves or to their own cluster",
			"set destination.server to an address that Argo CD's pods can reach")
	}
	return steps.Passed("%s", server(e))
}

func serverTLS(ctx context.Context, e steps.Env) steps.Result {
	k, err := check.Kubeconfig(e, "credential")
	if err != nil {
		return steps.Errored(err)
	}
	_, r := check.ServerTrusted(ctx, k, func(shown probe.TLSReport, _ string) string {
		return "set destination.server to a name in the certificate: " + check.Some(shown.Names)
	})
	return r
}

// roles checks that the roles of the ServiceAccount grant what permissions asks the API server for. carrick watches the
// roles and their bindings, and asks the API server only once a minute.
func roles(ctx context.Context, e steps.Env) steps.Result {
	in, need, mend := []string{""}, everything, "cluster-role"
	if limited(e) {
		in, need, mend = deploysTo(e), rules, "roles"
	}
	who := "ServiceAccount " + account(e).Namespace + "/" + account(e).Name
	r := steps.Skipped("no namespace is configured")
	for _, ns := range in {
		of, err := check.Granted(ctx, e.Cluster, ns, account(e).Is)
		if err != nil {
			return steps.Errored(err)
		}
		if len(of) == 0 {
			missing := "ClusterRoleBinding"
			if ns != "" {
				missing = "RoleBinding in " + ns
			}
			return steps.Undone(who + " has no " + missing).FixedBy(mend)
		}
		if r = check.Covers(of, need); r.Status != steps.Pass {
			if ns != "" {
				r.Found = ns + ": " + r.Found
			}
			return r.FixedBy(mend)
		}
	}
	return r
}

func permissions(ctx context.Context, e steps.Env) steps.Result {
	as, err := check.WithKubeconfig(e, "credential")
	if err != nil {
		return steps.Errored(err)
	}
	refused := func() steps.Result { return steps.Failed(server(e)+" rejects the token (401)", replaceToken(e)) }
	other := func(who string) steps.Result { return steps.Failed("the token belongs to "+who, replaceToken(e)) }
	if r := check.AuthenticatesAs(ctx, as, account(e).Username(), refused, other); r.Status != steps.Pass {
		return r
	}
	need, mend := check.Verbs("*", "*", "", "*"), "cluster-role"
	if limited(e) {
		need, mend = nil, "roles"
	}
	for _, ns := range deploysTo(e) {
		need = append(need, check.Verbs("*", "*", ns, rules[0].Verbs...)...)
	}
	return check.MayI(ctx, as, need, "").FixedBy(mend)
}

func nothingBeyond(ctx context.Context, e steps.Env) steps.Result {
	as, err := check.WithKubeconfig(e, "credential")
	if err != nil {
		return steps.Errored(err)
	}
	meant := map[string][]rbacv1.PolicyRule{}
	asked := append([]string{account(e).Namespace, "default", "kube-system"}, deploysTo(e)...)
	for _, ns := range deploysTo(e) {
		meant[ns] = rules
	}
	slices.Sort(asked)
	who := steps.Quoted(account(e).Name + "|system:(serviceaccounts|authenticated)")
	return check.OnlyWithin(ctx, as, meant, slices.Compact(asked),
		e.Kubectl()+" get rolebindings,clusterrolebindings -A -o wide | grep -E "+who)
}
