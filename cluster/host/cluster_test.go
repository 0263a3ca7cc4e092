package host_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/host"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/tracked"
)

// webNode is a host with a kubeconfig, and a fake API server that accepts one token.
type webNode struct {
	*host.Host
	t   *testing.T
	ca  string // PEM
	url string
}

func newWebNode(t *testing.T) *webNode {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			status(w, http.StatusUnauthorized, "Unauthorized", "who are you?", nil)
			return
		}
		answer(
			w, http.StatusOK,
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}},
		)
	}))
	t.Cleanup(s.Close)
	h, err := host.NewWith(t.TempDir(), host.Options{Clusters: cluster.Options{Once: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return &webNode{h, t, string(ca), s.URL}
}

func (n *webNode) put(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.Root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		n.t.Fatal(err)
	}
}

// kubeconfig returns a kubeconfig whose cluster and user contain these lines.
func (n *webNode) kubeconfig(ofCluster, ofUser string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters:\n- name: c\n  cluster:\n    server: " + n.url + "\n    " + ofCluster +
		"\nusers:\n- name: u\n  user:\n    " + ofUser + "\n"
}

func TestAKubeconfigOfAHostIsFollowedOnTheHost(t *testing.T) {
	n := newWebNode(t)
	n.put("etc/ood/hooks/cluster-ca.crt", n.ca)
	n.put("etc/ood/hooks/token", "good\n")
	n.put("etc/ood/hooks/bad", "bad")
	inline := "certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(n.ca))
	for _, tc := range []struct{ situation, cluster, user string }{
		{"absolute paths", "certificate-authority: /etc/ood/hooks/cluster-ca.crt", "tokenFile: /etc/ood/hooks/token"},
		{"relative paths", "certificate-authority: cluster-ca.crt", "tokenFile: ../hooks/token"},
		{"all in the file", inline, "token: good"},
		{"the file's token comes first", inline, "token: bad\n    tokenFile: token"},
		{"the data comes first", inline + "\n    certificate-authority: none.crt", "token: good"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			n.put("etc/ood/hooks/kubeconfig", n.kubeconfig(tc.cluster, tc.user))
			c, err := n.Cluster(t.Context(), "/etc/ood/hooks/kubeconfig")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Get(t.Context(), configMaps, "a", "x"); err != nil || c.Server() != n.url {
				t.Errorf("%s: %v", c.Server(), err)
			}
			if again, err := n.Cluster(t.Context(), "/etc/ood/hooks/kubeconfig"); err != nil || again != c {
				t.Errorf("the same content gave another cluster (%v)", err)
			}
		})
	}
}

func TestWhatAKubeconfigOfAHostMayNotHold(t *testing.T) {
	n := newWebNode(t)
	n.put("root/ca.crt", n.ca)
	n.put("root/empty", "\n")
	for _, tc := range []struct{ situation, cluster, user, rule, words string }{
		{"a command", "certificate-authority: ca.crt", "exec: {command: x}", kubeconfig.RuleExec, "runs a command"},
		{
			"an old plugin", "certificate-authority: ca.crt", "auth-provider: {name: oidc}", kubeconfig.RuleAuthProvider,
			"auth-provider",
		},
		{"no verification", "insecure-skip-tls-verify: true", "token: good", kubeconfig.RuleInsecure, "does not verify"},
		{
			"a file that is not there", "certificate-authority: /etc/none.crt", "token: good", kubeconfig.RuleFileReference,
			"certificate-authority is /etc/none.crt: file does not exist",
		},
		{"a folder", "certificate-authority: /root", "token: good", kubeconfig.RuleFileReference, "not a regular file"},
		{"what is no certificate", "certificate-authority: kubeconfig", "token: good", kubeconfig.RuleBadCA, "certificate"},
		{
			"an empty token", "certificate-authority: ca.crt", "tokenFile: empty", kubeconfig.RuleNoCredentials,
			"token is empty",
		},
		{
			"nothing to sign in with", "certificate-authority: ca.crt", "extensions: []", kubeconfig.RuleNoCredentials,
			"neither a token",
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			n.put("root/kubeconfig", n.kubeconfig(tc.cluster, tc.user))
			_, err := n.Cluster(t.Context(), "/root/kubeconfig")
			var wrong kubeconfig.Error
			if !errors.As(err, &wrong) || !wrong.Has(tc.rule) ||
				!strings.Contains(strings.ReplaceAll(err.Error(), "no such file or directory", "file does not exist"), tc.words) {
				t.Errorf("want %s (%s), got %v", tc.rule, tc.words, err)
			}
		})
	}
	if _, err := n.Cluster(t.Context(), "/root/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
	n.put(
		"root/kubeconfig", n.kubeconfig("certificate-authority: ca.crt\n    proxy-url: http://proxy:3128", "token: good"),
	)
	if _, err := n.Cluster(t.Context(), "/root/kubeconfig"); !errors.Is(err, failure.ErrProxy) {
		t.Errorf("a proxy: %v", err)
	}
}

// When a renewal rewrites the token file, the traces of the old token wake, and the new token is used.
func TestANewTokenOfAHostIsAnotherCluster(t *testing.T) {
	n := newWebNode(t)
	n.put("root/ca.crt", n.ca)
	n.put("root/token", "bad")
	n.put("root/kubeconfig", n.kubeconfig("certificate-authority: ca.crt", "tokenFile: token"))
	ctx, trace := tracked.WithTrace(t.Context())
	c, err := n.Cluster(ctx, "/root/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), configMaps, "a", "x"); !apierrors.IsUnauthorized(err) {
		t.Errorf("with the old token: %v", err)
	}
	n.put("root/token", "good")
	wait, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := trace.Wait(wait); err != nil {
		t.Fatal("the trace did not wake")
	}
	if c, err = n.Cluster(t.Context(), "/root/kubeconfig"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), configMaps, "a", "x"); err != nil {
		t.Errorf("with the new token: %v", err)
	}
	n.Close()
	if _, err := n.Cluster(t.Context(), "/root/kubeconfig"); err == nil {
		t.Error("a closed host still leads to a cluster")
	}
	if _, err := c.Get(t.Context(), configMaps, "a", "y"); !errors.Is(err, failure.ErrClosed) {
		t.Errorf("its cluster is still open: %v", err)
	}
}
