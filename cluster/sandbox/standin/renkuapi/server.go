// Package renkuapi fakes Renku. It contains the HTTP API, the Keycloak realm, the ingress of sessions, and the four
// services that use the kubeconfigs of remote clusters. All state is in memory, except the ResourceQuotas and
// PriorityClasses that Renku creates in clusters.
//
// Sources: SwissDataScienceCenter/renku-data-services @ e81895b4, SwissDataScienceCenter/renku @ 74c766fe7 (7 commits
// after 2.19.3), kr8s-org/kr8s v0.20.7 (b6f4404). In this package, a source path without a repository is in
// renku-data-services, below components/renku_data_services. Renku 2.19.3 runs a newer data service, 0.80.1, whose code
// was not available.
//
//   - Clusters: crc/blueprints.py, crc/core.py, crc/db.py ClusterRepository, crc/orm.py ClusterORM (clusters.go,
//     clusters_rules.go)
//   - Resource pools: crc/core.py, crc/db.py ResourcePoolRepository, crc/models.py, crc/orm.py (pools*.go)
//   - Objects in clusters: crc/db.py QuotaRepository, k8s/clients.py; kr8s: kr8s/_api.py, kr8s/_objects.py
//     (pools_kube.go)
//   - Users and members of pools: crc/db.py MemberRepository (members.go)
//   - Schemas and errors: crc/apispec.py, base_api/error_handler.py, errors/errors.py (schema.go, errors.go, spec.go)
//   - Callers: base_api/auth.py, authn/keycloak.py, users/blueprints.py (routes.go, token.go)
//   - Sign-in: renku: helm-chart/renku/templates/setup-job-keycloak-realms.yaml (keycloak.go)
//   - Kubeconfigs: k8s/config.py, k8s/clients.py; kr8s: kr8s/_auth.py, kr8s/_config.py (kubeconfig.go, services.go,
//     logs.go)
//
// Known differences:
//   - All services load their kubeconfigs when they start. In upstream only k8s-watcher does so. The others load them
//     when they first use a cluster. ALWAYS_READ_CLUSTERS is not implemented.
//   - Users and members of a pool are two lists. In upstream both are relations in Authzed. Therefore a user who was
//     added under /users also appears under /members, and GET /users returns no users for a public pool.
//     no_default_access is stored as sent.
//   - Messages in 422 responses are shorter than upstream's, and errors from PostgreSQL lack SQLAlchemy's text. No
//     error has a detail or a trace_id.
//   - Classes are returned in the order in which they were sent, not sorted by their sizes.
//   - A hibernation warning period is also compared with the stored threshold, and a PATCH with an empty list of
//     tolerations or affinities removes them. A second default pool is not rejected. A remote (FirecREST, Run:ai) is
//     not validated.
//   - A kubeconfig with an auth-provider is rejected. kr8s uses its OIDC id-token. A context with an empty cluster is
//     rejected. kr8s uses the pod's ServiceAccount. 401 and 403 are not retried.
//   - The paths of single users, members and classes, and all other APIs of Renku, do not exist.
//   - The fault old-renku is a guess: no release without the TLS flag was read.
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

// Options configures Start.
type Options struct {
	Local     *rest.Config    // admin's credentials for the local cluster
	Remote    *rest.Config    // for reading Ingresses; nil: no remote cluster
	Namespace string          // Renku's namespace on the local cluster
	Release   string          // name of the Helm release; only displayed
	Faults    map[string]bool // enabled faults by name, see Faults()
}

// Server is a running fake of Renku.
type Server struct {
	authority *pki.Authority
	domain    string
	sessions  int // port of the sessions' ingress
	realm     *keycloak
	services  *services
	listeners []net.Listener
	servers   []*http.Server // one per listener
	stop      context.CancelFunc
	ended     chan struct{}
}

// clock provides the current time and timers.
type clock struct {
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
}

// Start listens on loopback until ctx is done or Close is called.
func Start(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, o, clock{now: time.Now, after: time.After})
}

// start is like Start, but uses the clock c. Tests pass their own clock.
func start(ctx context.Context, o Options, c clock) (*Server, error) {
	for name := range o.Faults {
		if Faults()[name] == "" {
			return nil, fmt.Errorf("the Renku stand-in has no behaviour %q", name)
		}
	}
	if o.Local == nil || o.Namespace == "" {
		return nil, errors.New("the Renku stand-in requires the local cluster and Renku's namespace there")
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

// handler returns the handler for Renku's domain.
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
	registerAPI(
		mux, routes(registry, &pools{registry: registry, reach: s.services.reach, who: realm.caller}), realm.caller,
		s.services.refresh,
	)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if r.URL.Path != "/" {
			status = http.StatusNotFound
		}
		page(w, status, "<p>The Helm release "+html.EscapeString(o.Release)+" would respond here.</p>")
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

func (s *Server) run(ctx context.Context) {
	defer close(s.ended)
	running := sync.WaitGroup{}
	for i, server := range s.servers {
		running.Go(func() { _ = server.ServeTLS(s.listeners[i], "", "") })
	}
	running.Go(func() { s.services.watch(ctx) })
	<-ctx.Done()
	s.closeListeners() // http.Server.Close closes only listeners that the server has served
	for _, server := range s.servers {
		server.Close()
	}
	running.Wait()
}

// Close stops the server and waits until it has stopped.
func (s *Server) Close() {
	s.stop()
	<-s.ended
}

// Domain returns Renku's host:port, as in global.renku.domain.
func (s *Server) Domain() string { return s.domain }

// CA returns the CA certificate (PEM) that signed all of the server's certificates.
func (s *Server) CA() []byte { return bytes.Clone(s.authority.Cert) }

// SessionHost returns the HTTPS address of the sessions' ingress.
func (s *Server) SessionHost() (host string, port int) { return "localhost", s.sessions }

// Log returns the log of a container in Renku's four Deployments on the local cluster. It returns false if the
// container has not started.
func (s *Server) Log(namespace, pod, container string) (string, bool) {
	return s.services.log(context.Background(), namespace, pod, container)
}
