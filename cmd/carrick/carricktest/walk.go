package carricktest

import "fmt"

// What these tests know of the wizard's screens.
const (
	Starting   = `starting the API servers`
	Beginning  = `(?s)new link.*enter begin`
	CanApply   = `a apply [0-9]+ change`
	Confirming = `(?s)Apply .*\?.*No +Yes`
)

// applied matches what a step's page says once its changes are applied. On a slow machine a check may fail or time out
// for a moment after that, and the page says so instead of ✓. Walks end with all checks green, so it has to pass again.
func applied(title string) string {
	return "✓ applied " + title + "|applied " + title + "; since then"
}

// Walk is a guide as keys go through it.
type Walk struct {
	Steps  int
	Titles map[int]string          // of the steps that change something
	Before map[int]func(*Terminal) // what is done on a step before it is applied
	Takes  map[int]bool            // the steps that take over what somebody else made
	Asks   map[int]string          // what is shown while a step is applied
	// What somebody else does once that is shown.
	Meanwhile map[int]func()
}

// On matches what the page of a step shows.
func (w Walk) On(n int) string { return fmt.Sprintf("step %d of %d", n, w.Steps) }

// Apply goes from one step to another, and applies each that changes something.
// The first is on screen.
func (w Walk) Apply(p *Terminal, from, to int) {
	for step := from; step <= to; step++ {
		if step > from {
			p.Types("n")
		}
		p.Wait(w.On(step))
		if w.Titles[step] == "" {
			continue // it only looks
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

// Undo takes everything back from the last step, by way of the summary.
func (w Walk) Undo(p *Terminal) {
	p.Types("n")
	p.Wait(`(?s)summary · .*u undo all`)
	p.Types("u")
	p.Wait(`Take back all that this link made\?`)
	p.Types("y")
	p.Wait(`✓ took back all that this link made`)
}
