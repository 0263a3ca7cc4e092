package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/demo"
	"carrick/cmd/carrick/exit"
)

// What these tests know of the wizard's screens.
const (
	starting   = `starting the API servers`
	beginning  = `(?s)new link.*enter begin`
	canApply   = `a apply [0-9]+ change`
	confirming = `(?s)Apply .*\?.*No +Yes`
)

// applied matches what a step's page says once its changes are applied. On a slow machine a check may fail or time out
// for a moment after that, and the page says so instead of ✓. Walks end with all checks green, so it has to pass again.
func applied(title string) string {
	return "✓ applied " + title + "|applied " + title + "; since then"
}

// walk is a guide as keys go through it.
type walk struct {
	steps  int
	titles map[int]string          // of the steps that change something
	before map[int]func(*terminal) // what is done on a step before it is applied
	takes  map[int]bool            // the steps that take over what somebody else made
	asks   map[int]string          // what is shown while a step is applied
	// What somebody else does once that is shown.
	meanwhile map[int]func()
}

func (w walk) on(n int) string { return fmt.Sprintf("step %d of %d", n, w.steps) }

// apply goes from one step to another, and applies each that changes something.
// The first is on screen.
func (w walk) apply(p *terminal, from, to int) {
	for step := from; step <= to; step++ {
		if step > from {
			p.types("n")
		}
		p.wait(w.on(step))
		if w.titles[step] == "" {
			continue // it only looks
		}
		if w.before[step] != nil {
			w.before[step](p)
		}
		p.wait(canApply)
		p.types("a")
		p.wait(confirming)
		p.types("y")
		if w.takes[step] {
			p.wait(`Take over fields of`)
			p.types("y")
		}
		if w.asks[step] != "" {
			p.wait(w.asks[step])
		}
		if w.meanwhile[step] != nil {
			w.meanwhile[step]()
		}
		p.wait(applied(w.titles[step]))
	}
}

// undo takes everything back from the last step, by way of the summary.
func (w walk) undo(p *terminal) {
	p.types("n")
	p.wait(`(?s)summary · .*u undo all`)
	p.types("u")
	p.wait(`Take back all that this link made\?`)
	p.types("y")
	p.wait(`✓ took back all that this link made`)
}

var throughRenku = walk{
	steps: 11, asks: map[int]string{7: `STAND-IN-`},
	titles: map[int]string{
		2: "Remote prerequisites", 3: "Operator and driver", 4: "Identity", 6: "Kubeconfigs Secret", 7: "Register", 8: "Restart", 9: "Resource pool",
	},
}

// From nothing to a registered cluster with a pool by keys alone, back to
// nothing, and out again.
func renkuByKeys(t *testing.T) {
	p := onDemo(t, "renku")
	p.wait(beginning)
	p.types("\r")
	throughRenku.apply(p, 1, 11)
	throughRenku.undo(p)
	p.wait(`[5-9] failed`) // it has looked again
	p.types("q")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.isAsItWas()
	for _, text := range []string{"9 Resource pool", "✗ remote: the namespace of the sessions is there: ", "The clusters of the demo are gone"} {
		if !strings.Contains(p.text(), text) {
			t.Errorf("the summary lacks %q:\n%s", text, p.text())
		}
	}
	p.leftNothing()
}

// However a demo ends, it leaves no process and no folder.
func TestADemoLeavesNothing(t *testing.T) {
	t.Parallel()
	cases.Run(t, "crash", "killed while it starts", func(t *testing.T) { leavesNothing(t, starting, (*terminal).kill) })
	cases.Run(t, "crash", "interrupted on its first screen", func(t *testing.T) { leavesNothing(t, beginning, (*terminal).interrupt) })
}

func TestVerifyADemoLeavesNothing(t *testing.T) {
	t.Parallel()
	cases.Run(t, "crash", "killed on its first screen", func(t *testing.T) { leavesNothing(t, beginning, (*terminal).kill) })
	cases.Run(t, "crash", "interrupted while it starts", func(t *testing.T) { leavesNothing(t, starting, (*terminal).interrupt) })
}

func leavesNothing(t *testing.T, when string, end func(*terminal)) {
	t.Parallel()
	p := onDemo(t, "renku")
	p.wait(when)
	if n := len(p.family()); n < 2 {
		t.Fatalf("%d processes were found: this proves nothing", n)
	}
	end(p)
	p.leftNothing()
}

func (p *terminal) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *terminal) interrupt() {
	p.t.Helper()
	p.types("\x03")
	if code := p.leaves(); code != exit.Interrupted {
		p.t.Errorf("exit code %d, not %d:\n%s", code, exit.Interrupted, p.text())
	}
	p.isAsItWas()
}

// onDemo starts carrick demo on a terminal, with a sandbox that the demo starts itself. All that it and its children write
// goes into a folder of its own, whose name they carry in their environment.
func onDemo(t *testing.T, guide string, flags ...string) *terminal {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked for in /proc")
	}
	clustertest.Room(t)
	return onTerminal(t, "TMPDIR="+demoFolder(t), append([]string{"demo", guide}, flags...)...)
}

func demoFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "carrick-demo-*") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// demoLent is onDemo with a sandbox that the test is lent: two control planes take longer to start than to reset.
func demoLent(t *testing.T, guide string, flags ...string) *terminal {
	t.Helper()
	box := clustertest.Start(t)
	folder := demoFolder(t)
	socket, err := net.Listen("unix", filepath.Join(folder, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go box.Lend(socket)
	// A link to carrick, in a folder where this test binary stands in for the sandbox program.
	dir, err := os.MkdirTemp(filepath.Dir(programPath(t)), "lent-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	err = errors.Join(err, os.Symlink(self, filepath.Join(dir, demo.Program)))
	if err = errors.Join(err, os.Link(programPath(t), filepath.Join(dir, "carrick"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "carrick"), append([]string{"demo", guide}, flags...)...)
	cmd.Dir = t.TempDir()
	lent, own := clustertest.Socket+"="+socket.Addr().String(), clustertest.Program+"="+os.Getenv(clustertest.Program)
	return startOnTerminal(t, cmd, "TMPDIR="+demoFolder(t), lent, own)
}

// lentMain is the sandbox program of demoLent. What needs no control planes the real one answers.
func lentMain() {
	if len(os.Args) > 1 {
		err := syscall.Exec(os.Getenv(clustertest.Program), os.Args, os.Environ())
		fmt.Fprintln(os.Stderr, "carrick-lent:", err)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "carrick-sandbox-*")
	if err == nil {
		err = errors.Join(clustertest.Relay(os.Getenv(clustertest.Socket), dir, os.Stdin, os.Stdout), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "carrick-lent:", err)
		os.Exit(1)
	}
}

// family are the processes that carrick and its children are.
func (p *terminal) family() []int {
	p.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		p.t.Fatalf("nothing in /proc: %v", err)
	}
	var out []int
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ")) // empty once it has ended
		if err == nil && bytes.Contains(environ, []byte(p.mark)) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			out = append(out, pid)
		}
	}
	return out
}

// goneWithin is how long what carrick started may outlive it.
const goneWithin = 5 * time.Minute

// leftNothing fails unless all that was started ends and all that was written
// goes.
func (p *terminal) leftNothing() {
	p.t.Helper()
	<-p.ended
	dir := strings.TrimPrefix(p.mark, "TMPDIR=")
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for late := time.Now().Add(goneWithin); ; <-look.C {
		family := p.family()
		files, err := os.ReadDir(dir)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(family) == 0 && len(files) == 0 {
			return
		}
		if time.Now().After(late) {
			for _, pid := range family {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			p.t.Fatalf("left after %s: processes %v, files %v", goneWithin, family, files)
		}
	}
}

var private = regexp.MustCompile(`\x1b\[\?([0-9]+)([hl])`)

// isAsItWas fails unless every mode of the terminal is what it was before
// carrick: the normal screen, the cursor, the line discipline.
func (p *terminal) isAsItWas() {
	p.t.Helper()
	if got := p.state(); !reflect.DeepEqual(got, p.modes) {
		p.t.Errorf("the line discipline is %+v, and was %+v", got, p.modes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen.IsAltScreen() || p.hidden {
		p.t.Errorf("alternate screen: %v, hidden cursor: %v", p.screen.IsAltScreen(), p.hidden)
	}
	last := map[string]string{}
	for _, m := range private.FindAllStringSubmatch(p.raw.String(), -1) {
		last[m[1]] = m[2]
	}
	for mode, is := range last {
		if on := is == "h"; on != (mode == "25") {
			p.t.Errorf("mode %s is left %s", mode, is)
		}
	}
}
