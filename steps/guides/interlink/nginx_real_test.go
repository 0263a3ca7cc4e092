package interlink

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"carrick/cluster/certificate"
	"carrick/steps/stepstest"
)

// fronted runs nginx in front of a TLS server that the test provides.
func fronted(t *testing.T, h http.HandlerFunc, change func(*nginxConf)) proxyRun {
	t.Helper()
	s, ca := stepstest.ServeTLS(t, h)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return runProxy(t, u.Host, "localhost", ca, change)
}

func (p proxyRun) url(path string) string { return "https://" + p.address + path }

// dial opens a TLS connection to the proxy, as a job would.
func (p proxyRun) dial(t *testing.T) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", p.address, p.client(p.ca, "", 0).Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// nginx forwards only the four paths, and decides by the path as the client sent it, not only by its normalized path.
// It forwards the path and the token unchanged.
func TestProxyPassesFourPaths(t *testing.T) {
	p := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s %s", r.RequestURI, r.Header.Get("Authorization"), r.Host, r.Header.Get("X-Forwarded-For"))
	}, nil)
	for path, through := range map[string]bool{
		"/api": true, "/api/": true, "/api/v1/pods?watch=1&labelSelector=a%3Db": true, "/apis": true, "/apis/apps/v1": true,
		"/version":             true,
		"/version?timeout=32s": true, "/openapi/v3": true, "/api?x=1": true, "/api/v1/namespaces/a%2Fb": true,
		"/api/v1/proxy/a%3Fb": true,
		"/":                   false, "/metrics": false, "/healthz": false, "/logs": false, "/debug/pprof": false,
		"/apiserver": false, "/versions": false, "/API": false,
		"/api/../metrics": false, "/metrics/../api": false, "//api": false, "/api/%2e%2e/metrics": false,
		"/api/..%2fmetrics": false,
		"/healthz/..%2fapi": false, "/.well-known/openid-configuration": false, "/%61pi": false,
	} {
		conn := p.dial(t)
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n", path)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		want := path + " Bearer t localhost 127.0.0.1"
		switch {
		case err != nil:
			t.Errorf("%s: %v", path, err)
		case through && (res.StatusCode != 200 || string(body) != want):
			t.Errorf("%s: %d %s, not %s", path, res.StatusCode, body, want)
		case !through && res.StatusCode != 404:
			t.Errorf("%s gets through: %d %s", path, res.StatusCode, body)
		}
	}
}

// nginx buffers neither responses nor requests: a followed log arrives line by line, and a request body arrives part by
// part. The test waits for each part before it sends the next one.
func TestProxyStreams(t *testing.T) {
	lines, parts := make(chan string), make(chan string)
	p := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		in := bufio.NewReader(r.Body)
		for r.Method == http.MethodPost {
			part, err := in.ReadString('\n')
			if err != nil {
				return
			}
			parts <- part
		}
		for l := range lines {
			_, _ = io.WriteString(w, l)
			_ = http.NewResponseController(w).Flush()
		}
	}, nil)
	c := p.client(p.ca, "", tls.VersionTLS13)
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		status, _, err := ask(t, c, http.MethodPost, p.url("/api/v1/upload"), "t", out)
		ended <- errors.Join(err, is(status, 200))
	}()
	for i := range 3 {
		part := fmt.Sprintf("part %d\n", i)
		if _, err := io.WriteString(in, part); err != nil {
			t.Fatal(err)
		}
		if got := <-parts; got != part {
			t.Fatalf("the server has %q, not %q", got, part)
		}
	}
	_ = in.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	go func() { lines <- "line 0\n" }() // the headers come with the first of them
	res, err := c.Get(p.url("/api/v1/namespaces/a/pods/b/log?follow=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	log := bufio.NewReader(res.Body)
	for i := range 3 {
		if got, err := log.ReadString('\n'); err != nil || got != fmt.Sprintf("line %d\n", i) {
			t.Fatalf("line %d is %q: %v", i, got, err)
		}
		if i < 2 {
			lines <- fmt.Sprintf("line %d\n", i+1)
		}
	}
	close(lines)
	if rest, err := io.ReadAll(log); err != nil || len(rest) > 0 {
		t.Errorf("after the end there is %q: %v", rest, err)
	}
}

func is(got, want int) error {
	if got != want {
		return fmt.Errorf("status %d, not %d", got, want)
	}
	return nil
}

// kubectl exec and port-forward upgrade the connection. Afterwards both sides can send.
func TestProxyUpgrades(t *testing.T) {
	p := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || !strings.EqualFold(r.Header.Get("Connection"), "upgrade") {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(
			conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nwelcome\n",
		)
		for {
			l, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "heard "+l)
		}
	}, nil)
	conn := p.dial(t)
	fmt.Fprintf(
		conn,
		"GET /api/v1/namespaces/a/pods/b/exec?command=sh HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: "+
			"Upgrade\r\n\r\n",
	)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", res, err)
	}
	for _, said := range []string{"", "one\n", "two\n"} {
		want := "welcome\n"
		if said != "" {
			_, _ = io.WriteString(conn, said)
			want = "heard " + said
		}
		if got, err := in.ReadString('\n'); err != nil || got != want {
			t.Fatalf("%q, not %q: %v", got, want, err)
		}
	}
}

// Large responses and large request bodies arrive completely.
func TestProxyLarge(t *testing.T) {
	const size = 12 << 20
	p := fronted(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		if err != nil || n != size {
			http.Error(w, fmt.Sprint(n, err), http.StatusBadRequest)
			return
		}
		w.Header().Set("Sum", fmt.Sprintf("%x", h.Sum(nil)))
		_, _ = w.Write(bytes.Repeat([]byte("0123456789abcdef"), size/16))
	}, nil)
	body := bytes.Repeat([]byte("fedcba9876543210"), size/16)
	res, err := p.client(p.ca, "", 0).Post(p.url("/api/v1/big"), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || len(got) != size ||
		res.Header.Get("Sum") != fmt.Sprintf("%x", sha256.Sum256(body)) {
		t.Errorf("%d, %d bytes back: %v", res.StatusCode, len(got), err)
	}
}

// nginx serves a renewed certificate from the next handshake on, without a restart.
func TestProxyShowsARenewedCertificate(t *testing.T) {
	p := fronted(t, func(http.ResponseWriter, *http.Request) {}, nil)
	if _, _, err := ask(t, p.client(p.ca, "", 0), "GET", p.url("/version"), "", nil); err != nil {
		t.Fatal(err)
	}
	other, err := certificate.NewAuthority("another CA", 1)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := certificate.Issue(other, []string{"127.0.0.1"}, 30)
	if err != nil {
		t.Fatal(err)
	}
	p.shows(t, leaf.Cert, leaf.Key)
	if _, _, err := ask(t, p.client(p.ca, "", 0), "GET", p.url("/version"), "", nil); err == nil {
		t.Error("the old CA still proves what is shown")
	}
	if _, _, err := ask(t, p.client(other.Cert, "", 0), "GET", p.url("/version"), "", nil); err != nil {
		t.Errorf("the renewed certificate is not shown: %v", err)
	}
}

// nginx sends no token to an API server whose certificate does not verify against the CA.
func TestProxyProvesTheServer(t *testing.T) {
	asked := make(chan string, 1)
	p := fronted(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }, nil)
	other, err := certificate.NewAuthority("another CA", 1)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := stepstest.ServeTLS(
		t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }),
	)
	u, _ := url.Parse(s.URL)
	for name, wrong := range map[string]proxyRun{
		"another CA": runProxy(t, u.Host, "localhost", other.Cert, nil),
		"another name": fronted(
			t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") },
			func(c *nginxConf) { c.name = "kubernetes.default.svc" },
		),
	} {
		status, _, err := ask(t, wrong.client(wrong.ca, "", 0), "GET", wrong.url("/version"), "t", nil)
		if err != nil || status != http.StatusBadGateway {
			t.Errorf("%s: %d %v", name, status, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the token went to a server that nothing proved")
	}
	if status, _, err := ask(t, p.client(p.ca, "", 0), "GET", p.url("/version"), "t", nil); err != nil || status != 200 ||
		<-asked != "Bearer t" {
		t.Errorf("the right one: %d %v", status, err)
	}
}

// nginx closes an idle connection after the configured time, and not earlier. The test needs no clock: when nginx has
// closed the watch with the short timeout, the other watch has been idle for longer.
func TestProxyHoldsQuietWatches(t *testing.T) {
	go1 := make(chan struct{})
	quiet := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-go1:
			_, _ = io.WriteString(w, "second\n")
		case <-r.Context().Done():
		}
	}
	short := fronted(t, quiet, func(c *nginxConf) { c.readAfter = time.Second })
	shipped := fronted(t, quiet, nil)
	open := func(p proxyRun) *bufio.Reader {
		res, err := p.client(p.ca, "", 0).Get(p.url("/api/v1/pods?watch=1"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		in := bufio.NewReader(res.Body)
		if l, err := in.ReadString('\n'); err != nil || l != "first\n" {
			t.Fatalf("%q %v", l, err)
		}
		return in
	}
	held, cut := open(shipped), open(short)
	if l, err := cut.ReadString('\n'); err == nil {
		t.Fatalf("the watch that is to be cut says %q", l)
	}
	close(go1)
	if l, err := held.ReadString('\n'); err != nil || l != "second\n" {
		t.Errorf("the shipped configuration cuts it, too: %q %v", l, err)
	}
}

// Thousands of connections with an unfinished handshake or request header do not block other connections, and nginx
// closes them soon.
func TestHalfARequestKeepsNobodyOut(t *testing.T) {
	p := fronted(
		t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("here")) },
		func(c *nginxConf) { c.openAfter = 2 * time.Second },
	)
	const many = 4200
	var first net.Conn
	for i := range many {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("\x16\x03\x01\x02\x00\x01")); err != nil && i < many/2 {
			t.Fatalf("connection %d: %v", i, err)
		}
		if first == nil {
			first = conn
		}
	}
	soon := time.Now().Add(30 * time.Second) // nginx itself cuts them after a minute
	conn := p.dial(t)
	_ = conn.SetReadDeadline(soon)
	fmt.Fprint(conn, "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 200 || time.Now().After(soon) {
		t.Errorf("beside %d half handshakes: %v, %v", many, res, err)
	}
	slow := p.dial(t)
	fmt.Fprint(slow, "GET /version HTTP/1.1\r\nHost: x\r\n")
	for what, c := range map[string]net.Conn{"handshake": first, "request's head": slow} {
		_ = c.SetReadDeadline(soon)
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("half a %s is not cut", what)
		}
	}
}
