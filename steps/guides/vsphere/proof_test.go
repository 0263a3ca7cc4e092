package vsphere_test

import (
	"testing"

	"carrick/steps/stepstest"
)

// random is what clusters choose: addresses, the names of volumes, what is issued, the version of the claim that a
// volume is bound to, and which pod comes to which node.
const random = `(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----` +
	`|"carrick/[a-z.-]+":"[0-9a-f]{12}"|"clusterIPs?":("[^"]*"|\[[^]]*\])|pvc-[0-9a-f-]{36}|"resourceVersion":"[0-9]+"` +
	`|"nodeName":"[^"]*"|"topology.kubernetes.io/zone":"[^"]*"`

// proof is of all that the guide makes where a policy gives claims their class.
func proof() stepstest.Proof { return stepstest.Proof{Bench: bench(), Random: random} }

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }
