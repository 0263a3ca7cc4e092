package vsphere_test

import (
	"testing"

	"carrick/steps/stepstest"
)

// random matches values that clusters choose: addresses, names of volumes, certificates, resource
// versions, and the nodes of pods.
const random = `(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----` +
	`|"carrick/[a-z.-]+":"[0-9a-f]{12}"|"clusterIPs?":("[^"]*"|\[[^]]*\])|pvc-[0-9a-f-]{36}|"resourceVersion":"[0-9]+"` +
	`|"nodeName":"[^"]*"|"topology.kubernetes.io/zone":"[^"]*"`

// proof covers everything that the guide creates if a policy sets the StorageClass of claims.
func proof() stepstest.Proof { return stepstest.Proof{Bench: bench(), Random: random} }

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }
