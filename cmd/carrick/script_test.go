package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"carrick/cmd/carrick/carricktest"
)

// TestScripts runs the scripts that need no cluster.
func TestScripts(t *testing.T) {
	t.Parallel()
	carricktest.RunScripts(
		carricktest.BesideEachOther{T: t}, "../../testdata/script", func(*testscript.Env) error { return nil },
	)
}
