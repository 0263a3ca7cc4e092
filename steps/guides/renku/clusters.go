package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
)

func clusters() steps.Step {
	return steps.Step{
		Name: "clusters", Title: "Clusters",
		Map: steps.MapRow{Local: "API, namespace", Remote: "API, permissions"},
		Why: "Renku runs on the local cluster, and its sessions on the remote one. Both clusters must answer, be " +
			"different, and grant you the permissions this guide needs.",
		Ask: []steps.Question{
			{
				Key: "renku.namespace", Title: "Renku's namespace on the local cluster", Kind: steps.Namespace,
				Adopt:   adoptNamespace,
				Help:    "The namespace where the Renku chart is installed. carrick creates the kubeconfigs Secret there.",
				Default: steps.Fixed("renku", "the chart's usual name"),
			},
			{
				Key: "renku.domain", Title: "Renku's domain", Kind: steps.HostName, Opt: true,
				Help:    "The host name of the Renku portal, without https://. Sessions must be able to reach it.",
				Default: domainOfRelease,
			},
			{
				Key: "sessions.namespace", Title: "Session namespace on the remote cluster", Kind: steps.Namespace,
				On:      steps.Remote,
				Adopt:   adoptSessions,
				Check:   checkSessionsNamespace,
				Help:    "carrick creates the namespace if it does not exist.",
				Default: steps.Fixed("renku-user-sessions", "the published guide"),
			},
		},
		Facts: slices.Concat(check.Identity(), releaseFacts(), versionFacts(), givenFacts()),
		Checks: []steps.Check{
			check.Reachable(),
			check.SignedIn(),
			check.AtLeast(
				24,
				"Older versions create token Secrets automatically and have no Pod Security levels. Renku's charts are tested on "+
					"newer versions.",
			),
			check.Clock(),
			check.NotTheSame(),
			localNamespace(),
			mayOnRemote(),
			mayOnLocal(),
		},
	}
}

// domainOfRelease returns the domain in Renku's Helm release without its port.
func domainOfRelease(e steps.Env) (any, string) {
	domain, err := e.Own.Text("renku-domain")
	if err != nil {
		return nil, ""
	}
	host, _ := splitDomain(domain)
	return host, "Renku's Helm release"
}

// checkSessionsNamespace rejects Kubernetes' own namespaces, because Renku's kubeconfig can read
// all Secrets in the session namespace.
func checkSessionsNamespace(v string) error {
	if v == "default" || strings.HasPrefix(v, "kube-") {
		return fmt.Errorf(
			"%q belongs to Kubernetes, and Renku's kubeconfig could read its Secrets: use a dedicated namespace for sessions", v,
		)
	}
	return nil
}

func localNamespace() steps.Check {
	return steps.Check{
		Name: "renku-namespace", Title: "Renku's namespace exists", On: steps.Local, Needs: []string{"signed-in"},
		Why: "Renku reads the kubeconfig from a Secret in this namespace.",
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			ns := renkuNamespace(e)
			return check.Exists(ctx, e.Cluster, check.Namespaces, "", ns, "namespace "+ns,
				e.Kubectl()+" get deployments -A -l app=renku-data-service    # then set renku.namespace to the namespace of that "+
					"Deployment")
		},
	}
}

func mayOnRemote() steps.Check {
	return steps.Check{
		Name: "admin-permissions", Title: "You have the permissions this guide needs", On: steps.Remote,
		Needs: []string{"signed-in"},
		Why:   "A missing permission would leave the setup half-finished.", Permissions: true,
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			ns := e.Answers.Text("sessions.namespace")
			e.Cluster.WillRead(check.APIServices, "")
			e.Cluster.WillRead(check.Services, "")
			e.Cluster.WillRead(check.RoleBindings, "")
			e.Cluster.WillRead(check.ClusterRoleBindings, "")
			e.Cluster.WillRead(check.Secrets, ns)
			e.Cluster.WillRead(statefulSets, ns)
			e.Cluster.WillRead(check.VolumeClaims, ns)
			e.Cluster.WillRead(check.Ingresses, ns)
			rights := slices.Concat(
				check.Verbs("", "namespaces", "", "get", "create", "patch"),
				check.Verbs("scheduling.k8s.io", "priorityclasses", "", "get", "create", "patch"),
				check.Verbs("rbac.authorization.k8s.io", "clusterroles", "", "get", "create", "patch"),
				check.Verbs("rbac.authorization.k8s.io", "clusterrolebindings", "", "get", "create", "patch"),
				check.Verbs("", "serviceaccounts", ns, "get", "create", "patch"),
				check.Verbs("", "secrets", ns, "get", "create", "patch"),
				check.Verbs("rbac.authorization.k8s.io", "roles", ns, "get", "create", "patch"),
				check.Verbs("rbac.authorization.k8s.io", "rolebindings", ns, "get", "create", "patch"),
				check.Verbs("networking.k8s.io", "networkpolicies", ns, "get", "create", "patch"),
			)
			return check.MayMake(ctx, e, e.SideName()+" cluster", rights)
		},
	}
}

func mayOnLocal() steps.Check {
	return steps.Check{
		Name: "secret-permissions", Title: "You can create a Secret in Renku's namespace", On: steps.Local,
		Needs: []string{"signed-in"},
		Why:   "Renku reads the kubeconfig from a Secret in its own namespace.", Permissions: true,
		Run: func(ctx context.Context, e steps.Env) steps.Result {
			ns := renkuNamespace(e)
			rights := slices.Concat(
				check.Verbs("", "secrets", ns, "get", "create", "patch"),
				check.Verbs("apps", "deployments", ns, "get", "list", "patch"),
				check.Verbs("", "pods", ns, "get", "list"),
				check.Verbs("", "pods/log", ns, "get"), // needed to check that the services loaded the kubeconfig
			)
			return check.MayMake(ctx, e, e.SideName()+" cluster", rights)
		},
	}
}
