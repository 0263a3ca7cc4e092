package main

import (
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// madeByThen is when a walk sees what a link made.
const madeByThen = "before undo"

// walkScreens goes through the wizard: every step, every row, every overlay.
func (o *office) walkScreens(when string) {
	args := append([]string{"link.yaml"}, o.secrets()...)
	cmd := exec.Command(programPath(o.T), args...)
	cmd.Dir = o.dir
	p := startOnTerminal(o.T, cmd, o.kubeconfig)
	h := &letOut{name: "the wizard " + when}
	all := &h.text
	see := func() {
		p.settles()
		all.WriteString(p.text() + "\n")
	}
	w := walk{steps: len(o.guide.Steps)}
	p.wait(`step [0-9]+ of`)
	p.types("1g")
	p.wait(firstIsIn)
	for step := 1; step <= w.steps; step++ {
		p.wait(w.on(step))
		for range 6 { // rows
			for _, key := range []string{"\r", "y", "\x1b", "j"} {
				p.types(key)
				see()
			}
		}
		for _, key := range []string{"d", "l", "?", "e", "o", "u", "t", "S", "\t"} {
			p.types(key)
			see()
			p.types("\x1b")
			see()
			p.types("\x1b")
		}
		next := w.on(step + 1)
		if step == w.steps {
			next = "summary ·"
		}
		for try := range 60 { // a key right after escape is another key, and then the panel stays
			if try == 0 {
				p.types("n")
			} else { // which goes there, too, where the other key was only late
				p.types(strconv.Itoa(step + 1))
			}
			if p.comes(next) {
				break
			}
			p.types("\x1b")
			see()
		}
	}
	p.wait(`summary ·`)
	o.pagesThrough(p, see, when)
	p.types("s")
	see()
	p.types("q")
	p.leaves()
	p.mu.Lock()
	defer p.mu.Unlock()
	all.WriteString(p.raw.String())
	o.runs = append(o.runs, h)
}

// pagesThrough goes down the summary, which is longer than the screen, until it has
// said what the link made: that takes it a moment.
func (o *office) pagesThrough(p *terminal, see func(), when string) {
	made := when != madeByThen
	for end := time.Now().Add(shownWithin); time.Now().Before(end); {
		for range 8 {
			see()
			made = made || strings.Contains(p.text(), "Made by this link")
			p.types("\x1b[6~")
		}
		if made {
			return
		}
		p.types("g")
	}
	o.Errorf("the summary never said what this link made:\n%s", p.text())
}

// settles returns when the screen stays as it is for a moment.
func (p *terminal) settles() {
	calm := time.NewTimer(calmScreen)
	defer calm.Stop()
	late := time.NewTimer(restlessScreen)
	defer late.Stop()
	for {
		select {
		case <-p.changed:
			calm.Reset(calmScreen)
		case <-calm.C:
			return
		case <-late.C: // something moves on it
			return
		}
	}
}

// comes waits a while until the screen shows a text, and tells whether it did.
func (p *terminal) comes(text string) bool {
	late := time.NewTimer(keyLost)
	defer late.Stop()
	for !strings.Contains(p.text(), text) {
		select {
		case <-p.changed:
		case <-late.C:
			return strings.Contains(p.text(), text)
		}
	}
	return true
}

// firstIsIn matches where the selected row has been looked at on every side: what the
// API servers say of themselves is on the screen then.
const firstIsIn = `(?m)▸ [^◌\n]*[✓!✗?][^◌\n]*$`

// keyLost is when a key that did nothing was part of another one.
const keyLost = 5 * time.Second

// A screen is calm when nothing has moved on it for a while, and restless when something
// always does, such as a clock. What comes later is in what the terminal was sent, all
// the same.
const (
	calmScreen     = 50 * time.Millisecond
	restlessScreen = 500 * time.Millisecond
)
