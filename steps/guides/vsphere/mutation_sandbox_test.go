package vsphere_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/vsphere"
	"carrick/steps/stepstest"
)

func asText(v any) string { return fmt.Sprint(v) }

// ways maps names of cycles to their answers. Before apply, ReadWriteMany claims stay Pending and
// profiles have no pod security level. After apply, the claims of a new profile get the shared
// StorageClass, from a policy or from the extension, which runs as a real process that the API
// server calls. Each cycle ends with an undo.
var ways = map[string]map[string]any{
	"own": {
		"claim.pods": false, "mutation.method": "webhook", "extension.image": "registry.example.org/carrick:v1",
		"cert.source": "own", "mutation.failure-policy": "Fail",
	},
	"cert-manager": {
		"claim.pods": false, "mutation.method": "webhook", "extension.image": "registry.example.org/carrick:v1",
		"cert.source": "cert-manager", "extension.replicas": 1,
	},
	"policy": {"profile.test": true},
	"ignored": {
		"profile.test": true, "profile.name": "carol", "profile.owner": "carol@example.com",
		"mutation.failure-policy": "Ignore",
		"mutation.replaces":       []string{"vsphere-policy", "vsphere-policy-latebinding"},
	},
	"wide": {"security.level": "privileged", "mutation.selector": "pipelines.kubeflow.org/enabled=true"},
}

// others lists the actions that the cycle of make test does not undo. Those of otherWays in make verify do.
var (
	others    = []string{"profile", "policy", "claim-pods", "cert-managed"}
	otherWays = []string{"cert-manager", "policy"}
)

// notInCycles lists the actions that no cycle covers. Some are for PodSecurityPolicies, which no
// API server of the sandbox serves, or for the published program, whose image is not available.
// Others have nothing to undo: a deletion and a file that is only exported.
var notInCycles = []string{
	"nfs-psp", "claim-psp", "psp-bindings", "extension-psp", "extension-upstream-psp",
	"cert-password", "extension-config", "extension-upstream", "extension-upstream-roles",
	"extension-roles", "leftovers", "kyverno-file",
}

func TestCycle(t *testing.T) {
	stepstest.FirstCycle(t, vsphere.Guide(), "own", slices.Concat(notInCycles, others), cycle)
}

func TestVerifyOtherCycles(t *testing.T) {
	stepstest.OtherCycles(t, otherWays, others, cycle)
}

func TestVerifyCycles(t *testing.T) {
	stepstest.Live(t, "cycle", stepstest.Except(ways, append([]string{"own"}, otherWays...)),
		func(t *testing.T, _ *clustertest.Sandbox, name string) { cycle(t, name) })
}

func cycle(t *testing.T, name string) []string {
	box := seeded(t, "")
	more := maps.Clone(ways[name])
	more["storage.source"] = "nfs"
	return stepstest.CycleOver(t, box, vsphere.Guide(), assets, name, stepstest.Given(t, box, vsphere.Guide(), more))
}

// The verdicts on claims follow manual changes of the policy and its binding.
func TestVerifyClaimsFollowThePolicy(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	s := doing(
		t, box,
		map[string]any{"storage.source": "class", "storage.class": "vsphere-policy-latebinding", "mutation.method": "policy"},
		"try-namespace", "policy",
	)
	verdict(t, s, "rwx-gets-class", steps.Pass)
	verdict(t, s, "rwo-keeps-class", steps.Pass)
	verdict(t, s, "static-keeps", steps.Pass)
	box.Run(t, clustertest.Local, "", "delete", "mutatingadmissionpolicybinding", "rwx-storage-class")
	verdict(t, s, "policy-exists", steps.Fail)
	verdict(t, s, "rwx-gets-class", steps.Fail)
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"policy"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	verdict(t, s, "rwx-gets-class", steps.Pass)
	box.Run(t, clustertest.Local, "", "patch", "mutatingadmissionpolicybinding", "rwx-storage-class", "--type=merge", "-p",
		`{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"carrick-rwx"}}}}}`)
	verdict(t, s, "policy-exists", steps.Fail)
	v := verdict(t, s, "rwx-gets-class", steps.Fail) // of the profile that is asked first after the API server has seen it
	if !strings.Contains(v.Found, "gets vsphere-policy in namespace alice") &&
		!strings.Contains(v.Found, "gets vsphere-policy in namespace bob") {
		t.Errorf("of a binding to carrick-rwx alone it says %s", v.Found)
	}
	if p, err = s.Plan(t.Context(), engine.Scope{Actions: []string{"policy"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	verdict(t, s, "policy-exists", steps.Pass)
	verdict(t, s, "rwx-gets-class", steps.Pass)
	box.Run(t, clustertest.Local, "", "patch", "mutatingadmissionpolicy", "rwx-storage-class", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/matchConditions/0/expression","value":"true"},{"op":"replace","path":"/spec/matchConditions/1/expression","value":"true"}]`)
	verdict(t, s, "rwo-keeps-class", steps.Fail)
	verdict(t, s, "static-keeps", steps.Fail)
	stepstest.Undo(t, s)
}

// carrick exports the policy for Kyverno, but does not apply it.
func TestVerifyThePolicyForKyvernoIsWrittenOut(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t, "")
	s := stepstest.Open(
		t, box, vsphere.Guide(), assets, "kyverno",
		stepstest.Given(t, box, vsphere.Guide(), map[string]any{"storage.source": "nfs", "mutation.method": "kyverno"}),
	)
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"kyverno-file", "policy"}})
	if err != nil || !p.Empty() || len(p.Actions) != 1 {
		t.Fatalf("%v: %+v", err, p)
	}
	all, err := s.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written, labels := false, false
	for _, a := range all.Actions {
		for _, thing := range a.Things {
			written = written || (a.Action == "kyverno-file" && thing.Object != nil && thing.Object.GetKind() == "ClusterPolicy")
			labels = labels || (a.Action == "profile-labels" && thing.Path == "namespace-labels.yaml")
		}
	}
	if !written || !labels {
		t.Errorf("written is the policy: %v, the labels: %v", written, labels)
	}
}

// Without ready pods of the webhook, claims bypass the webhook or are rejected, and the check
// reports which.
func TestVerifyClaimsFollowTheWebhook(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.SeedFault(t, "vsphere", "webhook")
	s := stepstest.SiteOf(t, box, vsphere.Guide(), assets, true, map[string]any{}).Session
	scale := func(n int) {
		box.Run(
			t, clustertest.Local, "", "-n", "vsphere-extensions", "scale", "deployment", "vsphere-extensions",
			fmt.Sprintf("--replicas=%d", n),
		)
	}
	verdict(t, s, "silent-failure", steps.Pass)
	for _, way := range []struct{ policy, found string }{
		{"Ignore", "is silently skipped"}, {"Fail", "are now rejected"},
	} {
		box.Run(
			t, clustertest.Local, "", "patch", "mutatingwebhookconfiguration", "mutating.vsphere-extensions.keeyzar.de",
			"--type=json", "-p",
			`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"`+way.policy+`"}]`,
		)
		scale(0)
		if v := verdict(t, s, "silent-failure", steps.Fail); !strings.Contains(v.Found, way.found) {
			t.Errorf("with failurePolicy %s it says %s", way.policy, v.Found)
		}
		verdict(t, s, "rwx-gets-class", steps.Fail)
		scale(2)
		verdict(t, s, "silent-failure", steps.Pass)
		verdict(t, s, "rwx-gets-class", steps.Pass)
	}
}

// Without the link file, carrick finds an existing setup with a policy and adopts the answers that
// created it.
func TestVerifyAPolicyIsFoundAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box := seeded(t, "")
	made := stepstest.Open(
		t, box, vsphere.Guide(), assets, "again", stepstest.Given(t, box, vsphere.Guide(), map[string]any{
			"storage.source": "nfs", "mutation.failure-policy": "Ignore",
			"mutation.replaces": []string{"vsphere-policy", "vsphere-policy-latebinding"},
			"mutation.selector": "pipelines.kubeflow.org/enabled=true",
			"security.level":    "privileged", "profile.test": true, "profile.name": "carol",
			"profile.owner": "carol@example.com",
		}),
	)
	stepstest.Apply(t, made, steps.ApplyOptions{TakeOver: true})
	found := stepstest.Open(t, box, vsphere.Guide(), assets, "again", nil)
	if _, err := found.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, got, looked := answersOf(t, made), answersOf(t, found), 0
	for key := range want {
		for _, step := range []string{"security.", "mutation.", "profile."} {
			if strings.HasPrefix(key, step) {
				if looked++; got[key] != want[key] {
					t.Errorf("%s is %q, and found is %q", key, want[key], got[key])
				}
			}
		}
	}
	if looked < 8 {
		t.Errorf("%d answers: this proves nothing", looked)
	}
	stepstest.Undo(t, found)
}
