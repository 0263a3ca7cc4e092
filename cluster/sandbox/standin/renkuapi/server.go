// Package renkuapi plays Renku: its HTTP API, its Keycloak realm, the ingress
// of its sessions, and what its four services do with the kubeconfigs of
// remote clusters. All state is in memory. Nothing here is Renku's code.
package renkuapi

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

// Options say what the stand-in plays between.
type Options struct {
	Local     *rest.Config    // the local cluster, as admin
	Remote    *rest.Config    // read for what an ingress controller sees: Ingress objects
	Namespace string          // of Renku on the local cluster: "renku"
	Release   string          // Helm release: "renku"
	Faults    map[string]bool // behaviours that are on; names in Faults()
}

// Server is a running stand-in.
type Server struct{}

// Start listens on loopback. The stand-in ends with ctx or Close.
func Start(context.Context, Options) (*Server, error) { return nil, errors.New("not written yet") }

// Faults returns the behaviours that can be switched on: name to one sentence.
func Faults() map[string]string { return nil }

// Close ends the stand-in.
func (s *Server) Close() {}

// Domain is host and port of Renku: what global.renku.domain says.
func (s *Server) Domain() string { return "" }

// CA is the PEM of the authority that signed all its certificates.
func (s *Server) CA() []byte { return nil }

// SessionHost is where the sessions' ingress listens, https.
func (s *Server) SessionHost() (host string, port int) { return "", 0 }

// Log is what a container of one of the four deployments has logged; false
// where no such container runs.
func (s *Server) Log(namespace, pod, container string) (string, bool) { return "", false }
