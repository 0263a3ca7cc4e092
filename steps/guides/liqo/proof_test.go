package liqo_test

import (
	"testing"

	"carrick/steps/stepstest"
)

func proof() stepstest.Proof { return stepstest.Proof{Bench: bench()} }

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }
