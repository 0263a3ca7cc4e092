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

// RelayedBox is the name of the symlink to the folder of the sandbox that Relay passes commands to.
const RelayedBox = "box"

// Serve sends a borrower the line that describes its sandbox, and then the response to each of its commands, until
// either side closes the connection.
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

// Lend serves the sandbox to the first process that connects to the listener with Relay, until that process exits or
// the listener is closed.
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

// Relay acts as the sandbox process, with the sandbox that is lent at an address. It passes commands from in to the
// sandbox, and responses to out, until in ends. It reports dir as the sandbox's folder. The symlink RelayedBox in dir
// points to the real folder.
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
	go func() { _, _ = io.Copy(out, replies) }() // ends with the connection
	_, err = io.Copy(conn, in)
	return err
}
