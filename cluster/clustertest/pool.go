package clustertest

import (
	"bufio"
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
	startWithin  = 20 * time.Minute // a slow machine may start several at once
	answerWithin = 10 * time.Minute
)

// Box is one running sandbox process, used by one test at a time.
type Box struct {
	Ready string // the JSON line that describes its clusters

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	pipe   interface{ SetReadDeadline(time.Time) error }
	stderr *os.File
}

// startBox starts the sandbox binary at a path and returns when its clusters are ready.
func startBox(program string) (*Box, error) {
	stderr, err := os.CreateTemp("", "carrick-sandbox-*.log")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(stderr.Name()) // the open file stays usable without its name
	b := &Box{cmd: exec.Command(program), stderr: stderr}
	// Several sandboxes share a few cores, and CPU is scarcer than memory. Less frequent garbage collection, and one
	// thread per process for running Go code, save a quarter of the CPU time of a sandbox.
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
		return nil, fmt.Errorf("the sandbox did not get ready: %w", errors.Join(err, b.end()))
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
		return "", fmt.Errorf("read its answer: %w%s", err, b.said())
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

// said returns the last lines of the process's standard error.
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

// Pool lends sandboxes, each to one borrower at a time. If all are lent, it starts a new one, up to its size. After
// that, borrowers wait. A borrower that starts its own sandbox, as carrick demo does, borrows only the capacity for it.
type Pool struct {
	program string
	idle    chan *Box
	room    chan struct{} // one token for each sandbox that may still be started
	log     io.Writer

	mu     sync.Mutex
	all    []*Box
	closed bool
}

// NewPool returns a pool of at most size sandboxes of the binary at a path. It writes errors that occur between two
// borrowers to log.
func NewPool(program string, size int, log io.Writer) *Pool {
	p := &Pool{program: program, idle: make(chan *Box, size), room: make(chan struct{}, size), log: log}
	for range size {
		p.room <- struct{}{}
	}
	return p
}

// Take lends a sandbox in its initial state.
func (p *Pool) Take() (*Box, error) {
	select {
	case b := <-p.idle:
		return b, nil
	default:
	}
	select {
	case b := <-p.idle:
		return b, nil
	case <-p.room:
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

// TakeRoom waits until there is capacity for a sandbox that the borrower starts. It stops an idle one if necessary.
func (p *Pool) TakeRoom() {
	select {
	case <-p.room:
		return
	default:
	}
	select {
	case <-p.room:
	case b := <-p.idle:
		_ = b.end()
	}
}

// GiveRoom returns the capacity of TakeRoom, after the borrower's sandbox has stopped.
func (p *Pool) GiveRoom() { p.room <- struct{}{} }

// Give returns a sandbox to the pool and resets it. If the reset fails, Give stops the sandbox, and the pool may start
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
		fmt.Fprintf(p.log, "a sandbox is replaced, because it could not be reset: %v\n", err)
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
