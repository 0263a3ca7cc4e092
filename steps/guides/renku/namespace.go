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
			Name: "namespace", Title: "The session namespace exists", On: steps.Remote, FixedBy: "namespace",
			Needs:      []string{"signed-in"},
			Why:        "Sessions, their ServiceAccount and their quotas are created in this namespace.",
			References: []string{page},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return check.NamespaceActive(ctx, e, sessionsNamespace(e))
			},
		},
		{
			Name: "pod-security", Title: "The namespace enforces Pod Security level baseline", On: steps.Remote,
			Needs: []string{"namespace"}, FixedBy: "namespace",
			Why: "The restricted level rejects session containers, which set no seccomp profile. A level below baseline lets " +
				"Renku's kubeconfig control the nodes.",
			References: []string{"SwissDataScienceCenter/amalthea: api/v1alpha1 (session container)"},
			Run:        podSecurity,
		},
		{
			Name: "other-quotas", Title: "No quota or LimitRange rejects sessions", On: steps.Remote,
			Needs: []string{"namespace"},
			Why: "A quota that is too small rejects session pods. Sessions set no CPU limit, so a quota with limits.cpu " +
				"also rejects them unless a LimitRange sets a default.",
			References: []string{
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/api.spec.yaml (cpu_limit_factor)",
			},
			Run: otherQuotas,
		},
		{
			Name: "session-service-account", Title: "The ServiceAccount that sessions run as exists", On: steps.Remote,
			Needs: []string{"namespace"},
			Why: "Renku names the ServiceAccount in each session but does not create it. On OpenShift this account must be " +
				"allowed to use the SCC nonroot-v2.",
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
		return steps.Failed(fmt.Sprintf("namespace %s enforces Pod Security level restricted", name), fix)
	case "baseline":
		return steps.Passed("namespace %s enforces Pod Security level baseline", name)
	case "":
		return steps.Warned(
			"namespace "+name+" sets no Pod Security level. Unless the cluster sets a default level, Renku's kubeconfig can "+
				"create privileged pods",
			fix,
		)
	default:
		return steps.Warned(
			fmt.Sprintf(
				"namespace %s enforces Pod Security level %s, so Renku's kubeconfig can create privileged pods", name,
				clean.Text(level),
			), fix,
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
