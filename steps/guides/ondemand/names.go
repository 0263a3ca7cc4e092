package ondemand

import (
	"strings"

	"carrick/steps"
)

// What upstream's hooks and roles hard-code.
const (
	namespace   = "ondemand" // of the ServiceAccount
	account     = "ondemand" // the ServiceAccount, its ClusterRole and the binding
	initializer = "ood-initializer"
	userRole    = "ood-user"
	userLabel   = "app.kubernetes.io/name"
	userValue   = "open-ondemand" // of userLabel: a namespace of a user
)

// Where things stand on the web node.
const (
	clustersFolder = "/etc/ood/config/clusters.d"
	hookEnv        = "/etc/ood/config/hook.env"
	wrongHookEnv   = "/etc/ood/config/hooks.env" // as the published page says in three places
	portalFile     = "/etc/ood/config/ood_portal.yml"
	registryFile   = "/etc/ood/config/image-registry.json"
	hooksFolder    = "/opt/ood/hooks/k8s-bootstrap" // upstream's hooks; the package owns them
	siteHooks      = "/etc/ood/hooks"               // the site's own
	rootKubeconfig = siteHooks + "/kubeconfig"      // static: it names the two files below
	rootToken      = siteHooks + "/token"           // rotating: the renewal writes it
	clusterCA      = siteHooks + "/cluster-ca.crt"  // readable by all: users' kubectl reads it, too
	preHook        = siteHooks + "/k8s-pre-hook.sh"
	renewScript    = siteHooks + "/renew-token.sh"
	passwdFile     = "/etc/passwd"
)

// userNamespace is the namespace that the adapter uses for a user: since ood_core
// v0.27.0 a dot and an at sign become dashes.
func userNamespace(e steps.Env, user string) string {
	return namespacePrefix(e) + strings.NewReplacer(".", "-", "@", "-").Replace(user)
}

// hookNamespace is the namespace that the hook makes for a user: as the name stands.
func hookNamespace(e steps.Env, user string) string { return namespacePrefix(e) + user }

func namespacePrefix(e steps.Env) string { return e.Answers.Text("users.namespace-prefix") }
func usernamePrefix(e steps.Env) string  { return e.Answers.Text("users.username-prefix") }
func clusterPath(e steps.Env) string {
	return clustersFolder + "/" + e.Answers.Text("cluster.id") + ".yml"
}

// auth is how users of the portal authenticate at the API server.
func auth(e steps.Env) string { return e.Answers.Text("cluster.auth") }

// withOIDC is the When of all that only auth type oidc needs.
func withOIDC(e steps.Env) bool { return auth(e) == "oidc" }
