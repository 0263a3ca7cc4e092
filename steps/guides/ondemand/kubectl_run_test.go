package ondemand_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// Session.Probe runs every check, even if the checks that it depends on fail. carrick must still not run a program that
// a user other than root can change.
func TestOnlyRootsProgramsAreRun(t *testing.T) {
	const kubectl = "/usr/local/bin/kubectl"
	for _, tc := range []struct {
		situation string
		owners    map[string]int
		runs      bool
	}{
		{"of root", nil, true},
		{"of a user", map[string]int{kubectl: 65534}, false},
		{"in a folder of a user", map[string]int{"/usr/local": 65534}, false},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			stand := stepstest.Stand(t, ondemand.Guide(), assets, "testdata", "healthy")
			root := stand.Endpoint(steps.Local).Host.Root
			marker := filepath.Join(t.TempDir(), "marker")
			script := []byte("#!/bin/sh\necho ran >>" + marker + "\n")
			if err := os.WriteFile(filepath.Join(root, kubectl), script, 0o755); err != nil {
				t.Fatal(err)
			}
			host, err := host.NewWith(root, host.Options{
				Owner:  func(path string) (int, int, bool) { return tc.owners[path], tc.owners[path], true },
				ByRoot: func() bool { return true },
				Run: func(ctx context.Context, name string, args ...string) (string, string, error) {
					at := filepath.Join(root, name)
					if name == "sudo" {
						at = filepath.Join(root, kubectl)
					}
					out, err := exec.CommandContext(ctx, at, args...).Output()
					return string(out), "", err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(host.Close)
			s := engine.NewSession(engine.SessionOptions{
				Guide: ondemand.Guide(), Link: stand.Link(), Assets: assets,
				Endpoints: map[steps.Side]engine.Endpoint{steps.Local: {Host: host}, steps.Remote: stand.Endpoint(steps.Remote)},
			})
			for _, c := range ondemand.Guide().Cells() {
				_, err := os.Stat(marker)
				s.Probe(t.Context(), c)
				if _, after := os.Stat(marker); err != nil && after == nil && !tc.runs {
					t.Errorf("%s runs it", c.Check)
				}
			}
			if _, err := os.Stat(marker); tc.runs && err != nil {
				t.Error("nothing runs it: this proves nothing")
			}
		})
	}
}
