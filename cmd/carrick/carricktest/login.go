package carricktest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Login is a user's access to an API server.
type Login struct {
	Server, User string
	CA           *x509.Certificate // CA of the server certificate, or nil
}

// Write writes a kubeconfig for the API server, and a link.yaml whose two sides use that kubeconfig.
func (l Login) Write(t *testing.T, dir string) {
	t.Helper()
	cluster := fmt.Sprintf("server: %q", l.Server)
	if l.CA != nil {
		file := filepath.Join(dir, "ca.crt")
		WritePEM(t, file, "CERTIFICATE", l.CA.Raw)
		cluster += fmt.Sprintf(", certificate-authority: %q", file)
	}
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}]
contexts: [{name: left, context: {cluster: c, user: u}}, {name: right, context: {cluster: c, user: u}}]
`, cluster, l.User)
	const link = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: a}
guide: renku
local: {context: left, kubeconfig: config}
remote: {context: right, kubeconfig: config}
`
	for name, text := range map[string]string{"config": config, "link.yaml": link} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// WritePEM writes a file with one PEM block.
func WritePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Served starts a TLS server that does not log failed handshakes.
func Served(t *testing.T, c *tls.Config, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.TLS = c
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// NoServer is a URL where no API server listens.
const NoServer = "https://127.0.0.1:1"
