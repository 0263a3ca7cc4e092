package proof

import (
	"os/exec"
	"strconv"
	"strings"
	"time"

	"carrick/cmd/carrick/carricktest"
)

// madeByThen is the label of the walk that sees what a link has created.
const madeByThen = "before undo"

// walkScreens goes through the wizard: every step, every row, every overlay.
func (o *office) walkScreens(when string) {
	args := append([]string{"link.yaml"}, o.secrets()...)
	cmd := exec.Command(carricktest.Program(o.T), args...)
	cmd.Dir = o.dir
	p := carricktest.StartOnTerminal(o.T, cmd, o.kubeconfig)
	h := &letOut{name: "the wizard " + when}
	all := &h.text
	see := func() {
		p.Settles()
		all.WriteString(p.Text() + "\n")
	}
	w := carricktest.Walk{Steps: len(o.guide.Steps)}
	p.Wait(`step [0-9]+ of`)
	p.Types("1g")
	p.Wait(firstIsIn)
	for step := 1; step <= w.Steps; step++ {
		p.Wait(w.On(step))
		for range 6 { // rows
			for _, key := range []string{"\r", "y", "\x1b", "j"} {
				p.Types(key)
				see()
			}
		}
		for _, key := range []string{"d", "l", "?", "e", "o", "u", "t", "S", "\t"} {
			p.Types(key)
			see()
			p.Types("\x1b")
			see()
			p.Types("\x1b")
		}
		next := w.On(step + 1)
		if step == w.Steps {
			next = "summary ·"
		}
		for try := range 60 { // a key right after escape is another key, and then the panel stays
			if try == 0 {
				p.Types("n")
			} else { // which goes there, too, where the other key was only late
				p.Types(strconv.Itoa(step + 1))
			}
			if p.Comes(next) {
				break
			}
			p.Types("\x1b")
			see()
		}
	}
	p.Wait(`summary ·`)
	o.pagesThrough(p, see, when)
	p.Types("s")
	see()
	p.Types("q")
	p.Leaves()
	all.WriteString(p.Printed())
	o.runs = append(o.runs, h)
}

// pagesThrough scrolls down the summary, which is longer than the screen, until it shows what the link has created. The
// summary takes a moment to compute that.
func (o *office) pagesThrough(p *carricktest.Terminal, see func(), when string) {
	made := when != madeByThen
	for end := time.Now().Add(carricktest.ShownWithin); time.Now().Before(end); {
		for range 8 {
			see()
			made = made || strings.Contains(p.Text(), "Created by this link")
			p.Types("\x1b[6~")
		}
		if made {
			return
		}
		p.Types("g")
	}
	o.Errorf("the summary never said what this link created:\n%s", p.Text())
}

// firstIsIn matches a screen on which the selected row has verdicts for every side. The screen then contains text from
// the API servers.
const firstIsIn = `(?m)▸ [^◌\n]*[✓!✗?○·-][^◌\n]*$`
