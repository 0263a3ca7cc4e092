package ondemand_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/stepstest"
)

// proof returns the proof of the guide for the users carol and dave, who never log in. So only carrick creates objects
// for them, and the undo deletes these objects.
func proof() stepstest.Proof {
	p := stepstest.Proof{
		Bench: bench(), Theirs: ofUsers,
		Remade: &stepstest.Remade{Resource: "serviceaccounts", Before: []string{"serviceaccount"}},
		Blind:  map[steps.Side][]string{steps.Remote: {}}, Asked: []string{"idle.prometheus"},
	}
	answers := p.Answers
	p.Answers = func(tb testing.TB, box *clustertest.Sandbox, remote string) map[string]any {
		out := answers(tb, box, remote)
		out["trial.user"], out["trial.other"], out["trial.enabled"] = "carol", "dave", true
		out["idle.prometheus"] = "http://prometheus.monitoring:9090"
		return out
	}
	return p
}

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }
