package ondemand

import (
	"os"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/stepstest"
)

// TestHealthyRenewal keeps the files of the healthy state as carrick writes them.
func TestHealthyRenewal(t *testing.T) {
	r := renewal{"/usr/local/bin/kubectl", rootKubeconfig, rootToken, 24}
	script, err := r.script()
	if err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile("testdata/healthy.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{renewScript: script, renewService: r.service(), renewTimer: r.timer()} {
		if !strings.Contains(string(state), "-- host"+path+" --\n"+text) {
			t.Errorf("the state's %s is not:\n%s", path, text)
		}
	}
}

// TestRowsOfRoot proves that each row has a state in which one of its checks
// passes, and one in which one does not.
func TestRowsOfRoot(t *testing.T) {
	wanted := stepstest.Wanted(t, "testdata")
	for _, row := range rowsC1 {
		for _, name := range row.Checks {
			if c, _ := Guide().Check(name); c == nil {
				t.Errorf("row %d names check %q, which there is not", row.Number, name)
			}
			if w := wanted[name]; len(w[steps.Pass]) == 0 || len(w[steps.Fail])+len(w[steps.Warn]) == 0 {
				t.Errorf("row %d: check %s passes in %v, fails in %v, warns in %v", row.Number, name, w[steps.Pass], w[steps.Fail], w[steps.Warn])
			}
		}
	}
}
