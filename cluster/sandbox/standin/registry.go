// A fake container registry that requires a login. It implements the token flow of the distribution project: GET /v2/
// returns a challenge, and a user name with a password gets a token. It has no images.

package standin

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"carrick/cluster/sandbox/pki"
)

// Credentials of the registry's robot account.
const (
	RegistryUser     = "robot$ondemand"
	RegistryPassword = "stand-in-of-a-robot"
	registryToken    = "stand-in-token"
)

// Registry is a running fake registry.
type Registry struct {
	Host    string // host:port
	server  *http.Server
	refuses atomic.Bool
}

// StartRegistry listens on loopback until ctx is done or Close is called. authority signs its certificate.
func StartRegistry(ctx context.Context, authority *pki.Authority) (*Registry, error) {
	pair, err := authority.Server("localhost", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Registry{Host: listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/", r.base)
	mux.HandleFunc("GET /token", r.token)
	r.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	context.AfterFunc(ctx, r.Close)
	go func() { _ = r.server.ServeTLS(listener, "", "") }()
	return r, nil
}

// Close stops the registry.
func (r *Registry) Close() { _ = r.server.Close() }

func (r *Registry) base(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	if q.Header.Get("Authorization") == "Bearer "+registryToken {
		write(w, http.StatusOK, map[string]any{})
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+r.Host+`/token",service="stand-in"`)
	write(w, http.StatusUnauthorized, wrong("UNAUTHORIZED", "authentication required"))
}

// Refuse makes the registry reject all passwords.
func (r *Registry) Refuse() { r.refuses.Store(true) }

func (r *Registry) token(w http.ResponseWriter, q *http.Request) {
	user, password, ok := q.BasicAuth()
	if !ok || r.refuses.Load() || user != RegistryUser || password != RegistryPassword {
		write(w, http.StatusUnauthorized, wrong("UNAUTHORIZED", "incorrect username or password"))
		return
	}
	write(w, http.StatusOK, map[string]any{"token": registryToken, "access_token": registryToken, "expires_in": 300})
}

func wrong(code, message string) map[string]any {
	return map[string]any{"errors": []any{map[string]any{"code": code, "message": message}}}
}
