// Command share runs a command, such as go test, with one sandbox for all test
// binaries that it starts: share COMMAND [ARG …]. CARRICK_SANDBOX names the
// sandbox program. The sandbox ends with the command.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"carrick/cluster/clustertest"
)

func main() {
	code, err := share(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		code = 1
	}
	os.Exit(code)
}

func share(command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("which command?")
	}
	box := exec.Command(os.Getenv(clustertest.Program))
	box.Stderr = os.Stderr
	in, err := box.StdinPipe()
	if err != nil {
		return 1, err
	}
	out, err := box.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := box.Start(); err != nil {
		return 1, fmt.Errorf("start the sandbox: %w", err)
	}
	defer func() {
		_ = in.Close() // this ends it
		err = errors.Join(err, box.Wait())
	}()
	replies := bufio.NewReader(out)
	ready, err := replies.ReadString('\n')
	if err != nil {
		return 1, fmt.Errorf("the sandbox did not get ready: %w", err)
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
	go serve(listener, ready, in, replies)
	return run(command, listener.Addr().String())
}

func run(command []string, socket string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), clustertest.Socket+"="+socket)
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// serve gives each connection the line of readiness, and passes its commands
// on, one at a time.
func serve(l net.Listener, ready string, in io.Writer, replies *bufio.Reader) {
	var turn sync.Mutex
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := io.WriteString(conn, ready); err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				turn.Lock()
				_, err := fmt.Fprintln(in, lines.Text())
				reply := ""
				if err == nil {
					reply, err = replies.ReadString('\n')
				}
				turn.Unlock()
				if err != nil {
					return
				}
				if _, err := io.WriteString(conn, reply); err != nil {
					return
				}
			}
		}()
	}
}
