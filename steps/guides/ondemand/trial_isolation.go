package ondemand

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/bearer"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

func isolationChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "user-permissions", Title: "The trial user is allowed to run apps in their namespace", On: steps.Remote,
			From: "the API server's authorizer", When: hasTrialUser, Needs: []string{"user-bindings", "users-role"},
			Why:        "The adapter makes all calls with the user's own credentials.",
			References: []string{"OSC/ood_core: lib/ood_core/job/adapters/kubernetes/batch.rb"},
			Run:        userMay,
		},
		{
			Name: "user-denied", Title: "The trial user has no access to another user's namespace", On: steps.Remote,
			From: "the API server's authorizer", When: triedBoth, Needs: []string{"signed-in"},
			Why:        "The Secrets in another user's namespace contain the passwords of that user's running apps.",
			References: []string{rolesSource},
			Run:        userMayNot,
		},
		{
			Name: "user-isolation", Title: "The trial user cannot list objects across namespaces", On: steps.Remote,
			From: "the API server's authorizer", When: hasTrialUser, Needs: []string{"signed-in"},
			Why:        "With a ClusterRoleBinding for ood-user instead of RoleBindings, each user can read everyone's Secrets.",
			References: []string{rolesSource},
			Run:        userSeesNoOther,
		},
		{
			Name: "username-prefix", Title: "The API server uses the bare login name of a user", On: steps.Remote,
			From: "the API server, with the user's token", When: hasUserToken, Needs: []string{"signed-in"},
			Why: "Without --oidc-username-prefix=- the API server prefixes the name with the issuer unless the name is an " +
				"email. The hook's RoleBindings then do not match.",
			References: []string{
				"https://kubernetes.io/docs/reference/access-authn-authz/authentication/#configuring-the-api-server",
				hookSource + "/rolebinding.yaml",
			},
			Run: userNamePlain,
		},
	}
}

func hasUserToken(e steps.Env) bool {
	return withOIDC(e) && !e.Answers.Masked("oidc.user-token").IsZero()
}

// asUser returns the trial user for SubjectAccessReviews. carrick does not know the user's groups from the issuer.
func asUser(e steps.Env) cluster.User {
	return cluster.User{Name: e.Answers.Text("trial.user"), Groups: []string{"system:authenticated"}}
}

// forApps returns the permissions that the adapter needs to run a user's apps in the namespace ns.
func forApps(ns string) []permission.Rule {
	return slices.Concat(
		check.Verbs("", "pods", ns, "create", "get", "list", "watch", "delete"),
		check.Verbs("", "services", ns, "create", "get", "delete"),
		check.Verbs("", "configmaps", ns, "create", "get", "delete"),
		check.Verbs("", "secrets", ns, "create", "get", "delete"),
		[]permission.Rule{{Verb: "get", Resource: "pods", Subresource: "log", Namespace: ns}},
	)
}

// seesAll reports whether the answers allow users to see the pods of all namespaces.
func seesAll(e steps.Env) bool { return e.Answers.Bool("clusterfile.all-namespaces") }

func readsPods(r permission.Rule) bool {
	return r.Resource == "pods" && r.Subresource == "" && slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

// decided asks the API server whether the trial user has the permissions in rights. want is the expected decision.
// Unexpected decisions are cached only briefly.
func decided(ctx context.Context, e steps.Env, want bool, rights []permission.Rule) (may, mayNot []string, err error) {
	all, err := e.Cluster.CanAs(ctx, asUser(e), want, rights...)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range all {
		switch {
		case d.Err != nil:
			return nil, nil, d.Err
		case d.Allowed:
			may = append(may, d.Rule.String())
		default:
			mayNot = append(mayNot, d.Rule.String())
		}
	}
	return may, mayNot, nil
}

func userMay(ctx context.Context, e steps.Env) steps.Result {
	user, ns := trialUser(e)
	may, mayNot, err := decided(ctx, e, true, forApps(ns))
	if err != nil {
		return steps.Errored(err)
	}
	if len(mayNot) > 0 {
		return steps.Failed(
			fmt.Sprintf("%s is not allowed to %s", user, few(mayNot)),
			e.Kubectl()+" -n "+ns+" get rolebindings -o wide    # then "+recreateFix(e, user),
		)
	}
	return steps.Passed("%s has all %d permissions in %s", user, len(may), ns)
}

func userMayNot(ctx context.Context, e steps.Env) steps.Result {
	user, other := e.Answers.Text("trial.user"), hookNamespace(e, e.Answers.Text("trial.other"))
	if other == hookNamespace(e, user) {
		return steps.Skipped("trial.user and trial.other are the same user")
	}
	rights := forApps(other)
	if seesAll(e) {
		rights = slices.DeleteFunc(rights, func(r permission.Rule) bool { return readsPods(r) })
	}
	may, mayNot, err := decided(ctx, e, false, rights)
	if err != nil {
		return steps.Errored(err)
	}
	if len(may) > 0 {
		return steps.Failed(
			fmt.Sprintf("%s is allowed to %s", user, few(may)),
			e.Kubectl()+" get clusterrolebindings,rolebindings -A -o wide | grep -e "+steps.Quoted(user)+
				" -e system:authenticated    # delete the unintended binding",
		)
	}
	return steps.Passed(
		"%s has none of %d permissions in %s (without groups from the issuer, which are unknown here)", user, len(mayNot),
		other,
	)
}

func userSeesNoOther(ctx context.Context, e steps.Env) steps.Result {
	user := e.Answers.Text("trial.user")
	grave := slices.Concat(
		check.Verbs("", "secrets", "", "list"), check.Verbs("", "configmaps", "", "list"),
		check.Verbs("", "pods", "", "create", "delete"),
		check.Verbs("rbac.authorization.k8s.io", "rolebindings", hookNamespace(e, user), "create"),
		check.Verbs("", "namespaces", "", "create", "delete", "patch"),
	)
	may, _, err := decided(ctx, e, false, grave)
	if err != nil {
		return steps.Errored(err)
	}
	fix := e.Kubectl() + " get clusterrolebindings -o wide | grep -e " + userRole + " -e " + steps.Quoted(user) +
		" -e system:authenticated    # delete the unintended binding"
	if len(may) > 0 {
		return steps.Failed(fmt.Sprintf("%s is allowed to %s", user, few(may)), fix)
	}
	seen, _, err := decided(ctx, e, seesAll(e), check.Verbs("", "pods", "", "list"))
	if err != nil {
		return steps.Errored(err)
	}
	if len(seen) > 0 && !seesAll(e) {
		return steps.Warned(
			user+" is allowed to list pods in all namespaces, but all_namespaces in the cluster file is false",
			fix+"; or set clusterfile.all-namespaces to yes",
		)
	}
	if len(seen) > 0 {
		return steps.Passed(
			"%s is allowed to list pods in all namespaces, as all_namespaces in the cluster file requires, but has no other "+
				"permissions across namespaces",
			user,
		)
	}
	return steps.Passed("%s has no permissions across namespaces", user)
}

// userNamePlain verifies that the API server authenticates a real user's token as the plain login name.
func userNamePlain(ctx context.Context, e steps.Env) steps.Result {
	all := userTokens(e)
	if len(all) == 0 {
		return steps.Skipped("no user token was given: --secret oidc.user-token=@FILE")
	}
	m := all[len(all)-1] // the renewed token, if there are two
	const fresh = "log in to the portal again and enter the new access token: --secret oidc.user-token=@FILE"
	if t, err := bearer.Parse(m); err == nil && t.Expired(time.Now()) {
		return steps.Skipped("the token of oidc.user-token expired on %s; %s", t.Expires.Local().Format(time.DateTime), fresh)
	}
	k := kubeconfig.Config{Name: "user", Server: e.Cluster.Server(), CA: e.Cluster.CA(), Token: m}
	as, err := e.Cluster.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		return steps.Errored(err)
	}
	who, err := as.WhoAmI(ctx)
	if apierrors.IsUnauthorized(err) {
		return steps.Failed(
			"the API server rejects the token of oidc.user-token: it expects another issuer or another client id (aud), or "+
				"does not use OIDC",
			"compare --oidc-issuer-url and --oidc-client-id of the API server with the token's iss and aud; see the step oidc",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	user := e.Answers.Text("trial.user")
	issuer, name, prefixed := strings.Cut(who.Name, "#")
	switch {
	case prefixed && strings.Contains(issuer, "://"):
		return steps.Failed(
			fmt.Sprintf("the API server authenticates the user as %s, with the issuer before the name %s", who.Name, name),
			"set --oidc-username-prefix=- on the API server; with an AuthenticationConfiguration: "+
				"claimMappings.username.prefix: \"\"",
		)
	case user != "" && who.Name == user:
		return steps.Passed("%s", who.Name)
	case user != "" && strings.HasSuffix(who.Name, user):
		return steps.Failed(
			fmt.Sprintf("the API server authenticates %s as %s, but the hook's RoleBindings name %s", user, who.Name, user),
			"remove the prefix (--oidc-username-prefix=- on the API server)",
		)
	case strings.Contains(who.Name, "@") || strings.Contains(who.Name, ":"):
		return steps.Failed(
			"the API server authenticates the user as "+who.Name+", which is not a login name",
			"set --oidc-username-claim to the claim that the portal maps to login names (preferred_username), and "+
				"--oidc-username-prefix=-",
		)
	}
	return steps.Passed("%s, the username in the token", who.Name)
}
