package argocd_test

import (
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/steps/check"
	"carrick/steps/guides/argocd"
	"carrick/steps/stepstest"
)

func bench() stepstest.Bench { return benchOf("bench") }

func benchOf(link string) stepstest.Bench {
	const space = "argocd-manager"
	other := func(verb string) func(testing.TB, *cluster.Cluster) {
		return func(tb testing.TB, c *cluster.Cluster) {
			patch := `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["` + verb + `"]}]}`
			by := cluster.PatchOptions{Manager: "bench"}
			if _, err := c.Patch(tb.Context(), check.ClusterRoles, "", "argocd-"+link, []byte(patch), by); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return stepstest.Bench{
		Guide: argocd.Guide(), Assets: assets, Counted: space,
		Answers: func(_ testing.TB, _ *clustertest.Sandbox, remote string) map[string]any {
			return map[string]any{"destination.server": remote}
		},
		Reads: [][]string{
			{"get", "namespace", "kube-system"},
			{"get", "-n", space, "secret", "argocd-" + link + "-long-lived-token"},
			{"auth", "can-i", "create", "clusterroles"},
		},
		Breaks: "roles", Break: other("get"), FixedBy: other("*"),
	}
}

func BenchmarkPass(b *testing.B)   { bench().Pass(b) }
func BenchmarkIdle(b *testing.B)   { bench().Idle(b) }
func BenchmarkMemory(b *testing.B) { bench().Memory(b) }

func proof() stepstest.Proof { return stepstest.Proof{Bench: benchOf("proof"), SharedActions: true} }

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }

// opensOn are the checks that the troubles view opens on, by the fault that the demo begins with.
var opensOn = map[string]stepstest.First{
	"added-before":       {Check: "one-secret"},
	"controller-down":    {Check: "controller"},
	"egress-denied":      {Check: "egress"},
	"project-restricted": {Why: "no Application targets the cluster yet"},
}

func TestVerifyTroublesOpenOnTheCause(t *testing.T) {
	stepstest.FirstTroubles(t, argocd.Guide(), assets, opensOn)
}
