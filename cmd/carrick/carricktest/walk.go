package carricktest

import "fmt"

// Patterns for the wizard's screens.
const (
	Starting   = `starting the API servers`
	Beginning  = `(?s)new link.*enter begin`
	CanApply   = `a apply [0-9]+ change`
	Confirming = `(?s)Apply .*\?.*No +Yes`
)

// applied returns a pattern for the page of a step after its changes are applied. On a slow machine a check may then
// briefly fail or time out, and the page says so instead of ✓. Walks end with all checks green, so that check must pass
// again.
func applied(title string) string {
	return "✓ applied " + title + "|applied " + title + "; since then"
}

// Walk describes how to go through a guide by keys.
type Walk struct {
	Steps  int
	Titles map[int]string          // titles of the steps that have changes
	Before map[int]func(*Terminal) // called on a step before it is applied
	Takes  map[int]bool            // steps that take over objects of another field manager
	Asks   map[int]string          // text on screen while a step is applied
	// Meanwhile is called when that text is on screen, to act as another user.
	Meanwhile map[int]func()
}

// On returns a pattern for the page of a step.
func (w Walk) On(n int) string { return fmt.Sprintf("step %d of %d", n, w.Steps) }

// Apply goes from one step to another, and applies each step that has changes. The first of these steps must be on
// screen.
func (w Walk) Apply(p *Terminal, from, to int) {
	for step := from; step <= to; step++ {
		if step > from {
			p.Types("n")
		}
		p.Wait(w.On(step))
		if w.Titles[step] == "" {
			continue // it has only checks
		}
		if w.Before[step] != nil {
			w.Before[step](p)
		}
		p.Wait(CanApply)
		p.Types("a")
		p.Wait(Confirming)
		p.Types("y")
		if w.Takes[step] {
			p.Wait(`Take over fields of`)
			p.Types("y")
		}
		if w.Asks[step] != "" {
			p.Wait(w.Asks[step])
		}
		if w.Meanwhile[step] != nil {
			w.Meanwhile[step]()
		}
		p.Wait(applied(w.Titles[step]))
	}
}

// Undo undoes everything from the last step, through the summary.
func (w Walk) Undo(p *Terminal) {
	p.Types("n")
	p.Wait(`(?s)summary · .*u undo all`)
	p.Types("u")
	p.Wait(`Undo all that this link created\?`)
	p.Types("y")
	p.Wait(`✓ undid all that this link created`)
}
