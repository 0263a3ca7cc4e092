package ondemand

import (
	"strings"

	"carrick/steps"
)

// Names that are hard-coded in upstream's hooks and roles.
const (
	namespace   = "ondemand" // the namespace of the ServiceAccount
	account     = "ondemand" // the ServiceAccount, its ClusterRole and the binding
	initializer = "ood-initializer"
	userRole    = "ood-user"
	userLabel   = "app.kubernetes.io/name"
	userValue   = "open-ondemand" // value of userLabel on users' namespaces
)

// Paths on the web node.
const (
	clustersFolder = "/etc/ood/config/clusters.d"
	hookEnv        = "/etc/ood/config/hook.env"
	wrongHookEnv   = "/etc/ood/config/hooks.env" // wrong name that the published guide uses in three places
	portalFile     = "/etc/ood/config/ood_portal.yml"
	registryFile   = "/etc/ood/config/image-registry.json"
	hooksFolder    = "/opt/ood/hooks/k8s-bootstrap" // upstream's hooks; the package owns them
	siteHooks      = "/etc/ood/hooks"               // the site's own hooks
	rootKubeconfig = siteHooks + "/kubeconfig"      // static: it refers to the two files below
	rootToken      = siteHooks + "/token"           // rotating: rewritten at each renewal
	clusterCA      = siteHooks + "/cluster-ca.crt"  // world-readable, because users' kubectl also reads it
	preHook        = siteHooks + "/k8s-pre-hook.sh"
	renewScript    = siteHooks + "/renew-token.sh"
	passwdFile     = "/etc/passwd"
)

// userNamespace returns the namespace that the adapter uses for user. Since ood_core v0.27.0 the adapter replaces dots
// and at signs with dashes.
func userNamespace(e steps.Env, user string) string {
	return namespacePrefix(e) + strings.NewReplacer(".", "-", "@", "-").Replace(user)
}

// hookNamespace returns the namespace that the hook creates for user. The hook uses the login name unchanged.
func hookNamespace(e steps.Env, user string) string { return namespacePrefix(e) + user }

func namespacePrefix(e steps.Env) string { return e.Answers.Text("users.namespace-prefix") }
func usernamePrefix(e steps.Env) string  { return e.Answers.Text("users.username-prefix") }
func clusterPath(e steps.Env) string {
	return clustersFolder + "/" + e.Answers.Text("cluster.id") + ".yml"
}

// auth returns cluster.auth: how portal users authenticate at the API server (oidc, managed or gke).
func auth(e steps.Env) string { return e.Answers.Text("cluster.auth") }

func withOIDC(e steps.Env) bool { return auth(e) == "oidc" }
