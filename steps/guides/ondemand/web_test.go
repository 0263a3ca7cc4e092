package ondemand_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
	"github.com/google/go-cmp/cmp"
)

// stood opens a session on the web node of a test state, and also returns the web node's folder.
func stood(t *testing.T, state string) (*engine.Session, string) {
	t.Helper()
	s := stepstest.Stand(t, ondemand.Guide(), assets, "testdata", state)
	return s, s.Endpoint(steps.Local).Host.Root
}

// do plans and applies an action on the web node, and returns the planned change.
func do(t *testing.T, s *engine.Session, action string) steps.Item {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{Side: steps.Local, Actions: []string{action}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Actions) != 1 || len(p.Actions[0].Change.Items) != 1 || p.Actions[0].Pending != "" {
		t.Fatalf("%s: the plan is %+v", action, p.Actions)
	}
	if err := s.Apply(context.Background(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return p.Actions[0].Change.Items[0]
}

func content(t *testing.T, root, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTheHealthyWebNodeIsWhatCarrickWrites verifies that carrick changes nothing on the healthy web node, and writes
// the same files on a web node without them.
func TestTheHealthyWebNodeIsWhatCarrickWrites(t *testing.T) {
	files := map[string]string{
		"hook-env": "/etc/ood/config/hook.env", "pre-hook": "/etc/ood/hooks/k8s-pre-hook.sh",
		"portal": "/etc/ood/config/ood_portal.yml", "cluster-file": "/etc/ood/config/clusters.d/test.yml",
	}
	s, root := stood(t, "healthy")
	for action, path := range files {
		if it := do(t, s, action); it.Verb != steps.Leave {
			t.Errorf("%s on a healthy web node: %s %s\n%s", action, it.Verb, it.Note, it.Diff)
		}
		want := content(t, root, path)
		fresh, bare := stood(t, "healthy")
		if err := os.Remove(filepath.Join(bare, path)); err != nil {
			t.Fatal(err)
		}
		if action == "portal" {
			continue // its other keys are the site's
		}
		if it := do(t, fresh, action); it.Verb != steps.Create {
			t.Errorf("%s where nothing stands: %s %s", action, it.Verb, it.Note)
		}
		server := fresh.Endpoint(steps.Remote).Cluster.Server()
		got := strings.NewReplacer(
			server, s.Endpoint(steps.Remote).Cluster.Server(), webOf(content(t, bare, files["portal"])),
			webOf(content(t, root, files["portal"])),
		).Replace(content(t, bare, path))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-healthy +written):\n%s", path, d)
		}
	}
}

// TestNewMountsTakeOneApply verifies that one apply writes new mounts to the cluster file and their Pod Security level
// to the hook.
func TestNewMountsTakeOneApply(t *testing.T) {
	const nfs = "- {type: nfs, name: home, host: nfs.example.org, path: /home, destination_path: /home}\n"
	for name, tc := range map[string]struct {
		state, level string
		mounts       any
	}{
		"new":  {"healthy", "baseline", nfs},
		"gone": {"cluster-file-mounts", "restricted", steps.LeftEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := stood(t, tc.state)
			if err := s.Answer("clusterfile.mounts", tc.mounts); err != nil {
				t.Fatal(err)
			}
			scope := engine.Scope{Side: steps.Local, Actions: []string{"cluster-file", "pre-hook"}}
			p, err := s.Plan(t.Context(), scope)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			if script := content(t, root, "/etc/ood/hooks/k8s-pre-hook.sh"); !strings.Contains(script, "enforce="+tc.level) {
				t.Errorf("the hook sets another level than %s:\n%s", tc.level, script)
			}
			if p, err = s.Plan(t.Context(), scope); err != nil || !p.Empty() {
				t.Errorf("a second apply would change: %+v, %v", p.Actions, err)
			}
		})
	}
}

// webOf returns the address of the state's HTTP server, which differs in each run.
func webOf(portal string) string {
	_, rest, _ := strings.Cut(portal, "oidc_provider_metadata_url: ")
	at, _, _ := strings.Cut(rest, "/realms/")
	return at
}
