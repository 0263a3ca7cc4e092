package clustertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	startWithin  = 20 * time.Minute // long enough for a slow machine that starts several sandboxes at once
	answerWithin = 10 * time.Minute
)

// Box is a running sandbox process. Only one test uses it at a time.
type Box struct {
	Ready string // the JSON line in which the process describes its clusters

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	pipe   interface{ SetReadDeadline(time.Time) error }
	stderr *os.File
}

// startBox starts the given sandbox binary and returns when its clusters are ready.
func startBox(program string) (*Box, error) {
	stderr, err := os.CreateTemp("", "carrick-sandbox-*.log")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(stderr.Name()) // the open file stays usable without its name
	b := &Box{cmd: exec.Command(program), stderr: stderr}
	// Several sandboxes share a few cores, so CPU time is scarcer than memory. Less frequent garbage collection and a
	// single thread for Go code save a quarter of a sandbox's CPU time.
	b.cmd.Env = append(os.Environ(), "GOGC=400", "GOMAXPROCS=1")
	b.cmd.Stderr = stderr
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.out = bufio.NewReader(out)
	b.pipe, _ = out.(interface{ SetReadDeadline(time.Time) error })
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	if b.Ready, err = b.receive(startWithin); err != nil {
		return nil, fmt.Errorf("the sandbox did not become ready: %w", errors.Join(err, b.end()))
	}
	return b, nil
}

// Ask sends a command and returns the response line.
func (b *Box) Ask(command string) (string, error) {
	if _, err := io.WriteString(b.in, command+"\n"); err != nil {
		return "", fmt.Errorf("%w%s", err, b.said())
	}
	return b.receive(answerWithin)
}

func (b *Box) receive(within time.Duration) (string, error) {
	if b.pipe != nil {
		_ = b.pipe.SetReadDeadline(time.Now().Add(within))
	}
	line, err := b.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read the answer of the sandbox: %w%s", err, b.said())
	}
	return line, nil
}

// reset resets the clusters to their initial state.
func (b *Box) reset() error {
	answer, err := b.Ask("reset")
	if err == nil && !strings.Contains(answer, `"ok":true`) {
		err = errors.New(strings.TrimSpace(answer))
	}
	return err
}

// end stops the sandbox process, which exits when its standard input is closed.
func (b *Box) end() error {
	_ = b.in.Close()
	err := b.cmd.Wait()
	_ = b.stderr.Close()
	return err
}

// said returns the end of the process's standard error, at most 4 KiB.
func (b *Box) said() string {
	const most = 4 << 10
	info, err := b.stderr.Stat()
	if err != nil || info.Size() == 0 {
		return ""
	}
	text := make([]byte, min(info.Size(), most))
	_, _ = b.stderr.ReadAt(text, info.Size()-int64(len(text)))
	return "\n" + string(text)
}

// Pool lends sandboxes to borrowers. Each sandbox has one borrower at a time. If all sandboxes are lent and the pool
// has not reached its maximum size, the pool starts another one. Otherwise borrowers wait. A borrower that starts its
// own sandbox, as carrick demo does, only reserves capacity for it.
type Pool struct {
	program string
	idle    chan *Box
	room    chan struct{} // one token for each sandbox that can still be started
	log     io.Writer

	mu     sync.Mutex
	all    []*Box
	closed bool
}

// NewPool returns a pool of at most size sandboxes. program is the path of the sandbox binary. Errors that concern no
// borrower are written to log.
func NewPool(program string, size int, log io.Writer) *Pool {
	p := &Pool{program: program, idle: make(chan *Box, size), room: make(chan struct{}, size), log: log}
	for range size {
		p.room <- struct{}{}
	}
	return p
}

// Take lends a sandbox in its initial state. If ctx ends first, Take returns ctx's error.
func (p *Pool) Take(ctx context.Context) (*Box, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case b := <-p.idle:
		return b, nil
	default:
	}
	select {
	case b := <-p.idle:
		return b, nil
	case <-p.room:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b, err := startBox(p.program)
	if err != nil {
		p.room <- struct{}{}
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, b)
	return b, nil
}

// TakeRoom waits until there is capacity for a sandbox that the borrower starts itself. If necessary, it stops an idle
// sandbox. If ctx ends first, TakeRoom returns ctx's error.
func (p *Pool) TakeRoom(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-p.room:
		return nil
	default:
	}
	select {
	case <-p.room:
	case b := <-p.idle:
		_ = b.end()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// GiveRoom releases the capacity that TakeRoom reserved, after the borrower's sandbox has stopped.
func (p *Pool) GiveRoom() { p.room <- struct{}{} }

// Give returns a sandbox to the pool and resets it. If the reset fails, Give stops the sandbox, and the pool can start
// another.
func (p *Pool) Give(b *Box) {
	err := b.reset()
	if err == nil {
		p.idle <- b
		return
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if !closed { // otherwise Close stopped it during the reset
		fmt.Fprintf(p.log, "replacing a sandbox that could not be reset: %v\n", err)
		_ = b.end()
	}
	p.room <- struct{}{}
}

// Close stops all sandboxes.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var ending sync.WaitGroup
	for _, b := range p.all {
		ending.Go(func() { _ = b.end() })
	}
	ending.Wait()
}
