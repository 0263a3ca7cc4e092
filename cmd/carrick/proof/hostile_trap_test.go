package proof

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// trap detects whether carrick follows a hostile kubeconfig: a program that leaves a file, a file that is watched for
// reads, and a proxy that counts connections.
type trap struct {
	mark, file, program string
	proxy               string
	calls               atomic.Int32
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	dir := t.TempDir()
	tr := &trap{mark: filepath.Join(dir, "mark"), file: filepath.Join(dir, "file"), program: filepath.Join(dir, "program")}
	script := fmt.Sprintf(
		"#!/bin/sh\necho ran >>%s\necho "+
			"'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}'\n",
		tr.mark,
	)
	if err := os.WriteFile(tr.program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tr.file, []byte("a token in a file of the admin's"), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	tr.proxy = listen.Addr().String()
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			if byCarrick(conn.RemoteAddr().(*net.TCPAddr).Port, listen.Addr().(*net.TCPAddr).Port) {
				tr.calls.Add(1)
			}
			conn.Close()
		}
	}()
	return tr
}

// byCarrick reports whether a carrick process opened the connection between these ports of this machine. Programs of
// the sandbox may follow a kubeconfig, as Liqo itself would. Both ports count, because a connection to another server
// may come from the same port.
func byCarrick(from, to int) bool {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", from)) &&
				strings.HasSuffix(f[2], fmt.Sprintf(":%04X", to)) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	for _, pid := range childrenOf(os.Getpid()) {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); filepath.Base(exe) != "carrick" {
			continue
		}
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			if to, _ := os.Readlink(link); inodes[to] {
				return true
			}
		}
	}
	return false
}

var (
	userOf    = regexp.MustCompile(`(?m)^(\s*)user:\s*\n(\s+)\S`)
	clusterOf = regexp.MustCompile(`(?m)^(\s*)cluster:\s*\n(\s+)\S`)
)

// kubeconfigs returns variants of a good kubeconfig, each with an entry that must not be followed.
func (tr *trap) kubeconfigs(good string) map[string]string {
	user := func(line string) string { return inserted(good, userOf, line) }
	cluster := func(line string) string { return inserted(good, clusterOf, line) }
	exec := "exec: {apiVersion: client.authentication.k8s.io/v1, command: " + tr.program + ", interactiveMode: Never}"
	return map[string]string{
		"exec":                   user(exec),
		"auth-provider":          user("auth-provider: {name: oidc, config: {idp-issuer-url: 'http://" + tr.proxy + "'}}"),
		"tokenFile":              user("tokenFile: " + tr.file),
		"client certificate":     user("client-certificate: " + tr.file + "\nclient-key: " + tr.file),
		"impersonation":          user("as: system:admin\nas-groups: ['system:masters']"),
		"insecure":               cluster("insecure-skip-tls-verify: true"),
		"certificate authority":  cluster("certificate-authority: " + tr.file),
		"proxy":                  cluster("proxy-url: http://" + tr.proxy),
		"a server of their own":  strings.Replace(good, "server: https://", "server: http://"+tr.proxy+"/?", 1),
		"an alias of everything": "a: &a [*a]\n" + good,
		"nothing that is YAML":   "\x1b[2J: [\x00",
	}
}

// inserted inserts lines into the first mapping that a pattern matches.
func inserted(text string, at *regexp.Regexp, lines string) string {
	m := at.FindStringSubmatchIndex(text)
	if m == nil {
		return text + "\n" + lines
	}
	indent := text[m[4]:m[5]]
	return text[:m[4]] + indent + strings.ReplaceAll(lines, "\n", "\n"+indent) + "\n" + text[m[4]:]
}

// untouched fails the test if the trap was triggered.
func (tr *trap) untouched(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(tr.mark); err == nil {
		t.Error("the program was run")
		_ = os.Remove(tr.mark)
	}
	if n := tr.calls.Swap(0); n > 0 {
		t.Errorf("the proxy was called %d times", n)
	}
}
