package lines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carrick/ui/model"
)

// talk runs the wizard in lines and types its input. It runs in a synctest bubble, so that a test knows when the wizard
// is idle.
type talk struct {
	t          *testing.T
	to         *io.PipeWriter
	interrupts chan os.Signal
	stop       context.CancelFunc
	done       chan error
	left       bool
	err        error

	mu   sync.Mutex
	all  bytes.Buffer
	read int // how much was looked at already
}

func (k *talk) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all.Write(p)
}

func (k *talk) text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all.String()
}

// converse runs a scene with the wizard, and then checks the whole output.
func converse(t *testing.T, o Options, scene func(*talk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		from, to := io.Pipe()
		k := &talk{t: t, to: to, interrupts: make(chan os.Signal, 4), stop: stop, done: make(chan error, 1)}
		o.In, o.Out, o.Interrupts = from, k, k.interrupts
		go func() { k.done <- Run(ctx, o) }()
		synctest.Wait()
		defer to.Close()
		defer stop()
		scene(k)
		stop()
		to.Close()
		if !k.left {
			k.leaves()
		}
		time.Sleep(2 * time.Minute) // what was given up ends by itself; the clock is the bubble's
		fit(t, k.text())
	})
}

// says types lines, each when the wizard is idle.
func (k *talk) says(lines ...string) {
	k.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(k.to, l+"\n"); err != nil {
			k.t.Fatalf("%q was not read: %v", l, err)
		}
		k.settle()
	}
}

// settle waits until the wizard is idle, and allows a moment for a run.
func (k *talk) settle() {
	for range 40 {
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
	}
	synctest.Wait()
}

// hears fails the test if one of the texts is not in the output since the last call.
func (k *talk) hears(texts ...string) string {
	k.t.Helper()
	all := k.text()
	news := all[k.read:]
	for _, text := range texts {
		if !strings.Contains(news, text) {
			k.t.Fatalf("it did not say %q:\n%s", text, news)
		}
	}
	k.read = len(all)
	return news
}

// leaves waits until the wizard has exited.
func (k *talk) leaves() error {
	k.t.Helper()
	k.settle()
	select {
	case k.err = <-k.done:
	default:
		k.t.Fatalf("it goes on:\n%s", k.text())
	}
	k.left = true
	k.to.Close()
	return k.err
}

// piped runs the wizard with an input that ends.
func piped(t *testing.T, o Options, input string) (said string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o.In, o.Out = strings.NewReader(input), &out
		err = Run(t.Context(), o)
		said = out.String()
		time.Sleep(2 * time.Minute)
	})
	fit(t, said)
	return said, err
}

// nobody fails the test unless the input ended at that question, and the error names the command that needs no input.
func nobody(t *testing.T, said string, err error, what, instead string) {
	t.Helper()
	n := (*NoInputError)(nil)
	if !errors.As(err, &n) || !strings.Contains(n.What, what) || !strings.Contains(n.Instead, instead) {
		t.Fatalf("the error is %v:\n%s", err, said)
	}
}

// Patterns of lines that are not sentences.
var (
	nameValue = regexp.MustCompile(`^[A-Za-z][^:]*: \S`)
	yamlLine  = regexp.MustCompile(`^(@@|[+-]|#| *- |[a-z]+:$|\. /)`)
)

// fit fails the test if the output contains text that is unsuitable for a screen reader: an escape sequence, a table, a
// symbol, a line that is not a sentence.
func fit(t *testing.T, said string) {
	t.Helper()
	if said == "" {
		t.Error("nothing was said")
	}
	for l := range strings.Lines(said) {
		l = strings.TrimSuffix(l, "\n")
		ends := l == "" || strings.ContainsAny(l[len(l)-1:], ".!?:]") || strings.HasSuffix(l, ": ") ||
			strings.HasSuffix(l, "] ")
		switch {
		case strings.ContainsAny(l, "\x1b\r\t\x07"):
			t.Errorf("a control character: %q", l)
		case strings.ContainsAny(l, "✓✗◌▸│─┃←→·…"):
			t.Errorf("a sign: %q", l)
		case strings.Contains(strings.TrimLeft(l, " +-"), "  "):
			t.Errorf("columns: %q", l)
		case !ends && !nameValue.MatchString(l) && !yamlLine.MatchString(l) && !model.Address.MatchString(l):
			t.Errorf("no sentence: %q", l)
		}
	}
}
