package standin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"carrick/cluster/sandbox/pki"
)

func TestTheRegistryWantsALogin(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.Cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	for _, tc := range []struct {
		password string
		refuses  bool
		want     int
	}{
		{RegistryPassword, false, http.StatusOK},
		{"wrong", false, http.StatusUnauthorized},
		{RegistryPassword, true, http.StatusUnauthorized},
	} {
		r, err := StartRegistry(t.Context(), authority)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if tc.refuses {
			r.Refuse()
		}
		first, err := client.Get("https://" + r.Host + "/v2/")
		if err != nil {
			t.Fatal(err)
		}
		first.Body.Close()
		if first.StatusCode != http.StatusUnauthorized ||
			!strings.HasPrefix(first.Header.Get("WWW-Authenticate"), `Bearer realm="https://`+r.Host) {
			t.Errorf("nobody has logged in: %s, %v", first.Status, first.Header)
		}
		ask, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.Host+"/token", nil)
		ask.SetBasicAuth(RegistryUser, tc.password)
		got, err := client.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != tc.want {
			t.Errorf("%s (refuses: %v): %s", tc.password, tc.refuses, got.Status)
		}
	}
}

func TestPrometheusCountsContainers(t *testing.T) {
	for _, tc := range []struct {
		query string
		count map[string]int
		err   error
		want  string
	}{
		{"count(kube_pod_container_info)", map[string]int{"a": 3, "b": 4}, nil, `"7"`},
		{"count+by+(namespace)+(kube_pod_container_info)", map[string]int{"a": 3}, nil, `{"metric":{"namespace":"a"},`},
		{"count(kube_pod_container_info)", nil, nil, `"result":[]`},
		{"up", map[string]int{"a": 7}, nil, `"result":[]`},
		{"count(kube_pod_container_info)", nil, errors.New("no cluster"), `"status":"error"`},
		{"", map[string]int{"a": 7}, nil, "bad_data"},
	} {
		w := httptest.NewRecorder()
		answerQuery(
			w, httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+tc.query, nil),
			func() (map[string]int, error) { return tc.count, tc.err },
		)
		if body, _ := io.ReadAll(w.Result().Body); !strings.Contains(string(body), tc.want) {
			t.Errorf("%s: %s", tc.query, body)
		}
	}
}
