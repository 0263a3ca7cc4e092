package ui

import (
	"testing"
	"time"

	"carrick/steps"
)

func TestApplyAllAsksOnce(t *testing.T) {
	m := &tunnel{slow: 5 * time.Second}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("3", "n")
		p.shows("summary · milan-rome", "A apply all")
		p.press("A")
		p.shows("Apply all steps?", "Secret tunnel/keys")
		p.press("y")
		p.after(time.Second)
		p.shows("applying all steps")
		p.after(10 * time.Second)
		p.shows("✓ applied all steps: 1 change")
		if !m.made() {
			t.Fatal("nothing was made")
		}
		p.press("A")
		p.shows("there is nothing to change now: some rows do not pass yet")
	})
}

func TestApplyAllOnTheMapShowsTheProgressThere(t *testing.T) {
	m := &tunnel{slow: 5 * time.Second}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("m", "A", "y")
		p.after(time.Second)
		p.shows("map of both sides", "applying all steps")
		p.after(10 * time.Second)
		p.shows("map of both sides", "✓ applied all steps: 1 change")
		p.press("esc")
		p.shows("step 2 of 3")
	})
}

func TestApplyAllAsksForMissingAnswersFirst(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	delete(o.Link.Answers, "keys.owner")
	m.needsOwner = true
	onStage(t, o, 80, 24, func(p *play) {
		p.press("esc", "1", "A")
		p.shows("Answers", "Owner of the keys")
		if m.made() {
			t.Fatal("it was applied without the answer")
		}
		p.press("a", "n", "a", "ctrl+s")
		p.shows("Apply all steps?")
	})
}

// A row without an action of its own can be fixed by what its step would create.
func TestFixAppliesTheStepIfThatCanFixTheRow(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	step := &o.Guides[0].Steps[1]
	step.Checks = append(step.Checks, steps.Check{
		Name: "mirror", Title: "the mirror has the key", On: steps.Local, Why: "it follows",
		Run: fixed(steps.Failed("the mirror is empty", "")),
	})
	onStage(t, o, 80, 24, func(p *play) {
		p.press("/", "m", "i", "r", "r", "o", "r", "enter", "f")
		p.shows("Apply Tunnel keys?")
	})
}

func TestTheBarNamesTheCurrentAndTheNextStep(t *testing.T) {
	m := &tunnel{slow: 5 * time.Second}
	o := m.options(t)
	last := &o.Guides[0].Steps[2]
	last.Actions = []steps.Action{{Name: "carry", Title: "Carry it", On: steps.Remote, Doer: m.call()}}
	onStage(t, o, 80, 24, func(p *play) {
		p.press("A", "y")
		p.after(time.Second)
		p.shows("░ 0 of 2 steps · now 2 Tunnel keys · next 3 Carry")
		p.press("ctrl+c")
		p.after(10 * time.Second)
		p.shows("stopped by you", "A retries")
	})
}
