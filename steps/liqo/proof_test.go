package liqo_test

import (
	"testing"

	"carrick/steps/stepstest"
)

func proof() stepstest.Proof { return stepstest.Proof{Bench: bench()} }

func TestCrashes(t *testing.T) { proof().Crashes(t) }
func TestFaults(t *testing.T)  { proof().Faults(t) }
