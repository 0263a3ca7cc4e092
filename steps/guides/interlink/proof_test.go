package interlink_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/stepstest"
)

// random are CAs and what follows from them, addresses that a cluster chooses, and how long to a tenth of a second.
const random = `(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----` +
	`|"carrick/[a-z.-]+":"[0-9a-f]{12}"|"clusterIPs?":("[^"]*"|\[[^]]*\])|heldSeconds: [0-9.]+`

// proof is of all that the guide makes, a watch and a role for Argo among it. What goes through the endpoint does not
// go through the proxy that is in trouble: it leads to the API server by another way, which is what the endpoint is
// for.
func proof() stepstest.Proof {
	p := stepstest.Proof{
		Bench: bench(), Random: random,
		Remade: &stepstest.Remade{
			Resource: "configmaps", Before: []string{"configmap"}, After: []string{"--from-literal=theirs=1"},
		},
	}
	answers := p.Answers
	p.Answers = func(tb testing.TB, box *clustertest.Sandbox, server string) map[string]any {
		out := answers(tb, box, server)
		out["test.watch"], out["workload.argo"] = 1, true
		return out
	}
	return p
}

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }
