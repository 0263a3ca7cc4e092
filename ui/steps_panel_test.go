package ui

import (
	"fmt"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// longGuide returns the options for a guide of eleven steps.
func longGuide(t *testing.T) Options {
	t.Helper()
	o := (&tunnel{keys: true}).options(t)
	for i := range 8 {
		name := fmt.Sprintf("more-%d", i+4)
		o.Guides[0].Steps = append(
			o.Guides[0].Steps, steps.Step{Name: name, Title: fmt.Sprintf("More %d", i+4), Why: "More.", Checks: []steps.Check{
				{Name: name, Title: "there is more", On: steps.Both, Run: fixed(steps.Passed("yes"))},
			}},
		)
	}
	return o
}

func TestTwoDigitsAreOneStep(t *testing.T) {
	onStage(t, longGuide(t), 80, 24, func(p *play) {
		p.press("1", "0")
		p.shows("step 10 of 11")
		p.press("2")
		p.shows("step 2 of 11")
		p.after(2 * time.Second)
		p.press("1")
		p.after(1100 * time.Millisecond)
		p.press("1")
		p.shows("step 1 of 11") // too late to be eleven
		p.press("1")
		p.shows("step 11 of 11")
		p.after(2 * time.Second)
		p.press("0")
		p.shows("step 11 of 11")
		p.press("1", "2")
		p.shows("summary · milan-rome")
		p.press("1")
		p.after(2 * time.Second)
		p.press("1", "3") // there is no 13: it is 3
		p.shows("step 3 of 11")
	})
}

func TestTheListOfStepsLeadsToThem(t *testing.T) {
	onStage(t, longGuide(t), 60, 20, func(p *play) {
		p.press("3", "S")
		p.shows("Steps", "▸ ✓  3 Carry", "?  2 Tunnel keys", "11 More 11", "Summary")
		p.press("down", "down", "enter")
		p.shows("step 5 of 11")
		p.press("S", "G", "enter")
		p.shows("summary")
		p.press("S")
		p.shows("▸      Summary")
		p.press("g", "enter")
		p.shows("step 1 of 11")
		p.press("S", "j", "esc")
		p.shows("step 1 of 11")
		p.press("S", "1", "0")
		p.shows("step 10 of 11")
	})
}

// Keys pressed before the first step is shown take effect once it is shown.
func TestKeysThatComeTooEarlyAreKept(t *testing.T) {
	o := longGuide(t)
	inner := o.Open
	o.Open = func(l *linkfile.Link) (*engine.Session, error) {
		time.Sleep(2 * time.Second) // the clock is the bubble's
		return inner(l)
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.shows("opening")
		p.press("4", "down", "d")
		p.shows("opening")
		p.after(3 * time.Second)
		p.shows("step 4 of 11", "this step changes nothing")
	})
	o.Open = func(*linkfile.Link) (*engine.Session, error) { return nil, fmt.Errorf("no such context") }
	onStage(t, o, 80, 24, func(p *play) {
		p.deliver(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("a")})
		p.shows("no such context")
		p.press("q")
		if !p.quit {
			t.Fatal("q did not quit")
		}
	})
}
