package renku_test

import (
	"testing"

	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

func TestVerifyMutants(t *testing.T) {
	stepstest.Mutants(t, renku.Guide(), assets, "testdata", harmless)
}

// harmless lists changes that no check has to detect.
var harmless = []stepstest.Harmless{
	{
		Where: `local Pod renku/renku-data-tasks-1: status\.startTime altered`,
		Why:   "a service that started later has read the kubeconfig just as well",
	},
	{
		Where: `local Secret renku/renku-remote-clusters: data one more`,
		Why:   "it holds the kubeconfigs of other clusters, too",
	},
	{
		Where: `local renku: a (LimitRange|NetworkPolicy that .* everything) added`,
		Why:   "the namespace is Renku's own: what stops its pods or traffic stops its API, which is asked",
	},
	{
		Where: `remote ClusterRole renku-priorityclasses(: rules\[0\]\.verbs\[1\]|: rules\[1\])? deleted`,
		Why:   "carrick's own ClusterRole gives the same permissions",
	},
	{
		Where: `remote ClusterRoleBinding renku-priorityclasses deleted`,
		Why:   "carrick's own binding gives the same permissions",
	},
	{
		Where: `remote Namespace renku-user-sessions: status\.phase altered`,
		Why:   "a phase is Active or Terminating",
	},
	{
		Where: `remote NetworkPolicy renku-user-sessions/(egress|ingress): spec\.(egress|ingress)\[0\] deleted`,
		Why:   "carrick's own policy allows the same",
	},
	{
		Where: `remote NetworkPolicy .*-renku-v2-sessions: spec\.(in|e)gress added`,
		Why:   "policyTypes does not name that direction, so the rule has no effect",
	},
	{
		Where: `remote Node node-1: status\.nodeInfo\.kubeletVersion altered`,
		Why:   "another patch of the same version keeps its files in the same place",
	},
	{
		Where: `remote ValidatingAdmissionPolicyBinding .*: spec\.validationActions one more`,
		Why:   "API servers refuse other actions than Deny, Warn and Audit, and Deny stays",
	},
}
