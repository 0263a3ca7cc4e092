package clustertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"carrick/cluster/clustertest/cases"
)

// The first word of the line that a borrower sends to a pool: a request for a sandbox, or for the capacity to start
// one. The rest of the line is the borrower's name.
const (
	askSandbox = "sandbox"
	AskRoom    = "room"
)

// Late is the pool's response to a request that it does not grant in time. No other response begins with that letter.
const Late = "late"

var errLate = errors.New("no sandbox was free before CARRICK_UNTIL")

// skipLate skips the test, and records that it did not run, if err is errLate.
func skipLate(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, errLate) {
		cases.NotRun(tb)
		tb.Skipf("not run: %v", err)
	}
}

// borrow borrows a sandbox. back returns the sandbox to the pool. If back is not nil, the caller must call it, even
// after an error.
func borrow(program, name string) (s *Sandbox, back func(), err error) {
	if address := os.Getenv(Socket); address != "" {
		return join(address, name)
	}
	lent.once.Do(func() { lent.own = NewPool(program, 1, os.Stderr) })
	box, err := lent.own.Take(context.Background())
	if err != nil {
		return nil, nil, err
	}
	s = &Sandbox{ask: box.Ask}
	return s, func() { lent.own.Give(box) }, s.greet(box.Ready)
}

// ask sends a request to the pool at the given address and returns the response. The pool responds when it grants the
// request, or that it is too late; then ask returns errLate.
func ask(address, what, name string) (conn net.Conn, answer *bufio.Reader, err error) {
	if conn, err = net.Dial("unix", address); err != nil {
		return nil, nil, err
	}
	answer = bufio.NewReader(conn)
	if _, err = fmt.Fprintln(conn, what, filepath.Base(os.Args[0]), name); err == nil {
		var first []byte
		if first, err = answer.Peek(1); err == nil && first[0] == Late[0] {
			err = errLate
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, answer, nil
}

// join borrows a sandbox from the pool at the given address. The pool takes the sandbox back when the connection
// closes.
func join(address, name string) (s *Sandbox, back func(), err error) {
	conn, replies, err := ask(address, askSandbox, name)
	if err != nil {
		return nil, nil, err
	}
	ready, err := replies.ReadString('\n')
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	s = &Sandbox{ask: func(command string) (string, error) {
		if _, err := io.WriteString(conn, command+"\n"); err != nil {
			return "", err
		}
		return replies.ReadString('\n')
	}}
	return s, func() { _ = conn.Close() }, s.greet(ready)
}
