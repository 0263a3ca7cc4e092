package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aymanbagabas/go-osc52/v2"
	"github.com/charmbracelet/x/ansi"

	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/action"
)

// parts simulates a run of three changes that ends with fault after the first done changes.
func parts(m *tunnel, done int, fault error) {
	m.items = []steps.Item{
		{Verb: steps.Create, What: "Secret a/one", Hash: "1"},
		{Verb: steps.Create, What: "Secret a/two", Hash: "2"},
		{Verb: steps.Create, What: "Secret a/three", Hash: "3"},
	}
	m.makes = func(ctx context.Context, say steps.Progress) error {
		for _, it := range m.items[:done] {
			say.Did(it.Verb, it.What, it.Hash)
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return fault
	}
}

func TestARunSaysHowFarItIs(t *testing.T) {
	m := &tunnel{}
	parts(m, 3, nil)
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(5 * time.Second)
		p.shows("applying Tunnel keys · 1 of 3 · 5 s", "5 s: provider: Secret a/two", "create Secret a/one")
		p.after(20 * time.Second)
		p.shows("2 of 3 · 25 s", "5 s: provider: Secret a/three")
		p.after(40 * time.Second) // all is done, and the check does not hold
		p.shows("3 of 3", "5 s of 1 min: there is no key pair.")
		p.panelSays("Waiting for a check on the provider side: the keys Secret holds one key pair (step Tunnel keys)")
		sweep(p)
		p.after(time.Minute)
		p.panelSays("Done 3 of 3", "Next esc shows the failing check with its fix, e changes the answers, u undoes the changes")
	})
}

// Even the smallest panel shows the current activity.
func TestWhatIsInHandStaysInSight(t *testing.T) {
	m := &tunnel{slow: time.Hour, asks: []string{strings.Repeat("a long thing that was done before ", 20)}}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(time.Second)
		for h := 1; h < 12; h++ {
			for _, w := range []int{20, 34, 60, 80} {
				lines := p.a.run.view(p.a, w, h)
				if len(lines) > h || !strings.Contains(strings.Join(lines, "\n"), "applying") {
					t.Fatalf("%d lines of %d columns: %q", h, w, lines)
				}
			}
		}
	})
}

func TestARunThatStoppedSaysWhatToDo(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			m := &tunnel{}
			parts(m, 2, errors.New("the disk is full"))
			onStage(t, m.options(t), size[0], size[1], func(p *play) {
				p.press("a", "y")
				p.after(time.Minute)
				p.panelSays(
					"✗ provider: Make the keys: the disk is full", "Done 2 of 3", "Left provider: Secret a/three",
					"Next a continues", "Or c carrick apply",
				)
				p.shows("✗ provider: Make the keys", "Next  a continues")
				p.unbroken()
				p.out.Reset()
				p.press("c")
				if want := osc52.New(
					"carrick apply " + p.a.live.Session.Link().Path + " --step keys",
				).String(); p.out.String() != want {
					t.Fatalf("copied %q", p.out.String())
				}
				p.press("esc")
				p.press("esc")
				p.hides("the disk is full")
			})
		})
	}
}

// panelSays fails the test if one of the texts is not in the panel of the run, ignoring line breaks.
func (p *play) panelSays(texts ...string) {
	p.t.Helper()
	said := strings.Join(strings.Fields(ansi.Strip(strings.Join(p.a.run.view(p.a, 200, 20), " "))), " ")
	for _, text := range texts {
		if !strings.Contains(said, text) {
			p.t.Fatalf("the panel lacks %q: %s", text, said)
		}
	}
}

func TestARunStoppedByTheUserSaysWhatStays(t *testing.T) {
	m := &tunnel{}
	parts(m, 3, nil)
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(25 * time.Second)
		p.press("ctrl+c")
		p.after(time.Second)
		p.panelSays(
			"! stopped by you after 2 changes", "Done 2 of 3", "these changes are kept",
			"a continues, d shows the remaining changes, u undoes the completed changes",
		)
	})
}

func TestTheCommandAfterAConflictTakesTheFieldOver(t *testing.T) {
	m := &tunnel{}
	conflicts := []failure.Conflict{{Manager: "helm", Field: ".data"}}
	parts(m, 1, &action.ConflictError{What: "Secret a/two", Conflicts: conflicts})
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(25 * time.Second)
		p.panelSays(`field .data belongs to "helm"`, "--step keys --take-over")
	})
}

func TestANewFailureIsSeenAfterARun(t *testing.T) {
	m := &tunnel{}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("G") // the cursor is elsewhere
		p.press("a", "y")
		p.after(2 * time.Second)
		p.shows("✓ applied Tunnel keys: 1 change")
		p.hides("still fails")
		m.set(false) // somebody takes the keys away
		p.after(2 * time.Second)
		p.shows("✗ provider: there is no key pair", "applied Tunnel keys; since then this check fails")
		p.hides("✓ applied")
		m.set(true)
		p.after(2 * time.Second)
		p.shows("✓ applied Tunnel keys: 1 change")
		p.hides("since then")
	})
}

func TestUndoFromTheSummaryStaysThere(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, m.options(t), 80, 40, func(p *play) {
		p.press("3", "n")
		p.shows("summary · milan-rome", "provider   Secret tunnel/keys")
		p.press("u")
		p.shows("Undo all that this link created?")
		p.press("y")
		p.after(2 * time.Second)
		p.shows("summary · milan-rome", "✓ undid all that this link created: 1 change", "Created by this link\n   nothing")
		if m.made() {
			t.Fatal("it was not taken back")
		}
		sweep(p)
		p.resize(80, 40)
		p.press("esc")
		p.shows("summary · milan-rome")
		p.hides("undid")
		p.press("u")
		p.shows("there is nothing to undo: this link has created nothing")
		p.press("/", "c", "h", "e", "c", "k", "enter")
		p.shows("n next (line ")
		p.press("esc", "b")
		p.shows("step 3 of 3")
	})
}

func TestWaitingCountsAgainstItsLimit(t *testing.T) {
	m := &tunnel{keys: true}
	o := m.options(t)
	o.Guides[0].Steps[1].Checks[1].Timeout = 2 * time.Minute
	onStage(t, o, 80, 40, func(p *play) {
		m.came = time.Now()
		p.press("R")
		p.after(12 * time.Second)
		p.press("g", "j")
		p.shows("◌ consumer: 12 s of 2 min: sent, no answer yet")
		p.press("3", "n")
		p.shows("12 s of 2 min: sent, no answer yet")
	})
}

func TestARunThatCameTooEarlyNamesTheStepThatIsMissing(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	carry := &o.Guides[0].Steps[2]
	carry.Actions = []steps.Action{
		{Name: "open", Title: "Open the tunnel", On: steps.Local, Needs: []string{"peer/pair"}, Doer: m.call()},
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.press("3", "a")
		p.shows("a check on the provider side must pass first: the keys Secret holds one")
		p.press("y")
		p.after(time.Second)
		p.panelSays("Next 2 goes to step Tunnel keys, which comes first; then a retries", "Or c carrick apply")
	})
}
