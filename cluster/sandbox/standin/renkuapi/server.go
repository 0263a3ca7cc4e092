// Package renkuapi is a stand-in for Renku. It plays its HTTP API
// (renku-data-services), its Keycloak realm, the ingress of its sessions, and
// what its four services do with the kubeconfigs of remote clusters. It is
// written from what Renku 2.19.3 does, as its sources say; none
// of it is Renku's code. All state is in memory, but for what Renku itself
// keeps in a cluster: quotas and priority classes.
package renkuapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/pki"
)

// Options say what the stand-in plays between.
type Options struct {
	Local     *rest.Config    // the local cluster, as admin
	Remote    *rest.Config    // read for what an ingress controller sees, Ingress objects; nil: there are none
	Namespace string          // of Renku on the local cluster: "renku"
	Release   string          // Helm release: "renku"; only shown
	Faults    map[string]bool // behaviours that are on; names in Faults()
}

// Server is a running stand-in.
type Server struct {
	authority *pki.Authority
	domain    string
	sessions  int // port of the sessions' ingress
	realm     *keycloak
	services  *services
	listeners []net.Listener
	servers   []*http.Server // one a listener
	stop      context.CancelFunc
	ended     chan struct{}
}

// clock tells the time, and when a time has passed.
type clock struct {
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
}

// Start listens on loopback. The stand-in ends with ctx or Close.
func Start(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, o, clock{now: time.Now, after: time.After})
}

// start is Start with a clock, so that no test has to wait.
func start(ctx context.Context, o Options, c clock) (*Server, error) {
	for name := range o.Faults {
		if Faults()[name] == "" {
			return nil, fmt.Errorf("the stand-in of Renku has no behaviour %q", name)
		}
	}
	if o.Local == nil || o.Namespace == "" {
		return nil, errors.New("the stand-in of Renku needs the local cluster and Renku's namespace there")
	}
	authority, err := pki.NewAuthority("Renku stand-in")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Server{authority: authority, stop: stop, ended: make(chan struct{})}
	if err := s.build(ctx, o, c); err != nil {
		stop()
		return nil, err
	}
	go s.run(ctx)
	return s, nil
}

// build listens, and puts together what answers there.
func (s *Server) build(ctx context.Context, o Options, c clock) (err error) {
	defer func() {
		if err != nil {
			s.closeListeners()
		}
	}()
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	s.domain = s.listeners[0].Addr().String()
	s.sessions = s.listeners[1].Addr().(*net.TCPAddr).Port
	renku, err := s.handler(o, c)
	if err != nil {
		return err
	}
	sessions := &ingress{}
	if o.Remote != nil {
		sessions.remote = &connection{config: o.Remote}
	}
	certificate, err := s.certificate()
	if err != nil {
		return err
	}
	for _, h := range []http.Handler{renku, sessions} {
		s.servers = append(s.servers, &http.Server{
			Handler:           h,
			TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
			ReadHeaderTimeout: 10 * time.Second,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ErrorLog:          log.New(io.Discard, "", 0),
		})
	}
	return nil
}

// handler is everything under Renku's domain.
func (s *Server) handler(o Options, c clock) (http.Handler, error) {
	roles := []string{adminRole}
	if o.Faults["not-admin"] {
		roles = []string{}
	}
	realm, err := newKeycloak(s.domain, roles, c.now)
	if err != nil {
		return nil, err
	}
	s.realm = realm
	registry := newRegistry(o.Faults)
	s.services = &services{
		local: &connection{config: o.Local, namespace: o.Namespace},
		rows:  registry.rows, clock: c,
	}
	mux := http.NewServeMux()
	realm.register(mux)
	registerAPI(mux, routes(registry, &pools{registry: registry, reach: s.services.reach, who: realm.caller}), realm.caller, s.services.refresh)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if r.URL.Path != "/" {
			status = http.StatusNotFound
		}
		page(w, status, "<p>The Helm release "+html.EscapeString(o.Release)+" would answer here.</p>")
	})
	return misbehave(mux, o.Faults, c), nil
}

func (s *Server) certificate() (tls.Certificate, error) {
	pair, err := s.authority.Server("localhost", "127.0.0.1")
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.Cert, pair.Key)
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		l.Close()
	}
}

// run serves until ctx ends.
func (s *Server) run(ctx context.Context) {
	defer close(s.ended)
	running := sync.WaitGroup{}
	for i, server := range s.servers {
		running.Go(func() { _ = server.ServeTLS(s.listeners[i], "", "") })
	}
	running.Go(func() { s.services.watch(ctx) })
	<-ctx.Done()
	s.closeListeners() // a server that had not begun to serve does not close its own
	for _, server := range s.servers {
		server.Close()
	}
	running.Wait()
}

// Close ends the stand-in and waits until it has ended.
func (s *Server) Close() {
	s.stop()
	<-s.ended
}

// Domain is host and port of Renku: what global.renku.domain says.
func (s *Server) Domain() string { return s.domain }

// CA is the PEM of the authority that signed all its certificates.
func (s *Server) CA() []byte { return bytes.Clone(s.authority.Cert) }

// SessionHost is where the sessions' ingress listens, https.
func (s *Server) SessionHost() (host string, port int) { return "localhost", s.sessions }

// Log is what a container of one of the four deployments' pods on the local
// cluster has logged; false where no such container has started.
func (s *Server) Log(namespace, pod, container string) (string, bool) {
	return s.services.log(context.Background(), namespace, pod, container)
}
