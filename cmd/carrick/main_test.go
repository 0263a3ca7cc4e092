package main

import (
	"testing"

	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/completion"
)

// TestMain makes carrick a command for scripts: this test binary, under that name.
func TestMain(m *testing.M) {
	carricktest.Main(m, map[string]func(){
		"carrick": main, "kubectl-carrick": main, completion.As: main, "carrick-codes": codesMain,
	})
}
