package ui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"carrick/steps"
)

// broken returns the tunnel guide with failures in later steps: the keys, on which the handshake depends, and a check
// of a later step.
func broken(t *testing.T, m *tunnel) Options {
	t.Helper()
	o := m.options(t)
	g := o.Guides[0]
	g.Steps[0].Actions = []steps.Action{{Name: "site", Title: "Make the site", On: steps.Local, Doer: m.call()}}
	g.Steps[0].Checks[0].FixedBy = "site" // it stands: the set-up is not new
	g.Steps[2].Checks = append(g.Steps[2].Checks,
		steps.Check{
			Name: "routed", Title: "routes lead into the tunnel", On: steps.Remote,
			Run: fixed(steps.Failed("there is none", "ip route add")),
		})
	return o
}

func TestASetUpOpensOnItsFirstCause(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, broken(t, m), 80, 24, func(p *play) {
		m.came = time.Now()
		p.shows("step 2 of 3", "▸ the log can be read", "connection refused")
	})
	m = &tunnel{}
	onStage(t, broken(t, m), 80, 24, func(p *play) {
		p.shows(
			"step 2 of 3", "▸ the keys Secret holds one key pair", "✗ provider: there is no key pair", "   causes 3 others",
		)
		p.press("enter")
		p.shows("Stops", "consumer: the gateway answers a WireGuard handshake", "provider: the tunnel carries (step Carry)")
	})
}

// If nothing of the set-up exists, the wizard opens the first open step.
func TestWhatIsNotSetUpOpensOnItsFirstStep(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Guides[0].Steps[0].Checks[1].Run = fixed(steps.Waits(time.Time{}, "soon"))
	o.Guides[0].Steps[1].Checks[0].On = steps.Remote
	o.Guides[0].Steps[1].Checks[1].Needs = []string{"peer/pair"}
	onStage(t, o, 80, 24, func(p *play) { p.shows("step 1 of 3") })
}

func TestTroubleListsCausesFirst(t *testing.T) {
	onStage(t, broken(t, &tunnel{}), 80, 24, func(p *play) {
		p.shows("t 1 more wrong")
		p.press("t")
		p.golden("trouble-80x24")
		p.press("down", "down", "enter")
		p.shows("step 3 of 3", "▸ routes lead into the tunnel", "there is none")
		p.press("t", "/", "l", "o", "g", "enter")
		p.shows("the log can be read")
		p.hides("routes lead")
		p.press("esc")
		p.shows("routes lead")
		p.press("esc")
		p.shows("step 3 of 3")
	})
}

// The f key asks for confirmation on the step of the check, and applies only the action that fixes the check.
func TestTroubleIsFixedFromTheList(t *testing.T) {
	m := &tunnel{}
	onStage(t, broken(t, m), 80, 24, func(p *play) {
		p.press("3", "t", "f")
		p.shows("Make the keys?", "Secret tunnel/keys", "▸ No")
		if m.made() {
			t.Fatal("it was done unasked")
		}
		p.press("y")
		p.after(2 * time.Second)
		if !m.made() {
			t.Fatal("a yes did nothing")
		}
		p.shows("step 2 of 3")
		p.press("t")
		p.hides("the keys Secret holds one key pair")
		p.press("G", "f") // nothing that carrick does makes this one hold
		p.shows("step 2 of 3", "carrick has no action for this check")
	})
}

func TestNothingIsWrong(t *testing.T) {
	m := &tunnel{keys: true}
	o := m.options(t)
	for i := range o.Guides[0].Steps {
		for j := range o.Guides[0].Steps[i].Checks {
			o.Guides[0].Steps[i].Checks[j].Run = fixed(steps.Passed("fine"))
		}
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.hides("more wrong")
		p.press("t")
		p.shows("nothing is wrong")
		p.press("enter", "f", "down", "t")
		p.shows("Carry")
	})
}

// The list fits every screen size, with untrusted names in it.
func TestTroubleAtEverySize(t *testing.T) {
	o := broken(t, &tunnel{})
	o.Guides[0].Steps[2].Checks[0].Run = fixed(steps.Errored(errors.New("\x1b[31m" + strings.Repeat("silence ", 60))))
	o.Guides[0].Steps[2].Checks[0].Needs = nil
	onStage(t, o, 80, 24, func(p *play) {
		p.press("t")
		for _, size := range [][2]int{{20, 3}, {40, 10}, {60, 20}, {80, 24}, {120, 40}, {200, 50}} {
			p.resize(size[0], size[1])
			p.unbroken()
			p.press("down", "up", "G", "g")
			p.unbroken()
		}
	})
}
