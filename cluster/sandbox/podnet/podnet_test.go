package podnet

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// listen starts a server that sends its name to each client, and then echoes the client's data. It returns its address.
func listen(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprintln(conn, name)
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func start(t *testing.T) *Network {
	t.Helper()
	n, err := Start(filepath.Join(t.TempDir(), "s"), "10.244.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// ask sends a request to the network's socket. It returns the connection, a reader of it, and the response's status
// line.
func ask(t *testing.T, n *Network, request string) (net.Conn, *bufio.Reader, string) {
	t.Helper()
	conn, err := net.Dial("unix", n.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", request)
	in := bufio.NewReader(conn)
	said, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, in, said.Status
}

func TestAddressesLeadWhereTheyShould(t *testing.T) {
	n := start(t)
	first, second := listen(t, "first"), listen(t, "second")
	for pod, to := range map[string]string{"10.244.0.2": first, "10.244.0.3": second} {
		if _, err := n.Lead(pod, 8443, to); err != nil {
			t.Fatal(err)
		}
	}
	for address, want := range map[string]string{"10.244.0.2:8443": "first", "10.244.0.3:8443": "second", first: "first"} {
		conn, in, status := ask(t, n, "CONNECT "+address)
		if status != "200 OK" {
			t.Errorf("%s: %s", address, status)
			continue
		}
		if name, err := in.ReadString('\n'); err != nil || name != want+"\n" {
			t.Errorf("%s leads to %s, %v", address, name, err)
		}
		fmt.Fprintln(conn, "hello")
		if said, err := in.ReadString('\n'); err != nil || said != "hello\n" {
			t.Errorf("%s answers %s, %v", address, said, err)
		}
	}
}

func TestPodsThatAreNotPlayedRefuse(t *testing.T) {
	n := start(t)
	to := listen(t, "it")
	if _, err := n.Lead("10.244.0.2", 8443, to); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.244.0.2:8080", "10.244.0.9:8443"} {
		if _, _, status := ask(t, n, "CONNECT "+address); !strings.Contains(status, "refused") {
			t.Errorf("%s: %s", address, status)
		}
	}
	if _, _, status := ask(t, n, "GET /"); !strings.HasPrefix(status, "405") {
		t.Errorf("what is not CONNECT: %s", status)
	}
	if _, _, status := ask(t, n, "CONNECT 127.0.0.1:1"); !strings.HasPrefix(status, "502") {
		t.Errorf("a port where nobody listens: %s", status)
	}
	if _, err := n.Lead("no address", 1, to); err == nil {
		t.Error("no address leads somewhere")
	}
}

func TestConnectionsEndWithTheirPod(t *testing.T) {
	n := start(t)
	release, err := n.Lead("10.244.0.2", 8443, listen(t, "it"))
	if err != nil {
		t.Fatal(err)
	}
	_, in, _ := ask(t, n, "CONNECT 10.244.0.2:8443")
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	release()
	if said, err := in.ReadString('\n'); err == nil {
		t.Errorf("it goes on: %s", said)
	}
	if _, _, status := ask(t, n, "CONNECT 10.244.0.2:8443"); !strings.Contains(status, "refused") {
		t.Errorf("a pod that is gone: %s", status)
	}
	if _, err := n.Lead("10.244.0.2", 8443, listen(t, "next")); err != nil {
		t.Fatal(err)
	}
	release() // a second time, when another pod has the address
	if _, _, status := ask(t, n, "CONNECT 10.244.0.2:8443"); status != "200 OK" {
		t.Errorf("the pod that has the address now: %s", status)
	}
}
