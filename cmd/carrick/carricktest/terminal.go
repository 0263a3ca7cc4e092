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

// Parameters of the test terminal.
const (
	Columns, Rows = 80, 24
	ShownWithin   = 5 * time.Minute // timeout for a screen; long, because only a failing test waits for it
	Quick         = time.Minute     // timeout for actions that normally take less than a second
	CommandWithin = 15 * time.Minute
	unread        = 10 * time.Second // maximum wait until carrick has read the previous keys
)

// Terminal is a pseudo-terminal that runs carrick.
type Terminal struct {
	t     *testing.T
	Cmd   *exec.Cmd
	ours  *os.File
	tty   *os.File // carrick's end of the pseudo-terminal; open until the test ends, to read its modes
	Modes *term.State
	mark  string // environment variable that identifies carrick and its children

	mu      sync.Mutex
	screen  *vt.Emulator
	raw     strings.Builder
	hidden  bool
	changed chan struct{}
	Ended   chan struct{}
}

// onTerminal starts carrick with mark in its environment. carrick is killed when the test ends.
func onTerminal(t *testing.T, mark string, args ...string) *Terminal {
	t.Helper()
	cmd := exec.Command(Program(t), args...)
	cmd.Dir = t.TempDir()
	return StartOnTerminal(t, cmd, mark)
}

// StartOnTerminal starts cmd on a terminal, with mark in its environment. The command is killed when the test ends.
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
	work.Go(func() { _, _ = io.Copy(p.ours, p.screen) }) // terminal responses, such as cursor positions
	work.Go(p.read)
	go func() {
		_ = p.Cmd.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		<-p.Ended
		p.tty.Close() // makes read return
		_ = p.screen.InputPipe().(io.Closer).Close()
		work.Wait()
		p.ours.Close()
	})
	return p
}

// State returns the terminal modes.
func (p *Terminal) State() *term.State {
	p.t.Helper()
	s, err := term.GetState(int(p.tty.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

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

// Wait waits until the screen matches pattern. It fails the test on timeout.
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
			shown := tailFirst(p.Text())
			p.Types("t") // opens the list of troubles
			p.UntilSilent()
			p.t.Fatalf("the terminal never showed %q:\n%s\nafter t:\n%s\n%s", pattern, shown, tailFirst(p.Text()), p.stacks())
		}
	}
}

// tailFirst moves the last five lines of a screen to the top and removes empty lines. Reports of failed tests show only
// the beginning of a screen.
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

// stacks terminates carrick with SIGQUIT and returns the goroutine stacks.
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

// Types types keys after carrick has read the previous ones.
func (p *Terminal) Types(keys string) {
	p.t.Helper()
	p.taken()
	if _, err := io.WriteString(p.ours, keys); err != nil {
		p.t.Fatal(err)
	}
}

// Quits presses q in a demo. The test fails if the demo leaves processes or files behind.
func (p *Terminal) Quits() {
	p.t.Helper()
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		p.t.Errorf("exit code %d", code)
	}
	p.IsAsItWas()
	p.LeftNothing()
}

// Leaves waits until carrick has exited and all its output is on the screen. It returns the exit code.
func (p *Terminal) Leaves() int {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(ShownWithin):
		p.t.Fatalf("carrick did not exit:\n%s", p.Text())
	}
	p.drain()
	return p.Cmd.ProcessState.ExitCode()
}

// lastWord is a byte that carrick never writes.
const lastWord = "\x00"

// drain waits until all output is on the screen. It writes lastWord, which arrives after all earlier output.
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
			p.t.Fatalf("carrick did not read the input:\n%s", p.Text())
		}
	}
}

// walkedWithin is the timeout for autoplay of a complete guide at the fastest pace.
const walkedWithin = 20 * time.Minute

// Reaches is like Wait, but it searches for literal text and has a longer timeout.
func (p *Terminal) Reaches(text string) {
	p.t.Helper()
	late := time.NewTimer(walkedWithin)
	defer late.Stop()
	for !strings.Contains(p.Text(), text) {
		select {
		case <-p.changed:
		case <-p.Ended:
			p.t.Fatalf("carrick has exited:\n%s", p.Text())
		case <-late.C:
			p.t.Fatalf("the screen never showed %q:\n%s", text, p.Text())
		}
	}
}

// Settles waits until the screen has not changed for calmScreen. It waits at most restlessScreen.
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
		case <-late.C: // the screen keeps changing
			return
		}
	}
}

// Comes reports whether the screen shows the text before the timeout keyLost.
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

// keyLost is how long a test waits for the effect of a key. If the effect does not appear in that time, carrick has
// read the key as part of another key.
const keyLost = 5 * time.Second

// A screen has settled after calmScreen without a change. Some screens never settle, for example because they show a
// clock. restlessScreen is the maximum wait for those.
const (
	calmScreen     = 50 * time.Millisecond
	restlessScreen = 500 * time.Millisecond
)
