package webnode

import (
	"fmt"
	"io"
	"io/fs"
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
			_, _ = io.WriteString(
				w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no policies","code":403}`,
			)
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
	config := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],
"contexts":[{"name":"a","context":{"cluster":"a"}}]}`, server.URL,
	)
	if err := n.Write(rootsOwn, config, 0o600); err != nil {
		t.Fatal(err)
	}
	h := hook{
		path: "/opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh", env: "NAMESPACE_PREFIX=user-\n", kubeconfig: rootsOwn,
	}
	err = n.login(t.Context(), h, "alice")
	if err == nil || !strings.Contains(err.Error(), "no policies") {
		t.Errorf("the hook did not fail: %v", err)
	}
	if want := []string{"user-alice", "alice-ood-initializer", "alice-ood-user"}; !slices.Equal(applied, want) {
		t.Errorf("applied %v, not %v", applied, want)
	}
	if err := n.pullSecret(
		t.Context(), kubectl{},
		map[string]string{"IMAGE_PULL_SECRET": "pull", "REGISTRY_DOCKER_CONFIG_JSON": "/etc/none.json"}, "user-alice",
	); err == nil ||
		!strings.Contains(err.Error(), "error reading /etc/none.json") {
		t.Errorf("a registry's file that does not exist: %v", err)
	}
}

// TestWhatIsLoggedOfAHook verifies the log messages for a hook that fails and for a hook that cannot be executed.
// Upstream logs nothing else.
func TestWhatIsLoggedOfAHook(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	config := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],
"contexts":[{"name":"a","context":{"cluster":"a"}}]}`, server.URL,
	)
	const bootstrap = "/opt/ood/hooks/k8s-bootstrap/k8s-bootstrap-ondemand.sh"
	const failed = "/etc/hook exited with 1 for user bob. stderr was '/etc/ood/config/hook.env: line 1: A: " +
		"command not found'"
	for _, tc := range []struct {
		situation, script, env, want string
		mode                         fs.FileMode
	}{
		{situation: "it succeeds", script: bootstrap, mode: 0o700},
		{situation: "it fails", script: bootstrap, env: "A\n", mode: 0o700, want: failed},
		{situation: "it ends", script: bootstrap + " || exit 1\ntrue", env: "A\n", mode: 0o700, want: failed},
		{situation: "set -e", script: "set -e\n" + bootstrap + "\ntrue", env: "A\n", mode: 0o700, want: failed},
		{situation: "it goes on", script: bootstrap + "\ntrue", env: "A\n", mode: 0o700},
		{
			situation: "it cannot be executed", script: bootstrap, mode: 0o600,
			want: "/etc/hook threw exception 'Permission denied - /etc/hook' for bob",
		},
	} {
		n, err := Start(t.Context(), Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct {
			name, text string
			mode       fs.FileMode
		}{
			{Portal, "{}\n", 0o600},
			{rootsOwn, config, 0o600},
			{HookEnv, tc.env, 0o600},
			{"/etc/hook", tc.script, tc.mode},
			{Portal, "pun_pre_hook_root_cmd: /etc/hook\n", 0o600},
		} {
			if err := n.Write(f.name, f.text, f.mode); err != nil {
				t.Fatal(err)
			}
		}
		_ = n.Look(t.Context())
		log, err := n.Read(Log)
		n.Close()
		logged := strings.Contains(log, "ood_nginx_stage")
		if err != nil || logged != (tc.want != "") || !strings.Contains(log, tc.want) {
			t.Errorf("%s: %v\n%s", tc.situation, err, log)
		}
	}
}
