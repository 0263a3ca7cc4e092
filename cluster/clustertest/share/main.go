// Command share runs a command, such as go test, with one pool of sandboxes for all test binaries that the command
// starts:
//
//	share [-n SIZE] COMMAND [ARG …]
//
// CARRICK_SANDBOX is the path of the sandbox binary. A sandbox starts when a test requests one and none is idle. All
// sandboxes stop when the command exits. With -times, share then prints the tests that used sandboxes longest.
//
// CARRICK_UNTIL is a Unix time in seconds. After it, a test that has no sandbox yet gets none and is skipped. A test that
// failed and runs again still gets one.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"carrick/cluster/clustertest"
)

const untilEnv = "CARRICK_UNTIL"

func main() {
	size := flag.Int("n", 1, "at most `SIZE` sandboxes at a time")
	times := flag.Bool("times", false, "print the tests that used sandboxes for the longest time")
	flag.Parse()
	code, err := share(*size, *times, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		code = 1
	}
	os.Exit(code)
}

func share(size int, times bool, command []string) (code int, err error) {
	if len(command) == 0 || size < 1 {
		return 2, errors.New("usage: share [-n SIZE] [-times] COMMAND [ARG …]")
	}
	dir, err := os.MkdirTemp("", "carrick-share-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		return 1, err
	}
	defer listener.Close()
	pool := clustertest.NewPool(os.Getenv(clustertest.Program), size, os.Stderr)
	defer pool.Close()
	until, err := deadline(os.Getenv(untilEnv))
	if err != nil {
		return 2, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	held := &tally{by: map[string]time.Duration{}, had: map[string]bool{}}
	go serve(ctx, listener, pool, held)
	if times {
		defer held.print(os.Stderr)
	}
	return run(command, listener.Addr().String())
}

// deadline parses a Unix time in seconds. Without one, it returns a time that no run reaches.
func deadline(until string) (time.Time, error) {
	if until == "" {
		return time.Now().AddDate(1, 0, 0), nil
	}
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s must be a Unix time in seconds: %w", untilEnv, err)
	}
	return time.Unix(seconds, 0), nil
}

func run(command []string, socket string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), clustertest.Socket+"="+socket)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // forward signals to the command only, so that the sandboxes stop after it
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// serve lends a sandbox, or capacity for one, to each connection until the connection closes. The borrower's first line
// states which one it requests. After ctx has ended, serve grants requests only of borrowers that had a sandbox before.
func serve(ctx context.Context, l net.Listener, pool *clustertest.Pool, held *tally) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			if !lines.Scan() {
				return
			}
			what, who, _ := strings.Cut(lines.Text(), " ")
			ctx := ctx
			if held.before(who) { // it failed and runs again
				ctx = context.WithoutCancel(ctx)
			}
			if what == clustertest.AskRoom {
				if pool.TakeRoom(ctx) != nil {
					fmt.Fprintln(conn, clustertest.Late)
					return
				}
				held.grant(who)
				defer held.add(who, time.Now())
				defer pool.GiveRoom()
				_, _ = io.WriteString(conn, "\n")
				lines.Scan() // wait until the borrower closes the connection
				return
			}
			box, err := pool.Take(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				fmt.Fprintln(conn, clustertest.Late)
				return
			}
			held.grant(who)
			if err != nil {
				_ = json.NewEncoder(conn).Encode(map[string]string{"error": err.Error()})
				return
			}
			defer pool.Give(box)
			defer held.add(who, time.Now())
			clustertest.Serve(conn, lines, box.Ready, box.Ask)
		}()
	}
}

// tally records which tests had sandboxes, and how long they used them, by test binary and top-level test.
type tally struct {
	mu  sync.Mutex
	by  map[string]time.Duration
	had map[string]bool // whose request was granted, even if no sandbox started; by test binary and full name
}

func (t *tally) grant(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.had[who] = true
}

func (t *tally) before(who string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.had[who]
}

func (t *tally) add(who string, since time.Time) {
	test, _, _ := strings.Cut(who, "/")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[test] += time.Since(since)
}

// print prints the tests that used sandboxes longest.
func (t *tally) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tests := slices.SortedFunc(maps.Keys(t.by), func(a, b string) int { return cmp.Compare(t.by[b], t.by[a]) })
	var all time.Duration
	for _, d := range t.by {
		all += d
	}
	fmt.Fprintf(w, "%6.0f s  of sandboxes\n", all.Seconds())
	for _, test := range tests[:min(len(tests), 25)] {
		fmt.Fprintf(w, "%6.0f s  %s\n", t.by[test].Seconds(), test)
	}
}
