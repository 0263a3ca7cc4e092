package ondemand

import (
	"os"
	"strings"
	"testing"
)

// TestHealthyRenewal verifies that the renewal files in testdata/healthy.txtar equal the files that carrick writes.
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
