package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/permission"
	"carrick/steps"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An API server that does not answer a review in time has not refused anything, and can answer the next one.
func TestAReviewWithoutAnAnswerIsRepeated(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":{"allowed":false}}`)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- {name: c, cluster: {server: %q}}\n"+
		"users:\n- {name: u, user: {token: t}}\ncontexts:\n- {name: c, context: {cluster: c, user: u}}\n", server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var reviews atomic.Int32
	silentOnce := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") && reviews.Add(1) == 1 {
				return nil, failure.ErrTimeout
			}
			return next.RoundTrip(r)
		})
	}
	c, err := cluster.Open(kubeconfig.Access{Kubeconfig: path, Context: "c"}, cluster.Options{Around: silentOnce})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &Session{guide: &steps.Guide{}, ends: map[steps.Side]Endpoint{steps.Local: {Cluster: c}}}
	lack, err := s.lacking(t.Context(), map[steps.Side][]permission.Rule{steps.Local: {{Verb: "create", Resource: "secrets"}}})
	if err != nil || len(lack[steps.Local].Missing) != 1 || reviews.Load() != 2 {
		t.Errorf("%+v after %d reviews: %v", lack, reviews.Load(), err)
	}
}

// A user who can bind every role, or approve for every signer, can obtain all permissions. So such a permission is
// granted only for the required name.
func TestGrantsAreForOneNameWhereThatCounts(t *testing.T) {
	got := steps.Grant("g", []permission.Rule{
		{Verb: "get", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "small"},
		{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers", Name: "kubernetes.io/kube-apiserver-client"},
		{Verb: "delete", Resource: "namespaces", Name: "one"},
		{Verb: "get", Resource: "namespaces"},
	})
	for _, want := range []string{
		"  resourceNames:\n  - small\n  resources:\n  - clusterroles\n  verbs:\n  - bind\n",
		"  resourceNames:\n  - kubernetes.io/kube-apiserver-client\n  resources:\n  - signers\n  verbs:\n  - approve\n",
		"  resources:\n  - namespaces\n  verbs:\n  - delete\n  - get\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks\n%s\nin\n%s", want, got)
		}
	}
	if n := strings.Count(got, "resourceNames"); n != 2 {
		t.Errorf("%d rules are for names:\n%s", n, got)
	}
}
