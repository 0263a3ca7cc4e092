package cluster_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
)

// crowd is a fake API server that records the user and the connection of each request.
type crowd struct {
	*httptest.Server
	ca []byte

	mu    sync.Mutex
	conns int
	asked []string // protocol and Authorization of each request, in their order
}

func newCrowd(t *testing.T) *crowd {
	s := &crowd{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.Proto+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3","major":"1","minor":"36"}`)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.conns++
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return s
}

func (s *crowd) open(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(
		&rest.Config{Host: s.URL, BearerToken: "admin", TLSClientConfig: rest.TLSClientConfig{CAData: s.ca}},
		cluster.Options{Once: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask requests the version with a kubeconfig for the given address.
func (s *crowd) ask(t *testing.T, c *cluster.Cluster, server, token string) {
	t.Helper()
	k := kubeconfig.Config{Server: server, CA: append(s.ca, '\n'), Namespace: "a", Token: masked.New(token)}
	as, err := c.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := as.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The kubeconfig's first request uses the connection that Ahead opened. That connection never carries the cluster's own
// credentials.
func TestAConnectionAheadIsThatOfTheKubeconfig(t *testing.T) {
	s := newCrowd(t)
	c := s.open(t)
	c.Ahead(s.URL)
	c.Ahead(s.URL)
	s.ask(t, c, s.URL, "one")
	s.ask(t, c, s.URL, "two")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns != 1 {
		t.Errorf("%d connections, want 1", s.conns)
	}
	if want := []string{
		"HTTP/2.0 Bearer one", "HTTP/2.0 Bearer two",
	}; !slices.Equal(slices.Sorted(slices.Values(s.asked)), want) {
		t.Errorf("asked with %q, want each of %q once", s.asked, want)
	}
}

// If the address passed to Ahead is wrong, the kubeconfig still works.
func TestAConnectionAheadToAnotherAddressIsNotUsed(t *testing.T) {
	guessed, s := newCrowd(t), newCrowd(t)
	c := s.open(t)
	c.Ahead(guessed.URL)
	c.Ahead("http://127.0.0.1:1") // never in the clear
	s.ask(t, c, s.URL, "one")
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.asked, []string{"HTTP/2.0 Bearer one"}) {
		t.Errorf("asked with %q, want the kubeconfig's token alone", s.asked)
	}
	guessed.mu.Lock()
	defer guessed.mu.Unlock()
	if len(guessed.asked) > 0 {
		t.Errorf("the guessed address was asked with %q", guessed.asked)
	}
}
