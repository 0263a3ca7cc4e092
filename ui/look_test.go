package ui

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

func TestFixDoesOneAction(t *testing.T) {
	m := &tunnel{}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("f")
		p.shows("Make the keys?", "+ create  Secret tunnel/keys")
		p.press("y")
		p.after(2 * time.Second)
		p.shows("✓ Make the keys: 1 change")
		p.press("f")
		p.shows("there is nothing to fix")
	})
}

// If the action that fixes a check has nothing to do, the fix key applies its whole step, because another action may
// create what is missing.
func TestFixDoesTheStepWhereItsActionIsDone(t *testing.T) {
	m := &tunnel{items: []steps.Item{{Verb: steps.Leave, What: "Secret tunnel/keys", Hash: "1"}}}
	o := m.options(t)
	step := &o.Guides[0].Steps[1]
	left := func(context.Context, steps.Env) (steps.Change, error) { return steps.Change{}, nil }
	step.Actions = append(
		step.Actions, steps.Action{Name: "routes", Title: "Make the routes", On: steps.Remote, Doer: action.Call{
			Preview: func(context.Context, steps.Env) (steps.Change, error) {
				return steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "ConfigMap tunnel/routes", Hash: "2"}}}, nil
			},
			Make: func(context.Context, steps.Env, steps.Progress) error { return nil },
			Left: left, Revert: func(context.Context, steps.Env, steps.Progress) error { return nil },
		}},
	)
	onStage(t, o, 80, 24, func(p *play) {
		p.press("f")
		p.shows("Apply Tunnel keys?", "+ create  ConfigMap tunnel/routes")
	})
}

func TestFixWithoutAnAction(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("G", "f")
		p.shows("carrick has no action for this check")
	})
}

func TestCopy(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("c")
		p.shows("copied: tunnel keys --make")
		want := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("tunnel keys --make"))
		if !strings.Contains(p.out.String(), want) {
			t.Fatalf("the clipboard got %q", p.out.String())
		}
		p.press("enter", "c") // the detail
		p.shows("copied")
	})
}

func TestDetail(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("enter")
		p.shows(
			"there is no key pair", "a half pair answers nobody", "example/tunnel: docs/keys.md", "checked at",
			"the files and commands of the provider, rome",
		)
		p.press("f")
		p.shows("Make the keys?")
		p.press("esc", "down", "enter")
		p.shows("this machine", "Needs", "✗ provider: the keys Secret holds one key pair", "blocked by provider: the keys Secret holds one key pair: there")
	})
}

func TestReportIsSavedAndNamed(t *testing.T) {
	o := (&tunnel{}).options(t)
	t.Chdir(t.TempDir())
	onStage(t, o, 80, 24, func(p *play) {
		p.press("s")
		p.shows("saved carrick-milan-rome-")
	})
	files, err := os.ReadDir(".")
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 || filepath.Ext(files[0].Name()) != ".md" {
		t.Fatalf("%s: %v, %v", files[0].Name(), info.Mode(), err)
	}
	text, err := os.ReadFile(files[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Tunnel: milan-rome", "| provider | `rome` | `a machine` |",
		"- **fail**, provider, step Tunnel keys: the keys Secret holds one key pair\n  - found: `there is no key pair`",
		"    ```sh\n    tunnel keys --make\n    ```", "blocks 3 other checks",
		"### 2 Tunnel keys: ", "- **fail** · provider · the keys Secret",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestSummary(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, m.options(t), 80, 40, func(p *play) {
		p.press("3", "n")
		p.shows(
			"summary · milan-rome", "Left to do", "? consumer: the log can be read", "Created by this link",
			"provider   Secret tunnel/keys", "carrick undo ",
		)
		p.press("b")
		p.shows("step 3 of 3")
	})
}

// The plan of an undo names the objects that it keeps because others use them, and these users.
func TestAnUndoNamesWhatOthersNeed(t *testing.T) {
	m := &tunnel{
		keys:  true,
		items: []steps.Item{{Verb: steps.Leave, What: "Secret tunnel/keys", Note: "alice/mydata uses it", Held: true}},
	}
	onStage(t, m.options(t), 80, 40, func(p *play) {
		p.press("3", "n")
		p.shows("Created by this link", "Secret tunnel/keys: undo keeps it: alice/mydata uses it", "carrick undo")
		p.press("u")
		p.shows("Kept: used by others", "leave", "Secret tunnel/keys", "alice/mydata uses it")
	})
}

// Every screen shows the counts of all steps, so all checks are live on every screen.
func TestEveryStepIsLiveOnEveryScreen(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, m.options(t), 80, 40, func(p *play) {
		becomes := func(keys bool, want steps.Status) {
			t.Helper()
			m.set(keys)
			p.after(time.Second)
			if got := p.verdict("pair", steps.Remote); got != want {
				t.Errorf("the keys of step 2: %v, not %v", got, want)
			}
		}
		p.press("1", "S", "G", "enter")
		p.shows("summary")
		becomes(false, steps.Fail)
		p.shows("there is no key pair")
		becomes(true, steps.Pass)

		p.press("1", "t")
		becomes(false, steps.Fail)
		p.shows("there is no key pair")
		p.press("t")
		becomes(true, steps.Pass)
	})
}

func TestHelpNamesEveryKey(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 100, 80, func(p *play) {
		p.press("?")
		for _, g := range newKeys().groups() {
			for _, k := range g.keys {
				p.shows(k.Help().Key, k.means)
				if !strings.Contains(KeyTable(), k.means) {
					t.Errorf("the README's table lacks %q", k.means)
				}
			}
		}
		p.press("q")
		if p.quit {
			t.Fatal("q in a panel quit")
		}
	})
}

func TestAgainLooksAtOneCell(t *testing.T) {
	m := &tunnel{}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("1")
		m.set(true)
		p.press("R")
		if got := p.verdict("pair", steps.Remote); got != steps.Pass {
			t.Fatalf("R did not look at other steps: %v", got)
		}
		_, cell, _ := p.a.page.(*stepPage).cell()
		before := p.a.live.Look(cell).Began
		p.after(time.Second)
		p.press("r")
		if !p.a.live.Look(cell).Began.After(before) {
			t.Fatal("r did not look at the selected cell")
		}
	})
}

func TestOneSideAtATime(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 60, 20, func(p *play) {
		p.shows("the credential lives", "70×20 shows both")
		p.hides("the log can be read")
		p.press("tab")
		p.shows("the log can be read", "consumer milan")
		p.hides("the credential lives")
	})
}

func TestMissingRightsAreGatheredByKind(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 40, func(p *play) {
		var lack engine.Missing
		for _, r := range []permission.Rule{{Verb: "get", Name: "x"}, {Verb: "create"}, {Verb: "patch", Name: "x"}} {
			r.Resource, r.Namespace = "secrets", "a"
			lack.Missing, lack.Needed = append(lack.Missing, cluster.Decision{Rule: r}), append(lack.Needed, r)
		}
		p.a.lay(p.a.lackingPanel(engine.MissingPermissions{steps.Remote: lack}))
		p.shows("Nothing was changed", "get, create, patch secrets in a", "kind: Role", "name: carrick-milan-rome")
		p.press("c")
		p.shows("copied")
	})
}
