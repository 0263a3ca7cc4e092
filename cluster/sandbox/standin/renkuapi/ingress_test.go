package renkuapi

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func ingressFor(name, host, path, kind string) object {
	return object{
		"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
		"metadata": object{"name": name, "namespace": "renku-user-sessions"},
		"spec": object{
			"rules": []any{object{"host": host, "http": object{"paths": []any{object{"path": path, "pathType": kind}}}}},
		},
	}
}

const ingressesAt = "/apis/networking.k8s.io/v1/namespaces/renku-user-sessions/ingresses"

func TestIngressAnswersOnlyForWhatItsObjectsSay(t *testing.T) {
	s := newSite(t)
	_, port := s.SessionHost()
	visit := func(host, path string) (int, string) {
		return s.page(http.MethodGet, fmt.Sprintf("https://%s:%d%s", host, port, path), nil)
	}
	if status, body := visit("localhost", "/sessions/a"); status != 404 || !strings.Contains(body, "default backend") {
		t.Errorf("before any Ingress: %d %s", status, body)
	}
	s.remote.put(ingressesAt, ingressFor("a", "localhost", "/sessions/a", "Prefix"))
	s.remote.put(ingressesAt, ingressFor("b", "localhost", "/sessions/b", "Exact"))
	s.remote.put(ingressesAt, ingressFor("c", "sessions.example.org", "/sessions/c", "Prefix"))
	s.remote.put(ingressesAt, ingressFor("d", "", "/any/", "Prefix"))
	for _, row := range []struct {
		host, path string
		status     int
	}{
		{"localhost", "/sessions/a", 200},
		{"localhost", "/sessions/a/lab?x=y", 200},
		{"localhost", "/sessions/ab", 404},
		{"localhost", "/", 404},
		{"localhost", "/sessions/b", 200},
		{"localhost", "/sessions/b/lab", 404},
		{"localhost", "/sessions/c", 404},
		{"127.0.0.1", "/sessions/a", 404},
		{"127.0.0.1", "/any/x", 200},
	} {
		status, body := visit(row.host, row.path)
		if status != row.status || !strings.Contains(body, "stand-in") {
			t.Errorf("%s%s: %d, want %d", row.host, row.path, status, row.status)
		}
	}
	s.remote.remove(ingressesAt, "a")
	if status, _ := visit("localhost", "/sessions/a"); status != 404 {
		t.Errorf("after its end: %d", status)
	}
	s.remote.deny("list ingresses")
	if status, _ := visit("localhost", "/any/x"); status != 503 {
		t.Errorf("when it cannot look: %d", status)
	}
}

func TestCertificatesNameTheirHosts(t *testing.T) {
	s := newSite(t)
	certificate, err := s.certificate()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.CA()) {
		t.Fatal("the CA is no PEM")
	}
	for name, good := range map[string]bool{"localhost": true, "127.0.0.1": true, "example.org": false} {
		if _, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
