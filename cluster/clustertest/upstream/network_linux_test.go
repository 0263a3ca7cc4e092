package upstream

import (
	"bytes"
	"net"
	"os"
	"testing"
)

// A program in a namespace can reach a loopback address of this machine only if the address is forwarded.
func TestNetworks(t *testing.T) {
	nets := NewNetworks(t)
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	go func() {
		for {
			c, err := here.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("here"))
			c.Close()
		}
	}()
	one, err := nets.Add(t)
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		out, _ := one.command(t.Context(), "bash", []string{"-c", `cat <"/dev/tcp/$0/$1"`, "127.0.0.1", port(here)}).Output()
		return string(out)
	}
	if got := said(); got != "" {
		t.Errorf("without a forward it reads %q", got)
	}
	if err := one.Forward(t, here.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != "here" {
		t.Errorf("it reads %q", got)
	}
	two, err := nets.Add(t)
	if err != nil {
		t.Fatal(err)
	}
	there, err := two.listen(two.Address + ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	for name, dial := range map[string]func() error{
		"this machine": func() error {
			c, err := net.Dial("tcp", there.Addr().String())
			if err == nil {
				c.Close()
			}
			return err
		},
		"the other namespace": func() error {
			return one.command(t.Context(), "bash", []string{"-c", `: <"/dev/tcp/$0/$1"`, two.Address, port(there)}).Run()
		},
	} {
		if err := dial(); err != nil {
			t.Errorf("%s does not reach it: %v", name, err)
		}
	}
	own, err := one.command(t.Context(), "ls", []string{"/run"}).Output()
	if files, _ := os.ReadDir("/run"); err != nil || len(files) > 0 && len(bytes.TrimSpace(own)) > 0 {
		t.Errorf("its /run has %q, %v", own, err)
	}
}

// The next test deletes the namespaces and bridges of a killed test.
func TestSweep(t *testing.T) {
	NewNetworks(t) // or it is skipped
	const name = bridges + "0"
	if err := ip("link", "add", name, "type", "bridge"); err != nil {
		t.Fatal(err)
	}
	sweep()
	if _, err := net.InterfaceByName(name); err == nil {
		t.Errorf("%s is left", name)
		_ = ip("link", "delete", name)
	}
}

func port(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
