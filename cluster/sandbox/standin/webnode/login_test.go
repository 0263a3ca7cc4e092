package webnode

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestTheHookAppliesWhatFollowsARefusedObject(t *testing.T) {
	var applied []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "networkpolicies") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no policies","code":403}`)
			return
		}
		applied = append(applied, path.Base(r.URL.Path))
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	n, err := Start(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],
"contexts":[{"name":"a","context":{"cluster":"a"}}]}`, server.URL)
	if err := n.Write(rootsOwn, config, 0o600); err != nil {
		t.Fatal(err)
	}
	h := hook{path: "/opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh", env: "NAMESPACE_PREFIX=user-\n", kubeconfig: rootsOwn}
	err = n.login(t.Context(), h, "alice")
	if err == nil || !strings.Contains(err.Error(), "no policies") {
		t.Errorf("the hook did not fail: %v", err)
	}
	if want := []string{"user-alice", "alice-ood-initializer", "alice-ood-user"}; !slices.Equal(applied, want) {
		t.Errorf("applied %v, not %v", applied, want)
	}
	if err := n.pullSecret(t.Context(), kubectl{}, map[string]string{"IMAGE_PULL_SECRET": "pull", "REGISTRY_DOCKER_CONFIG_JSON": "/etc/none.json"}, "user-alice"); err == nil ||
		!strings.Contains(err.Error(), "error reading /etc/none.json") {
		t.Errorf("a registry's file that does not exist: %v", err)
	}
}
