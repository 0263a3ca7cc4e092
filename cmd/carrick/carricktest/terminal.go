package carricktest

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// Parameters of the terminal in these tests.
const (
	Columns, Rows = 80, 24
	ShownWithin   = 5 * time.Minute // timeout for a screen; only a failure takes that long
	Quick         = time.Minute     // timeout for actions that take well under a second
	CommandWithin = 15 * time.Minute
	unread        = 10 * time.Second // how long unread keys delay later keys
)

// Terminal is a pseudo-terminal with carrick on it, and its screen.
type Terminal struct {
	t     *testing.T
	Cmd   *exec.Cmd
	ours  *os.File
	tty   *os.File // carrick's end of the pseudo-terminal: its modes can be read after carrick has exited
	Modes *term.State
	mark  string // variable in the environment of carrick, and so of its children

	mu      sync.Mutex
	screen  *vt.Emulator
	raw     strings.Builder
	hidden  bool // the cursor is hidden
	changed chan struct{}
	Ended   chan struct{}
}

// onTerminal starts carrick as users run it, with the variable mark in its environment. carrick is killed when the test
// ends.
func onTerminal(t *testing.T, mark string, args ...string) *Terminal {
	t.Helper()
	cmd := exec.Command(Program(t), args...)
	cmd.Dir = t.TempDir()
	return StartOnTerminal(t, cmd, mark)
}

// StartOnTerminal starts a command in its folder, as onTerminal does.
func StartOnTerminal(t *testing.T, cmd *exec.Cmd, mark string, more ...string) *Terminal {
	t.Helper()
	p := &Terminal{
		t: t, mark: mark, Cmd: cmd,
		screen: vt.NewEmulator(Columns, Rows), changed: make(chan struct{}, 1), Ended: make(chan struct{}),
	}
	p.screen.SetCallbacks(vt.Callbacks{CursorVisibility: func(visible bool) { p.hidden = !visible }})
	var err error
	if p.ours, p.tty, err = pty.Open(); err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(p.tty, &pty.Winsize{Rows: Rows, Cols: Columns}); err != nil {
		t.Fatal(err)
	}
	p.Modes = p.State()
	p.Cmd.Env = append(OwnEnvironment(p.Cmd.Dir), "TERM=xterm-256color", mark)
	p.Cmd.Env = append(p.Cmd.Env, more...)
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = p.tty, p.tty, p.tty
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() { _, _ = io.Copy(p.ours, p.screen) }) // the terminal's replies
	work.Go(p.read)
	go func() {
		_ = p.Cmd.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		<-p.Ended
		p.tty.Close() // ends read
		_ = p.screen.InputPipe().(io.Closer).Close()
		work.Wait()
		p.ours.Close()
	})
	return p
}

// State returns the modes of the line discipline.
func (p *Terminal) State() *term.State {
	p.t.Helper()
	s, err := term.GetState(int(p.tty.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// read draws carrick's output.
func (p *Terminal) read() {
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

// Text returns the text on the screen.
func (p *Terminal) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// Wait returns when the screen matches. It fails the test on timeout.
func (p *Terminal) Wait(pattern string) {
	p.t.Helper()
	p.waitIn(p.Text, pattern)
}

// WaitPrinted is like Wait, but also finds lines that have scrolled off the screen.
func (p *Terminal) WaitPrinted(pattern string) {
	p.t.Helper()
	p.waitIn(p.Printed, pattern)
}

func (p *Terminal) waitIn(text func() string, pattern string) {
	p.t.Helper()
	r := regexp.MustCompile(pattern)
	late := time.NewTimer(ShownWithin)
	defer late.Stop()
	for !r.MatchString(text()) {
		select {
		case <-p.changed:
		case <-late.C:
			p.t.Fatalf("it never showed %q:\n%s\n%s", pattern, tailFirst(p.Text()), p.stacks())
		}
	}
}

// tailFirst returns a screen without empty lines, and its last five lines first: a report of failed tests shows only the
// beginning of each.
func tailFirst(screen string) string {
	lines := slices.DeleteFunc(strings.Split(screen, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	at := max(0, len(lines)-5)
	return strings.Join(slices.Concat(lines[at:], []string{"(above that:)"}, lines[:at]), "\n")
}

// Printed returns all output of carrick.
func (p *Terminal) Printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()
}

// stacks terminates carrick, and returns the stacks of its goroutines.
func (p *Terminal) stacks() string {
	p.mu.Lock()
	from := p.raw.Len()
	p.mu.Unlock()
	_ = p.Cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.Ended:
	case <-time.After(Quick):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.raw.String()[from:]
}

// Types types keys, after the previous ones have been read.
func (p *Terminal) Types(keys string) {
	p.t.Helper()
	p.taken()
	if _, err := io.WriteString(p.ours, keys); err != nil {
		p.t.Fatal(err)
	}
}

// Quits presses q in a demo, and requires that the demo leaves nothing behind.
func (p *Terminal) Quits() {
	p.t.Helper()
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		p.t.Errorf("exit code %d", code)
	}
	p.IsAsItWas()
	p.LeftNothing()
}

// Leaves waits until carrick has exited and all its output is drawn, and returns its exit code.
func (p *Terminal) Leaves() int {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(ShownWithin):
		p.t.Fatalf("carrick did not end:\n%s", p.Text())
	}
	p.drain()
	return p.Cmd.ProcessState.ExitCode()
}

// lastWord is an invisible character that carrick never writes.
const lastWord = "\x00"

// drain returns when all output is drawn. It writes lastWord, which is read after all earlier output.
func (p *Terminal) drain() {
	p.t.Helper()
	if _, err := io.WriteString(p.tty, lastWord); err != nil {
		p.t.Fatal(err)
	}
	late := time.NewTimer(ShownWithin)
	defer late.Stop()
	for !p.Wrote(lastWord) {
		select {
		case <-p.changed:
		case <-late.C:
			p.t.Fatalf("what was written is not read:\n%s", p.Text())
		}
	}
}

// walkedWithin is the timeout for autoplay of a whole guide at the fastest pace.
const walkedWithin = 20 * time.Minute

// Reaches is like Wait, but for a plain text and with a longer timeout.
func (p *Terminal) Reaches(text string) {
	p.t.Helper()
	late := time.NewTimer(walkedWithin)
	defer late.Stop()
	for !strings.Contains(p.Text(), text) {
		select {
		case <-p.changed:
		case <-p.Ended:
			p.t.Fatalf("carrick has ended:\n%s", p.Text())
		case <-late.C:
			p.t.Fatalf("the screen never showed %q:\n%s", text, p.Text())
		}
	}
}

// Settles returns when the screen has not changed for calmScreen, but after restlessScreen at the latest.
func (p *Terminal) Settles() {
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
		case <-late.C: // the screen changes all the time
			return
		}
	}
}

// Comes waits until the screen shows a text, but not longer than keyLost, and reports whether it did.
func (p *Terminal) Comes(text string) bool {
	late := time.NewTimer(keyLost)
	defer late.Stop()
	for !strings.Contains(p.Text(), text) {
		select {
		case <-p.changed:
		case <-late.C:
			return strings.Contains(p.Text(), text)
		}
	}
	return true
}

// keyLost is the time after which a key that had no effect must have been read as part of another key.
const keyLost = 5 * time.Second

// calmScreen is how long a settled screen has been unchanged. restlessScreen is the maximum wait for a screen that
// never settles, for instance because of a clock. Later output is still recorded.
const (
	calmScreen     = 50 * time.Millisecond
	restlessScreen = 500 * time.Millisecond
)
