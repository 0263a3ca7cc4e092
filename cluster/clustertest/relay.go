package clustertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// RelayedBox is the name of a symlink to the directory of the sandbox to which Relay connects.
const RelayedBox = "box"

// Serve sends a borrower the line that describes its sandbox, and then the responses to its commands, until either side
// closes the connection.
func Serve(borrower io.Writer, commands *bufio.Scanner, ready string, ask func(command string) (string, error)) {
	answer, err := ready, error(nil)
	for {
		if err == nil {
			_, err = io.WriteString(borrower, answer)
		}
		if err != nil || !commands.Scan() {
			return
		}
		answer, err = ask(commands.Text())
	}
}

// Lend lends the sandbox to the first process that connects to the listener with Relay. It returns when that process
// exits or the listener is closed.
func (s *Sandbox) Lend(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	Serve(conn, bufio.NewScanner(conn), s.ready, func(command string) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.ask(command)
	})
}

// Relay behaves like a sandbox process. It connects to the Unix socket at address, where another process lends a
// sandbox (see Lend). It forwards commands from in to this sandbox and writes the responses to out. It returns when in
// ends. It reports dir as the sandbox's directory, and creates the symlink RelayedBox in dir, which points to the real
// directory.
func Relay(address, dir string, in io.Reader, out io.Writer) error {
	conn, err := net.Dial("unix", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	replies := bufio.NewReader(conn)
	line, err := replies.ReadString('\n')
	if err != nil {
		return err
	}
	var ready map[string]any
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		return err
	}
	if err := os.Symlink(fmt.Sprint(ready["dir"]), filepath.Join(dir, RelayedBox)); err != nil {
		return err
	}
	ready["dir"] = dir
	if err := json.NewEncoder(out).Encode(ready); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(out, replies) }() // ends when the connection closes
	_, err = io.Copy(conn, in)
	return err
}
