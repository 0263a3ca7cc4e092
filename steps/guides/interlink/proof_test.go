package interlink_test

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/stepstest"
)

// random matches the parts of a state that differ between runs: certificates and their hashes (in the inventory, too),
// cluster IPs, and the duration of the watch.
const random = `(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----` +
	`|"carrick/[a-z.-]+":"[0-9a-f]{12}"|"clusterIPs?":("[^"]*"|\[[^]]*\])|heldSeconds: [0-9.]+|\\"wrote\\":\[[^]]*\]`

// proof covers all objects that the guide creates, including those of the watch and the Role for Argo. Requests to the
// endpoint do not pass through the proxy that injects faults. They reach the API server by another route, which is the
// purpose of the endpoint.
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
