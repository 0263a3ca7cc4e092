package extension

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"carrick/cluster/sandbox/podnet"
)

func TestAProgramFollowsThePodsAddress(t *testing.T) {
	n, err := podnet.Start(filepath.Join(t.TempDir(), "s"), "10.244.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	program, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	i := &instance{ports: map[int]string{8443: program.Addr().String()}}
	for _, ip := range []string{"10.244.0.2", "10.244.0.2", "10.244.0.7"} {
		if err := i.addressed(n, ip); err != nil {
			t.Fatal(err)
		}
	}
	for ip, want := range map[string]int{"10.244.0.2": http.StatusBadGateway, "10.244.0.7": http.StatusOK} {
		conn, err := net.Dial("unix", n.Socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "CONNECT %s:8443 HTTP/1.1\r\nHost: %[1]s\r\n\r\n", ip)
		said, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || said.StatusCode != want {
			t.Errorf("%s: %v, %v; want %d", ip, said, err, want)
		}
	}
}
