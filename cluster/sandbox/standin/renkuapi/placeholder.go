// Package renkuapi will play Renku's HTTP API. This is a placeholder with its
// signature, so that the rest of the sandbox can be built: it answers what
// registers one cluster, and keeps the names in memory.
package renkuapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
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
	Remote    *rest.Config    // read for what an ingress controller sees: Ingress objects
	Namespace string          // of Renku on the local cluster: "renku"
	Release   string          // Helm release: "renku"
	Faults    map[string]bool // behaviours that are on; names in Faults()
}

// Server is a running placeholder.
type Server struct {
	listener  net.Listener
	server    *http.Server
	authority *pki.Authority

	mu    sync.Mutex
	names map[string]bool
}

// Start listens on loopback. The placeholder ends with ctx or Close.
func Start(ctx context.Context, _ Options) (*Server, error) {
	authority, err := pki.NewAuthority("renku")
	if err != nil {
		return nil, err
	}
	pair, err := authority.Server("localhost", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	s := &Server{authority: authority, names: map[string]bool{}}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if s.listener, err = tls.Listen("tcp", "127.0.0.1:0", config); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stand-in/token", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"placeholder"}`)
	})
	mux.HandleFunc("POST /api/data/clusters", s.register)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	context.AfterFunc(ctx, s.Close)
	go func() { _ = s.server.Serve(s.listener) }()
	return s, nil
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var body struct{ Name string }
	s.mu.Lock()
	defer s.mu.Unlock()
	switch err := json.NewDecoder(r.Body).Decode(&body); {
	case r.Header.Get("Authorization") != "Bearer placeholder":
		http.Error(w, "{}", http.StatusUnauthorized)
	case err != nil:
		http.Error(w, "{}", http.StatusUnprocessableEntity)
	case s.names[body.Name]:
		http.Error(w, "{}", http.StatusConflict)
	default:
		s.names[body.Name] = true
		w.WriteHeader(http.StatusCreated)
	}
}

// Faults returns the behaviours that can be switched on: name to one sentence.
func Faults() map[string]string {
	return map[string]string{"not-admin": "The tokens of Keycloak lack the role renku-admin."}
}

// Close ends the placeholder.
func (s *Server) Close() { _ = s.server.Close() }

// Domain is host and port of Renku: what global.renku.domain says.
func (s *Server) Domain() string { return s.listener.Addr().String() }

// CA is the PEM of the authority that signed its certificates.
func (s *Server) CA() []byte { return s.authority.Cert }

// SessionHost is where the sessions' ingress listens, https.
func (s *Server) SessionHost() (host string, port int) {
	return "localhost", s.listener.Addr().(*net.TCPAddr).Port
}

// Log is what a container of one of the four deployments has logged.
func (s *Server) Log(namespace, _, container string) (string, bool) {
	services := map[string]bool{"data-service": true, "k8s-watcher": true, "data-tasks": true, "secrets-storage": true}
	return "stand-in: a placeholder logs nothing\n", namespace == "renku" && services[container]
}
