package vsphere_test

import (
	"testing"

	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

// rows lists the requirements of upstream and the checks that verify them.
var rows = []stepstest.Row{
	{Number: 1, Asks: "a guest cluster, not the Supervisor", Checks: []string{"guest-cluster", "supervisor-cluster"}},
	{Number: 2, Asks: "Kubernetes is new enough", Checks: []string{"version"}},
	{Number: 3, Asks: "PodSecurityPolicies or levels, by what is served", Checks: []string{"psp-or-labels"}},
	{
		Number: 4, Asks: "the role of the PodSecurityPolicy, and who may use it",
		Checks: []string{"psp-role", "psp-bound", "profile-bound"},
	},
	{Number: 5, Asks: "bindings that are left of PodSecurityPolicies", Checks: []string{"psp-leftovers"}},
	{
		Number: 6, Asks: "the level of each profile's namespace, and what a namespace without one refuses",
		Checks: []string{"profile-levels"},
	},
	{Number: 7, Asks: "what a level would say to pods that run", Checks: []string{"level-warnings"}},
	{
		Number: 8, Asks: "the labels file, whatever its name, and what is on namespaces",
		Checks: []string{"labels-file", "profile-labelled"},
	},
	{Number: 9, Asks: "istio-cni, where the level refuses init containers with rights", Checks: []string{"istio-cni"}},
	{Number: 10, Asks: "events of pods that are refused", Checks: []string{"pods-refused"}},
	{
		Number: 11, Asks: "profiles, their namespaces and owners", Checks: []string{"profiles-served", "profiles-namespaces"},
	},
	{Number: 12, Asks: "one default class, as it is declared", Checks: []string{"default-class", "declared-class"}},
	{
		Number: 13, Asks: "the class, and a provisioner of that name that runs",
		Checks: []string{"rwx-class", "provisioner-ready", "provisioner-name", "page-class"},
	},
	{Number: 14, Asks: "what is deleted with a claim", Checks: []string{"reclaim-policy"}},
	{
		Number: 15, Asks: "the NFS server takes connections, and exports the folder",
		Checks: []string{"nfs-port", "nfs-export"},
	},
	{
		Number: 16, Asks: "the export lets the guest in, and root write",
		Checks: []string{"nfs-export", "nfs-writes", "claim-events"},
	},
	{Number: 17, Asks: "nodes have mount.nfs", Checks: []string{"nfs-mount-helper", "claim-events"}},
	{
		Number: 18, Asks: "a claim is bound, and two pods on two nodes share it",
		Checks: []string{"claim-bound", "claim-shared", "native-rwx"},
	},
	{
		Number: 19, Asks: "the provisioner's rights, and its namespace's level",
		Checks: []string{"provisioner-rights", "provisioner-level"},
	},
	{
		Number: 20, Asks: "a certificate for the Service, its key, and a life",
		Checks: []string{"cert-secret", "cert-manager-ready", "cert-issued"},
	},
	{
		Number: 21, Asks: "the CA of the webhook has signed it, and is not the sample",
		Checks: []string{"cert-bundle", "cert-authority"},
	},
	{
		Number: 22, Asks: "the API server reaches ready pods by the Service",
		Checks: []string{"extension-endpoints", "extension-reached"},
	},
	{
		Number: 23, Asks: "it runs: its images, and who refuses its pods",
		Checks: []string{"extension-ready", "extension-image", "extension-namespace"},
	},
	{Number: 24, Asks: "its class, and started since that was written", Checks: []string{"extension-config"}},
	{Number: 25, Asks: "what the published sed left in file and ConfigMap", Checks: []string{"page-sed"}},
	{
		Number: 26,
		Asks: "rules, path, side effects, versions and selector of the webhook; of a policy: what it is asked " +
			"about, and where",
		Checks: []string{"webhook-rules", "policy-exists"},
	},
	{
		Number: 27, Asks: "calls that failed and were passed over; a webhook that fails without a word",
		Checks: []string{"webhook-failures", "silent-failure", "rwx-gets-class"},
	},
	{Number: 28, Asks: "what is not to be touched is not", Checks: []string{"rwo-keeps-class", "static-keeps"}},
	{
		Number: 29, Asks: "one that exchanges the class, and where it could be named",
		Checks: []string{"one-mutator", "source-class"},
	},
	{
		Number: 30, Asks: "the policy: served, there, bound, with a selector",
		Checks: []string{"policy-served", "policy-exists", "rwx-gets-class"},
	},
	{Number: 31, Asks: "claims that were made before", Checks: []string{"claims-pending"}},
	{
		Number: 32, Asks: "its token, and no more rights than it takes",
		Checks: []string{"extension-token", "extension-rights"},
	},
	{Number: 33, Asks: "no upgrade across 1.25 and 1.26 without levels", Checks: []string{"upgrade-crosses"}},
	{Number: 34, Asks: "tools that the published page needs", Checks: []string{"tools"}},
}

func TestRows(t *testing.T) {
	stepstest.Rows(t, vsphere.Guide(), "testdata", 34, rows)
	stepstest.EveryCheckHasARow(t, vsphere.Guide(), rows)
}
