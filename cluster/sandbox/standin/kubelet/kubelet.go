// Package kubelet fakes how a kubelet serves logs to the API server: GET /containerLogs/NAMESPACE/POD/CONTAINER. kwok
// fakes the rest of the kubelet, and runs no containers. A container's log is the output of the fake that replaces its
// program. Without a fake, the log has one line: nothing runs in this pod.
//
// Source: kubernetes/kubernetes v1.37.2.
//
//   - The path: pkg/registry/core/pod/strategy.go (LogLocation), pkg/kubelet/server/server.go (getContainerLogs).
//   - tailLines, then limitBytes of the remaining lines: k8s.io/cri-client v0.37.2, pkg/logs/logs.go.
//
// The server listens on loopback, so no other machine can connect. The API server connects to the nodes' InternalDNS
// address, which is loopback.
//
// Known differences: only the API server's client certificate is accepted, in the TLS handshake. A kubelet accepts any
// certificate that its client CA signed, and tokens, and asks the API server what their users are allowed to do
// (pkg/kubelet/server/auth.go). A pod or container that does not exist has a log, instead of a 404. A negative
// tailLines returns 400 instead of 422, but the API server rejects it earlier. follow ends immediately. previous,
// sinceSeconds, sinceTime, timestamps and stream are ignored.
package kubelet

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Nothing is the log of a container that no fake runs.
const Nothing = "stand-in: nothing runs in this pod\n"

// Source returns the log of a container. It returns false if it has no log for that container.
type Source func(namespace, pod, container string) (string, bool)

// Server serves the logs of all nodes in one cluster.
type Server struct {
	listener net.Listener
	server   *http.Server

	mu      sync.Mutex
	next    int
	sources map[int]Source
}

// Start listens on a free loopback port until Close is called. config contains the serving certificate and the client
// CA.
func Start(config *tls.Config) (*Server, error) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: listener, sources: map[int]Source{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.answer)
	s.server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// Port returns the server's port.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Close stops the server.
func (s *Server) Close() { _ = s.server.Close() }

// Add registers a source until remove is called.
func (s *Server) Add(source Source) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	id := s.next
	s.sources[id] = source
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sources, id)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	said := s.find(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
	query := r.URL.Query()
	if given := query.Get("tailLines"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 {
			http.Error(w, "tailLines must be a number of lines, 0 or more", http.StatusBadRequest)
			return
		}
		said = tail(said, n)
	}
	if given := query.Get("limitBytes"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			http.Error(w, "limitBytes must be a number of bytes, 1 or more", http.StatusBadRequest)
			return
		}
		said = said[:min(n, len(said))]
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, said)
}

func (s *Server) find(namespace, pod, container string) string {
	s.mu.Lock()
	var sources []Source
	for _, source := range s.sources {
		sources = append(sources, source)
	}
	s.mu.Unlock()
	for _, source := range sources {
		if said, ok := source(namespace, pod, container); ok {
			return said
		}
	}
	return Nothing
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
