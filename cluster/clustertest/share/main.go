// Command share runs a command, such as go test, with a pool of sandboxes for all test binaries
// that the command starts: share [-n SIZE] COMMAND [ARG …]. CARRICK_SANDBOX names the sandbox
// program. A sandbox starts when a test asks for one and none is free; all end with the command.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"carrick/cluster/clustertest"
)

func main() {
	size := flag.Int("n", 1, "at most `SIZE` sandboxes at a time")
	flag.Parse()
	code, err := share(*size, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		code = 1
	}
	os.Exit(code)
}

func share(size int, command []string) (code int, err error) {
	if len(command) == 0 || size < 1 {
		return 2, errors.New("usage: share [-n SIZE] COMMAND [ARG …]")
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
	go serve(listener, pool)
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

// serve lends a sandbox, or the room for one, to each connection until that ends. Its first line says which.
func serve(l net.Listener, pool *clustertest.Pool) {
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
			if lines.Text() == clustertest.AskRoom {
				pool.TakeRoom()
				defer pool.GiveRoom()
				_, _ = io.WriteString(conn, "\n")
				lines.Scan() // until the borrower closes the connection
				return
			}
			box, err := pool.Take()
			if err != nil {
				_ = json.NewEncoder(conn).Encode(map[string]string{"error": err.Error()})
				return
			}
			defer pool.Give(box)
			relay(conn, lines, box)
		}()
	}
}

// relay passes commands and their answers on until either end is gone.
func relay(conn io.Writer, lines *bufio.Scanner, box *clustertest.Box) {
	if _, err := io.WriteString(conn, box.Ready); err != nil {
		return
	}
	for lines.Scan() {
		answer, err := box.Ask(lines.Text())
		if err == nil {
			_, err = io.WriteString(conn, answer)
		}
		if err != nil {
			return
		}
	}
}
