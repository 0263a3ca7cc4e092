// Package proxy is a proxy between carrick and an API server. It simulates failures of a network, a load balancer or a
// server. It terminates TLS, parses each request, and injects the faults of its rules.
//
// The proxy forwards bearer tokens. It cannot forward client certificates. If a request has the admin's certificate,
// the proxy forwards the request with the same certificate. If a request has another client certificate of the cluster,
// the proxy forwards the request as the admin and impersonates the certificate's user, so that the user's permissions
// apply.
package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
)

// Proxy is a proxy for one API server.
type Proxy struct {
	URL string // the proxy's address, which replaces the API server's

	admin   kubeconfig.Config // the admin's kubeconfig
	trusted *x509.CertPool    // CAs for client certificates
	own     *authority
	server  *http.Server
	forward *httputil.ReverseProxy
	asAdmin http.RoundTripper
	asOther http.RoundTripper // sends requests without a client certificate

	mu     sync.Mutex
	rules  []*Rule
	before func(Request) bool
	after  func(Request) bool
	log    []Entry
	done   int // number of changes that the API server has answered
	conns  map[net.Conn]bool
}

// Entry is a request with the status code of its response. The code is 0 if there was no response. Bodies are not
// recorded.
type Entry struct {
	Request
	Code int
}

// New starts a proxy in front of the API server of a side. The proxy stops when the test ends.
func New(tb testing.TB, box *clustertest.Sandbox, side string) *Proxy {
	tb.Helper()
	data, err := os.ReadFile(box.Kubeconfigs[side])
	if err != nil {
		tb.Fatal(err)
	}
	k, err := kubeconfig.Parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	return Before(tb, k)
}

// Before starts a proxy in front of an API server. admin is an administrator's kubeconfig for this API server.
func Before(tb testing.TB, admin kubeconfig.Config) *Proxy {
	tb.Helper()
	target, err := url.Parse(admin.Server)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{admin: admin, trusted: x509.NewCertPool(), conns: map[net.Conn]bool{}}
	p.trusted.AppendCertsFromPEM(admin.CA)
	if p.own, err = newAuthority(); err != nil {
		tb.Fatal(err)
	}
	pair, err := tls.X509KeyPair(admin.ClientCert, []byte(admin.ClientKey.Reveal()))
	if err != nil {
		tb.Fatalf("the admin's kubeconfig has no client certificate: %v", err)
	}
	with, without := p.transport(pair), p.transport()
	p.asAdmin, p.asOther = with, without
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      roundTripper(p.roundTrip),
		FlushInterval:  -1,
		ErrorLog:       quiet,
		ModifyResponse: p.answered,
		ErrorHandler:   func(_ http.ResponseWriter, r *http.Request, _ error) { reset(r) },
	}
	accept, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p.URL = "https://" + accept.Addr().String()
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ErrorLog: quiet,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{p.own.server}, ClientAuth: tls.RequestClientCert},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:   p.state,
	}
	var work sync.WaitGroup
	work.Go(func() { _ = p.server.ServeTLS(accept, "", "") })
	tb.Cleanup(func() {
		_ = p.server.Close()
		p.Cut() // closes HTTP/2 connections too
		work.Wait()
		with.CloseIdleConnections()
		without.CloseIdleConnections()
	})
	return p
}

// Kubeconfig writes a copy of the admin's kubeconfig with the proxy as its server. It returns the path and the context
// of the copy.
func (p *Proxy) Kubeconfig(tb testing.TB) (path, context string) {
	tb.Helper()
	k := p.admin
	k.Server, k.CA = p.URL, p.own.pem
	path = filepath.Join(tb.TempDir(), k.Name+".kubeconfig")
	if err := os.WriteFile(path, []byte(k.Bytes().Reveal()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path, k.Name
}

// CA returns the CA of the proxy's own certificate, in PEM.
func (p *Proxy) CA() []byte { return p.own.pem }

func (p *Proxy) transport(certs ...tls.Certificate) *http.Transport {
	return &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: p.trusted, Certificates: certs, ServerName: p.admin.TLSServerName},
		ForceAttemptHTTP2: true, DisableCompression: true,
	}
}

// Log returns the requests so far.
func (p *Proxy) Log() []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// Changes returns the number of answered requests that could change the cluster.
func (p *Proxy) Changes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Intercept sets functions that are called for each request that can change the cluster. The proxy calls before when it
// is about to forward the request. It calls after when it is about to forward the response. If a function returns
// false, the proxy resets the connection instead. Either function can be nil.
func (p *Proxy) Intercept(before, after func(Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

// Cut resets all open connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		resetConn(c)
	}
}

func (p *Proxy) state(c net.Conn, s http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s {
	case http.StateNew:
		p.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, c)
	}
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	asked := parse(r)
	p.mu.Lock()
	noted := &statusRecorder{w, p, len(p.log)}
	p.log = append(p.log, Entry{asked, 0})
	fault, before := p.faultOf(asked), p.before
	p.mu.Unlock()
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Changes() && before != nil && !before(asked) {
			reset(r)
		}
		p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, asked)))
	})
	if fault == nil {
		next(noted, r)
		return
	}
	fault.serve(noted, r, asked, next)
}

func (p *Proxy) answered(resp *http.Response) error {
	asked, _ := resp.Request.Context().Value(askedKey{}).(Request)
	p.mu.Lock()
	after := p.after
	if asked.Changes() {
		p.done++
	}
	p.mu.Unlock()
	if asked.Changes() && after != nil && !after(asked) {
		return errIntercepted
	}
	return nil
}

// statusRecorder is an http.ResponseWriter that records the status code of the response in the log.
type statusRecorder struct {
	http.ResponseWriter
	p  *Proxy
	at int // index in the log
}

func (n *statusRecorder) WriteHeader(code int) {
	n.note(code)
	n.ResponseWriter.WriteHeader(code)
}

func (n *statusRecorder) Write(b []byte) (int, error) {
	n.note(http.StatusOK)
	return n.ResponseWriter.Write(b)
}

func (n *statusRecorder) note(code int) {
	n.p.mu.Lock()
	defer n.p.mu.Unlock()
	if e := &n.p.log[n.at]; e.Code == 0 {
		e.Code = code
	}
}

func (n *statusRecorder) Unwrap() http.ResponseWriter { return n.ResponseWriter }
