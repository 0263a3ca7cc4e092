package cluster_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
)

// lines collects the output of a plugin.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// withPlugin writes an exec plugin, and next to it a kubeconfig whose user is the plugin.
func withPlugin(t *testing.T, host, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a shell script")
	}
	path := config(t, `apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "`+host+`", insecure-skip-tls-verify: true}}]
users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: IfAvailable}}}]
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "plugin"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAPluginGivesCredentialsAndWritesWhereItShould(t *testing.T) {
	api := newFakeAPI(t)
	api.put(configMaps, "a", "x", data("1"))
	authorized := make(chan string, 10)
	api.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		authorized <- r.Header.Get("Authorization")
		return false
	})
	path := withPlugin(t, "https://api.test:6443", `echo "please look at your phone" >&2
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"from-plugin"}}'
`)
	var out lines
	c := openThrough(t, api, path, &out)
	if p := configMap(t, c, "x").look(); p.err != nil {
		t.Fatal(p.err)
	}
	if got := <-authorized; got != "Bearer from-plugin" {
		t.Errorf("authorized by %q", got)
	}
	c.Close()
	if got := out.String(); got != "please look at your phone\n" {
		t.Errorf("the plugin's words are %q", got)
	}
}

// openThrough opens a kubeconfig's context through the fake server's listener, as through a proxy.
func openThrough(t *testing.T, api *fakeAPI, path string, out *lines) *cluster.Cluster {
	t.Helper()
	cfg := &rest.Config{
		Host: "https://api.test:6443", Dial: api.line.dial,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: filepath.Join(filepath.Dir(path), "plugin"),
			InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
		},
	}
	c, err := cluster.NewAccess(cfg, kubeconfig.Access{Stderr: out}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAPluginThatFailsSaysSo(t *testing.T) {
	path := withPlugin(t, "https://127.0.0.1:1", "echo no session >&2\nexit 3\n")
	var out lines
	c, err := cluster.Open(kubeconfig.Access{Kubeconfig: path, Stderr: &out}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := configMap(t, c, "x").look().stale()
	c.Close()
	if got := failure.Explain(p.err); !strings.Contains(got, "exit code 3") {
		t.Errorf("%v is explained as %q", p.err, got)
	}
	if !strings.Contains(out.String(), "no session") {
		t.Errorf("the plugin's words are %q", out.String())
	}
	if err := os.Remove(filepath.Join(filepath.Dir(path), "plugin")); err != nil {
		t.Fatal(err)
	}
	c, err = cluster.Open(kubeconfig.Access{Kubeconfig: path}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p = configMap(t, c, "x").look().stale()
	if got := failure.Explain(p.err); !strings.Contains(got, "credential plugin failed") {
		t.Errorf("%v is explained as %q", p.err, got)
	}
}

func TestAPluginThatHangsHoldsNobodyUp(t *testing.T) {
	// it ends when the test's folder is removed
	path := withPlugin(t, "https://127.0.0.1:1", `while [ -e "$0" ]; do sleep 0.05; done`)
	c, err := cluster.Open(
		kubeconfig.Access{Kubeconfig: path, Timeout: 200 * time.Millisecond},
		cluster.Options{StaleAfter: 100 * time.Millisecond, Silence: 100 * time.Millisecond},
	)
	if err != nil {
		t.Fatal(err)
	}
	p := configMap(t, c, "x").look().stale()
	if p.took > time.Minute {
		t.Errorf("it took %v", p.took)
	}
	closed := make(chan struct{})
	go func() {
		c.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("Close waits for the plugin")
	}
}

func TestAClusterSeenWithAForeignKubeconfig(t *testing.T) {
	api := newFakeAPI(t)
	api.put(configMaps, "a", "x", data("1"))
	c := api.open(cluster.Options{})
	k := kubeconfig.Config{
		Name: "peer", Server: "https://127.0.0.1:1", CA: api.config().CAData, Namespace: "tenant", Token: masked.New("t"),
	}
	raw := []byte(k.Bytes().Reveal())
	peer, err := c.As(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.As(raw)
	if err != nil || again != peer {
		t.Errorf("the same bytes give another cluster: %v", err)
	}
	if peer.Context() != "" || peer.Namespace() != "tenant" || peer.Server() != "https://127.0.0.1:1" {
		t.Errorf("got %q %q %q", peer.Context(), peer.Namespace(), peer.Server())
	}
	configMap(t, peer, "x").look().stale()
	if _, err := c.As([]byte("users: [{name: x, user: {exec: {command: evil}}}]")); err == nil {
		t.Error("a kubeconfig with an exec plugin is accepted")
	}
	c.Close()
	if _, err := peer.Get(t.Context(), configMaps, "a", "x"); !errors.Is(err, failure.ErrClosed) ||
		apierrors.IsNotFound(err) {
		t.Errorf("after the parent is closed: %v", err)
	}
	if _, err := c.As(raw); !errors.Is(err, failure.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
