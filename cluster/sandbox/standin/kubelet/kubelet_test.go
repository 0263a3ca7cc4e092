package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"carrick/cluster/sandbox/pki"
)

const apiServer = "the-api-server"

// start starts a server. The returned function sends a request with a client certificate that signer issues for name.
// If name is "", it sends no certificate.
func start(t *testing.T) (*Server, func(
	name string, signer *pki.Authority, path string,
) (int, string, error), *pki.Authority,
) {
	t.Helper()
	authority, err := pki.NewAuthority("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	config, err := authority.Mutual(apiServer, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ask := func(name string, signer *pki.Authority, path string) (int, string, error) {
		client := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
		client.RootCAs.AppendCertsFromPEM(authority.Cert)
		if name != "" {
			pair, err1 := signer.Client(name)
			certificate, err2 := tls.X509KeyPair(pair.Cert, pair.Key)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			client.Certificates = []tls.Certificate{certificate}
		}
		transport := &http.Transport{TLSClientConfig: client}
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("https://127.0.0.1:%d%s", s.Port(), path))
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), err
	}
	return s, ask, authority
}

func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	_, ask, authority := start(t)
	other, err := pki.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		name   string
		signer *pki.Authority
	}{
		"no certificate":        {},
		"somebody else":         {"admin", authority},
		"of another authority":  {apiServer, other},
		"a name that begins so": {apiServer + "-2", authority},
	} {
		if code, body, err := ask(c.name, c.signer, "/containerLogs/a/b/c"); err == nil {
			t.Errorf("%s: was answered %d %q", name, code, body)
		}
	}
	if code, body, err := ask(apiServer, authority, "/containerLogs/a/b/c"); err != nil || code != http.StatusOK ||
		body != Nothing {
		t.Errorf("the API server: %d %q %v", code, body, err)
	}
}

func TestSourcesSpeakForTheirContainers(t *testing.T) {
	s, ask, authority := start(t)
	remove := s.Add(func(namespace, pod, container string) (string, bool) {
		return "one\ntwo\nthree\n", namespace == "a" && pod == "b" && container == "c"
	})
	defer s.Add(func(string, string, string) (string, bool) { return "", false })()
	for path, want := range map[string]string{
		"/containerLogs/a/b/c":                          "one\ntwo\nthree\n",
		"/containerLogs/a/b/c?tailLines=2":              "two\nthree\n",
		"/containerLogs/a/b/c?tailLines=0":              "",
		"/containerLogs/a/b/c?tailLines=9":              "one\ntwo\nthree\n",
		"/containerLogs/a/b/c?tailLines=1&limitBytes=3": "thr",
		"/containerLogs/a/b/d":                          Nothing,
		"/containerLogs/a/b/d?tailLines=5":              Nothing,
	} {
		if code, body, err := ask(apiServer, authority, path); err != nil || code != http.StatusOK || body != want {
			t.Errorf("%s: %d %q %v", path, code, body, err)
		}
	}
	for path, want := range map[string]int{
		"/containerLogs/a/b/c?tailLines=-1": http.StatusBadRequest,
		"/containerLogs/a/b/c?tailLines=x":  http.StatusBadRequest,
		"/containerLogs/a/b/c?limitBytes=0": http.StatusBadRequest,
		"/containerLogs/a/b":                http.StatusNotFound,
		"/exec/a/b/c":                       http.StatusNotFound,
	} {
		if code, _, err := ask(apiServer, authority, path); err != nil || code != want {
			t.Errorf("%s: %d %v", path, code, err)
		}
	}
	remove()
	if _, body, err := ask(apiServer, authority, "/containerLogs/a/b/c"); err != nil || body != Nothing {
		t.Errorf("a source that was removed: %q %v", body, err)
	}
}
