package standin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"carrick/cluster/sandbox/pki"
)

// startMetrics starts a fake metrics-server. It returns its base URL, and a client that trusts it. If signer is not
// nil, the client presents a certificate of signer.
func startMetrics(t *testing.T, frontProxy, signer *pki.Authority) (string, *http.Client) {
	t.Helper()
	m, err := StartMetrics(frontProxy.Cert)
	if errors.Is(err, ErrNoAddress) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "metrics-server.kube-system.svc"}
	config.RootCAs.AppendCertsFromPEM(m.authority)
	if signer != nil {
		pair, err := signer.Client("front-proxy-client")
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return fmt.Sprintf("https://%s:%d", m.address, m.port), &http.Client{Transport: transport}
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestMetricsRefusesWhoIsNotTheAPIServer(t *testing.T) {
	frontProxy := authority(t)
	for name, signer := range map[string]*pki.Authority{"no certificate": nil, "another authority": authority(t)} {
		t.Run(name, func(t *testing.T) {
			base, client := startMetrics(t, frontProxy, signer)
			if answer, err := client.Get(base + metricsPath); err == nil {
				answer.Body.Close()
				t.Errorf("answered %s", answer.Status)
			}
		})
	}
}

func TestMetricsAnswers(t *testing.T) {
	frontProxy := authority(t)
	base, client := startMetrics(t, frontProxy, frontProxy)
	for path, want := range map[string]int{
		"/apis":                                   http.StatusOK,
		"/apis/metrics.k8s.io":                    http.StatusOK,
		metricsPath:                               http.StatusOK,
		metricsPath + "/nodes":                    http.StatusOK,
		metricsPath + "/pods":                     http.StatusOK,
		metricsPath + "/namespaces/x/pods":        http.StatusOK,
		metricsPath + "/namespaces/x/pods/y":      http.StatusNotFound,
		metricsPath + "/nodes/worker":             http.StatusNotFound,
		"/apis/custom.metrics.k8s.io/v1beta1/all": http.StatusNotFound,
	} {
		answer, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, answer.Status, want)
		}
	}
	answer, err := client.Post(base+metricsPath+"/nodes", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", answer.Status)
	}
}
