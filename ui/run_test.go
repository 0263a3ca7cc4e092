package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is a pseudo-terminal on which the wizard runs.
type terminal struct {
	t    *testing.T
	ends *os.File
	all  bytes.Buffer
	done chan error
}

func onTerminal(t *testing.T, ctx context.Context, o Options) *terminal {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("LANG", "en_US.UTF-8")
	for _, name := range []string{
		"LC_ALL", "LC_CTYPE", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORFGBG", "STY", "GOOGLE_CLOUD_SHELL",
	} {
		t.Setenv(name, "")
	}
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(int(ours.Fd()), true); err != nil { // without that, reads have no deadline
		t.Fatal(err)
	}
	p := &terminal{t: t, ends: ours, done: make(chan error, 1)}
	o.In, o.Out = theirs, theirs
	go func() {
		p.done <- Run(ctx, o)
		theirs.Close()
	}()
	t.Cleanup(func() { ours.Close() })
	return p
}

// until reads the output until it contains the text.
func (p *terminal) until(text string) {
	p.t.Helper()
	if err := p.ends.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // only a failure takes that long
		p.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for !strings.Contains(p.all.String(), text) {
		n, err := p.ends.Read(buf)
		p.all.Write(buf[:n])
		if err != nil {
			p.t.Fatalf("%q never came: %v\n%q", text, err, p.all.String())
		}
	}
}

func (p *terminal) types(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.ends, keys); err != nil {
		p.t.Fatal(err)
	}
}

func TestRunLeavesTheTerminalAsItWas(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Theme = themeDark // so that nobody asks
	p := onTerminal(t, t.Context(), o)
	p.until("there is no key pair")
	p.types("q")
	p.until("undoes the changes that the link made")
	if err := <-p.done; err != nil {
		t.Fatal(err)
	}
	out := p.all.String()
	leave := strings.LastIndex(out, "\x1b[?1049l")
	if leave < 0 || !strings.Contains(out, "\x1b[?25h") {
		t.Fatalf("the normal screen or the cursor did not come back: %q", out)
	}
	if strings.Contains(out[leave:], "\x1b[1m") || !strings.Contains(out[leave:], "Tunnel · milan-rome") {
		t.Fatalf("the summary is not plain: %q", out[leave:])
	}
	if strings.Contains(out, "\x1b]11;?") || strings.Contains(out, "\x1b[6n") {
		t.Fatal("the terminal was asked something")
	}
}

func TestRunInterrupted(t *testing.T) {
	p := onTerminal(t, t.Context(), (&tunnel{}).options(t))
	p.until("there is no key pair")
	p.types("\x03")
	p.until("continues here")
	if err := <-p.done; !errors.Is(err, ErrInterrupted) {
		t.Fatalf("ctrl+c: %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := onTerminal(t, ctx, (&tunnel{}).options(t))
	p.until("there is no key pair")
	cancel()
	p.until("\x1b[?1049l")
	if err := <-p.done; !errors.Is(err, context.Canceled) {
		t.Fatalf("a context that ended: %v", err)
	}
}

func TestRunNeedsATerminal(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.In, o.Out = strings.NewReader(""), io.Discard
	if err := Run(t.Context(), o); !errors.Is(err, ErrNoTerminal) {
		t.Fatalf("no terminal: %v", err)
	}
}
