package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// What a terminal of these tests is.
const (
	columns, rows = 80, 24
	shownWithin   = 5 * time.Minute // a screen that is waited for; only a failure takes that long
	quick         = time.Minute     // what takes well under a second
	commandWithin = 15 * time.Minute
	unread        = 10 * time.Second // after so long keys that nothing reads hold up no others
)

// A terminal that answers nothing must hold up no plain command, and is not
// asked anything.
func TestPlainCommandsAskTheTerminalNothing(t *testing.T) {
	t.Parallel()
	path := programPath(t)
	for _, args := range [][]string{
		{"--help"},
		{"version"},
		{"check", "--help"},
		{"guides"},
		{"explain", "role-binding"},
		{"check", "missing.yaml"},
		{"missing.yaml"},
		{"--nonsense"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), quick)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(ownEnvironment(cmd.Dir), "TERM=xterm-256color")
			ours, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			out, _ := io.ReadAll(ours) // a terminal whose program has left is an error on some systems
			_ = cmd.Wait()
			if ctx.Err() != nil {
				t.Fatalf("it had not ended after %s: %q", quick, out)
			}
			if len(out) == 0 || strings.Contains(string(out), "\x1b") {
				t.Fatalf("it wrote %q", out)
			}
		})
	}
}

// terminal is a pseudo-terminal with carrick on it, and what it shows.
type terminal struct {
	t     *testing.T
	cmd   *exec.Cmd
	ours  *os.File
	tty   *os.File // carrick's end: its modes can be read when carrick has left
	modes *term.State
	mark  string // in the environment of carrick, and so of its children

	mu      sync.Mutex
	screen  *vt.Emulator
	raw     strings.Builder
	hidden  bool // the cursor
	changed chan struct{}
	ended   chan struct{}
}

// onTerminal starts carrick as users have it, with that in its environment. It
// is killed with the test.
func onTerminal(t *testing.T, mark string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command(programPath(t), args...)
	cmd.Dir = t.TempDir()
	return startOnTerminal(t, cmd, mark)
}

// startOnTerminal starts a command in its folder, as onTerminal does.
func startOnTerminal(t *testing.T, cmd *exec.Cmd, mark string, more ...string) *terminal {
	t.Helper()
	p := &terminal{
		t: t, mark: mark, cmd: cmd,
		screen: vt.NewEmulator(columns, rows), changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	p.screen.SetCallbacks(vt.Callbacks{CursorVisibility: func(visible bool) { p.hidden = !visible }})
	var err error
	if p.ours, p.tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(p.tty, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	p.modes = p.state()
	p.cmd.Env = append(ownEnvironment(p.cmd.Dir), "TERM=xterm-256color", mark)
	p.cmd.Env = append(p.cmd.Env, more...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.tty, p.tty, p.tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() { _, _ = io.Copy(p.ours, p.screen) }) // what a terminal answers
	work.Go(p.read)
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.tty.Close() // ends the reading
		_ = p.screen.InputPipe().(io.Closer).Close()
		work.Wait()
		p.ours.Close()
	})
	return p
}

func (p *terminal) state() *term.State {
	p.t.Helper()
	s, err := term.GetState(int(p.tty.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// read draws what carrick writes.
func (p *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.ours.Read(buf)
		p.mu.Lock()
		p.raw.Write(buf[:n])
		_, _ = p.screen.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// text is what the screen shows.
func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// wait returns when the screen matches, and fails the test when that takes too
// long.
func (p *terminal) wait(pattern string) {
	p.t.Helper()
	p.waitIn(p.text, pattern)
}

// waitPrinted is wait, in lines that may have left the screen.
func (p *terminal) waitPrinted(pattern string) {
	p.t.Helper()
	p.waitIn(p.printed, pattern)
}

func (p *terminal) waitIn(text func() string, pattern string) {
	p.t.Helper()
	r := regexp.MustCompile(pattern)
	late := time.NewTimer(shownWithin)
	defer late.Stop()
	for !r.MatchString(text()) {
		select {
		case <-p.changed:
		case <-late.C:
			p.t.Fatalf("it never showed %q:\n%s\n%s", pattern, p.text(), p.stacks())
		}
	}
}

// printed is all that carrick wrote.
func (p *terminal) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// stacks ends carrick, and returns what each of its goroutines was doing.
func (p *terminal) stacks() string {
	p.mu.Lock()
	from := p.raw.Len()
	p.mu.Unlock()
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(quick):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()[from:]
}

// types types keys, once those before have been read.
func (p *terminal) types(keys string) {
	p.t.Helper()
	p.taken()
	if _, err := io.WriteString(p.ours, keys); err != nil {
		p.t.Fatal(err)
	}
}

// quits ends a demo by its key, and wants that nothing of it is left.
func (p *terminal) quits() {
	p.t.Helper()
	p.types("q")
	if code := p.leaves(); code != 0 {
		p.t.Errorf("exit code %d", code)
	}
	p.isAsItWas()
	p.leftNothing()
}

// leaves waits until carrick has ended and all that it wrote is drawn, and returns its exit code.
func (p *terminal) leaves() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(shownWithin):
		p.t.Fatalf("carrick did not end:\n%s", p.text())
	}
	p.drain()
	return p.cmd.ProcessState.ExitCode()
}

// lastWord is a character that nothing draws, and that carrick does not write.
const lastWord = "\x00"

// drain returns when all that was written is drawn: what is written last is read last.
func (p *terminal) drain() {
	p.t.Helper()
	if _, err := io.WriteString(p.tty, lastWord); err != nil {
		p.t.Fatal(err)
	}
	late := time.NewTimer(shownWithin)
	defer late.Stop()
	for !p.wrote(lastWord) {
		select {
		case <-p.changed:
		case <-late.C:
			p.t.Fatalf("what was written is not read:\n%s", p.text())
		}
	}
}
