package carricktest

import "fmt"

// Patterns for screens of the wizard.
const (
	Starting   = `starting the API servers`
	Beginning  = `(?s)new link.*enter begin`
	CanApply   = `a apply [0-9]+ change`
	Confirming = `(?s)Apply .*\?.*No +Yes`
)

// applied returns a pattern for the page of a step after apply. On a slow machine, a check can briefly fail or time out
// after apply. The page then shows another text instead of ✓.
func applied(title string) string {
	return "✓ applied " + title + "|applied " + title + "; since then"
}

// Walk describes how a test types its way through the steps of a guide. The maps are indexed by step number.
type Walk struct {
	Steps  int
	Titles map[int]string          // titles of the steps with changes
	Before map[int]func(*Terminal) // called before the step is applied
	Takes  map[int]bool            // steps that take over objects from another field manager
	Asks   map[int]string          // text on the screen while the step is applied
	// Meanwhile is called when the text in Asks is on the screen. It acts as another user.
	Meanwhile map[int]func()
}

// On returns a pattern for the page of step n.
func (w Walk) On(n int) string { return fmt.Sprintf("step %d of %d", n, w.Steps) }

// Apply applies a range of steps, including the last one, but skips steps without changes. The page of the first step
// must be on the screen.
func (w Walk) Apply(p *Terminal, from, to int) {
	for step := from; step <= to; step++ {
		if step > from {
			p.Types("n")
		}
		p.Wait(w.On(step))
		if w.Titles[step] == "" {
			continue // the step has no changes
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

// Undo goes from the last step to the summary and undoes everything.
func (w Walk) Undo(p *Terminal) {
	p.Types("n")
	p.Wait(`(?s)summary · .*u undo all`)
	p.Types("u")
	p.Wait(`Undo all that this link created\?`)
	p.Types("y")
	p.Wait(`✓ undid all that this link created`)
}
