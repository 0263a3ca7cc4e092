package interlink_test

import (
	"testing"

	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

func TestVerifyMutants(t *testing.T) {
	stepstest.Mutants(t, interlink.Guide(), assets, "testdata", harmless)
}

// harmless lists changes to a state that no check has to find.
var harmless = []stepstest.Harmless{
	{
		Where: `file /etc/systemd/system/slurm-plugin\.service: line 4 altered`,
		Why:   "another build of the same version",
	},
	{
		Where: `local ConfigMap default/carrick-test-(asked|watched): data one more`,
		Why:   "carrick reads its own key of the record and no other",
	},
	{
		Where: `local ConfigMap default/carrick-test-asked: data\[rules\.txt\] altered`,
		Why:   "it repeats for readers what asked.yaml records, which is read",
	},
	{
		Where: `local ConfigMap interlink-api/k8s-api-proxy: data one more`,
		Why:   "nginx reads nginx.conf, which includes no other file",
	},
	{
		Where: `local ConfigMap interlink/virtual-node-virtual-kubelet-config: data one more`,
		Why:   "the virtual kubelet reads its own file and no other",
	},
	{
		Where: `local Deployment .*: spec\.template\.metadata\.(annotations|labels) one more`,
		Why:   "other tools annotate and label pods; no one reads an unknown key",
	},
	{
		Where: `local NetworkPolicy interlink-api/k8s-api-proxy: spec\.egress added`,
		Why:   "policyTypes does not name Egress, so the rule has no effect",
	},
	{
		Where: `local .*: a (Cluster)?RoleBinding to cluster-admin of default/carrick-test-watch added`,
		Why:   "no token of the account is valid: each was bound to a Secret that is deleted when the watch ends",
	},
	{
		Where: `local default: a .* added`,
		Why:   "only the test runs there, and has ended; the next test would fail and say so",
	},
	{
		Where: `local interlink: a .* added`,
		Why:   "only the chart's virtual kubelet runs there: without it the node, which is read, is not ready",
	},
	{
		Where: `local interlink-api: a NetworkPolicy that denies everything added`,
		Why:   "policies add up on ingress; without egress the proxy answers nothing, and it is asked from outside",
	},
}
