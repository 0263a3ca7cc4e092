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

// RelayedBox is the name of the link to the folder of a sandbox that Relay has borrowed.
const RelayedBox = "box"

// Lend gives the sandbox to the first program that Relays to the listener, until that program or the listener ends.
func (s *Sandbox) Lend(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for answer, first := s.ready, true; lines.Scan(); first = false { // the first line says who asks
		if !first {
			s.mu.Lock()
			answer, err = s.ask(lines.Text())
			s.mu.Unlock()
		}
		if err == nil {
			_, err = io.WriteString(conn, answer)
		}
		if err != nil {
			return
		}
	}
}

// Relay borrows the sandbox at an address and acts as the sandbox program until in ends: it passes commands from in on,
// and their answers to out. To whoever speaks with it the sandbox's folder is dir, in which the link RelayedBox leads to
// that folder.
func Relay(address, dir string, in io.Reader, out io.Writer) error {
	conn, replies, err := ask(address, AskSandbox, "demo")
	if err != nil {
		return err
	}
	defer conn.Close()
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
