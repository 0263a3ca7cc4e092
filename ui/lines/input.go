package lines

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// input is the only reader of the wizard's input. It reads a line only on request. On a terminal it never reads ahead,
// because the next line might be a secret.
type input struct {
	from    *bufio.Reader
	tty     *os.File    // nil if the input is not a terminal
	modes   *term.State // modes of the terminal before the first secret was read
	asked   chan bool   // requests for a line; true means without echo
	got     chan reply
	pending bool // a line has been requested and its reply has not been received
}

type reply struct {
	text string
	err  error
}

var errEnded = errors.New("the input has ended")

func newInput(in io.Reader) *input {
	i := &input{from: bufio.NewReader(in), asked: make(chan bool), got: make(chan reply, 1)}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		i.tty = f
		i.modes, _ = term.GetState(int(f.Fd()))
	}
	go func() {
		for secret := range i.asked {
			text, err := i.read(secret)
			i.got <- reply{text, err}
		}
	}()
	return i
}

// read reads one line. A line without a newline is incomplete, so it is neither an answer nor a yes.
func (i *input) read(secret bool) (string, error) {
	if secret && i.tty != nil {
		b, err := term.ReadPassword(int(i.tty.Fd()))
		if err != nil {
			return "", errEnded
		}
		return string(b), nil
	}
	text, err := i.from.ReadString('\n')
	if err != nil {
		return "", errEnded
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// line waits for the next line. If the user presses ctrl+c in the meantime, it returns ErrInterrupted.
func (i *input) line(ctx context.Context, secret bool, interrupts <-chan os.Signal) (string, error) {
	if !i.pending {
		i.asked <- secret
		i.pending = true
	}
	select {
	case r := <-i.got:
		i.pending = false
		return r.text, r.err
	case <-interrupts:
		return "", ErrInterrupted
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// restore turns terminal echo back on if a secret was being read. It also ends the reading goroutine.
func (i *input) restore() {
	if i.tty != nil && i.modes != nil {
		_ = term.Restore(int(i.tty.Fd()), i.modes)
	}
	close(i.asked)
}
