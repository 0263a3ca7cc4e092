package renku

import (
	"context"
	"fmt"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	rcloneSpace = "csi-rclone"
)

func namespaceChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "namespace", Title: "the namespace of the sessions is there", On: steps.Remote, FixedBy: "namespace",
			Needs:      []string{"signed-in"},
			Why:        "sessions, their identity and their quotas live in it",
			References: []string{page},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return check.NamespaceActive(ctx, e, sessionsNamespace(e))
			},
		},
		{
			Name: "pod-security", Title: "the namespace enforces the pod security level baseline", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "namespace",
			Why: "session containers set no seccomp profile and no allowPrivilegeEscalation: the level restricted " +
				"refuses them. Below baseline, whoever has Renku's kubeconfig gets privileged pods, and with them the nodes",
			References: []string{"SwissDataScienceCenter/amalthea: api/v1alpha1 (session container)"},
			Run:        podSecurity,
		},
		{
			Name: "other-quotas", Title: "no quota or LimitRange refuses sessions", On: steps.Remote,
			Needs: []string{"namespace"},
			Why: "one that is too small refuses the pods or volumes of sessions. They have no CPU limit: under a quota " +
				"with limits.cpu Kubernetes refuses their pods (must specify limits.cpu), unless a LimitRange gives a default. " +
				"Rancher and OpenShift put such quotas into projects",
			References: []string{
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/api.spec.yaml (cpu_limit_factor)",
			},
			Run: otherQuotas,
		},
		{
			Name: "session-service-account", Title: "the ServiceAccount that sessions run as is there", On: steps.Remote,
			Needs: []string{"namespace"},
			Why:   "Renku names it in each session and makes none. OpenShift asks for one that may use the SCC nonroot-v2",
			References: []string{"SwissDataScienceCenter/renku-data-services: " +
				"components/renku_data_services/crc/api.spec.yaml (service_account_name)"},
			Run: sessionServiceAccount,
		},
	}
}

func podSecurity(ctx context.Context, e steps.Env) steps.Result {
	name := sessionsNamespace(e)
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", name)
	if err != nil {
		return steps.Errored(err)
	}
	fix := e.Kubectl() + " label --overwrite namespace " + name + " " + check.EnforceLabel + "=baseline"
	switch level := ns.GetLabels()[check.EnforceLabel]; level {
	case "restricted":
		return steps.Failed(fmt.Sprintf("%s enforces the level restricted", name), fix)
	case "baseline":
		return steps.Passed("%s enforces the level baseline", name)
	case "":
		return steps.Warned(
			name+" sets no level: where the cluster's own default is none, Renku's kubeconfig gets privileged pods", fix,
		)
	default:
		return steps.Warned(
			fmt.Sprintf("%s enforces the level %s: Renku's kubeconfig gets privileged pods", name, clean.Text(level)), fix,
		)
	}
}

func sessionServiceAccount(ctx context.Context, e steps.Env) steps.Result {
	name := e.Answers.Text("sessions.service-account")
	if name == "" {
		return steps.Skipped("sessions run as the namespace's default ServiceAccount (sessions.service-account is empty)")
	}
	ns := sessionsNamespace(e)
	return check.Exists(ctx, e.Cluster, check.ServiceAccounts, ns, name, "ServiceAccount "+ns+"/"+name,
		e.Kubectl()+" -n "+ns+" create serviceaccount "+name+
			"    # on OpenShift, then: oc adm policy add-scc-to-user nonroot-v2 -z "+name+" -n "+ns)
}
