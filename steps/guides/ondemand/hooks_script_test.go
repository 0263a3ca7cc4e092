package ondemand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func script(t *testing.T, h hookScript) string {
	t.Helper()
	text, err := h.text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// stage writes a hook, fake upstream hooks and a fake kubectl into a new folder. The fakes only print their arguments.
// The fake named broken fails.
func stage(t *testing.T, h hookScript, broken string) (hook string) {
	t.Helper()
	dir := t.TempDir()
	says := func(name, more string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		end := "exit 0"
		if name == broken {
			end = "exit 3"
		}
		text := "#!/bin/bash\necho \"" + filepath.Base(name) + " $* KUBECONFIG=${KUBECONFIG:-none}" + more + "\"\n" + end +
			"\n"
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says("hooks/bootstrap", "")
	says("hooks/creds", " token=${OOD_OIDC_ACCESS_TOKEN:-none}")
	says("bin/kubectl", " secret=${CLIENT_SECRET:-none}")
	says("site/old", "")
	env := filepath.Join(dir, "hook.env")
	if err := os.WriteFile(env, []byte("NAMESPACE_PREFIX=\"user-\"\nCLIENT_SECRET='s3cret'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.kubeconfig, h.kubectl = "/root-kubeconfig", "/bin-folder/kubectl"
	if h.also != "" {
		h.also = "/site/old"
	}
	text := script(t, h)
	text = strings.NewReplacer(
		bootstrapHook, filepath.Join(dir, "hooks/bootstrap"), credsHook, filepath.Join(dir, "hooks/creds"), hookEnv, env,
		"/bin-folder", filepath.Join(dir, "bin"), "/site/old", filepath.Join(dir, "site/old"),
	).Replace(text)
	hook = filepath.Join(dir, "k8s-pre-hook.sh")
	if err := os.WriteFile(hook, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return hook
}

func TestPreHookRuns(t *testing.T) {
	for _, tc := range []struct {
		situation, broken string
		hook              hookScript
		args              []string
		want              string
		fails             bool
	}{
		{
			situation: "with OIDC", hook: hookScript{level: "baseline", creds: true}, args: []string{"--user", "anna"},
			want: `bootstrap anna ENV KUBECONFIG=/root-kubeconfig
kubectl label --overwrite namespace user-anna pod-security.kubernetes.io/enforce=baseline pod-security.kubernetes.io/enforce-version=latest pod-security.kubernetes.io/warn=restricted KUBECONFIG=/root-kubeconfig secret=none
creds anna ENV KUBECONFIG=none token=none
`,
		},
		{
			situation: "the user is not the first argument", hook: hookScript{level: "restricted"},
			args: []string{"--skip", "x", "--user", "a b"},
			want: `bootstrap a b ENV KUBECONFIG=/root-kubeconfig
kubectl label --overwrite namespace user-a b pod-security.kubernetes.io/enforce=restricted pod-security.kubernetes.io/enforce-version=latest pod-security.kubernetes.io/warn=restricted KUBECONFIG=/root-kubeconfig secret=none
`,
		},
		{
			situation: "with =", hook: hookScript{level: "privileged", also: "x"}, args: []string{"--user=anna"},
			want: `old --user=anna KUBECONFIG=none
bootstrap anna ENV KUBECONFIG=/root-kubeconfig
kubectl label --overwrite namespace user-anna pod-security.kubernetes.io/enforce=privileged pod-security.kubernetes.io/enforce-version=latest pod-security.kubernetes.io/warn=restricted KUBECONFIG=/root-kubeconfig secret=none
`,
		},
		{
			situation: "no user", hook: hookScript{level: "restricted"}, want: "k8s-pre-hook: there is no --user NAME\n",
			fails: true,
		},
		{
			situation: "a user without a name", hook: hookScript{level: "restricted"}, args: []string{"--user"},
			want: "k8s-pre-hook: there is no --user NAME\n", fails: true,
		},
		{
			situation: "the bootstrap fails", broken: "hooks/bootstrap", hook: hookScript{level: "restricted", creds: true},
			args: []string{"--user", "anna"}, want: "bootstrap anna ENV KUBECONFIG=/root-kubeconfig\n", fails: true,
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			hook := stage(t, tc.hook, tc.broken)
			out, err := bash(t, `"$@"`, append([]string{hook}, tc.args...)...)
			out = strings.ReplaceAll(out, filepath.Join(filepath.Dir(hook), "hook.env"), "ENV")
			if d := cmp.Diff(tc.want, out); d != "" || (err != nil) != tc.fails {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

func TestPreHookTakesNoOtherWords(t *testing.T) {
	good := hookScript{kubeconfig: rootKubeconfig, kubectl: "/usr/local/bin/kubectl", level: "baseline"}
	for _, change := range []func(*hookScript){
		func(h *hookScript) { h.kubectl = "/bin/kubectl; reboot" },
		func(h *hookScript) { h.kubectl = "kubectl" },
		func(h *hookScript) { h.also = "/opt/hook $(id)" },
		func(h *hookScript) { h.also = "/opt/../hook" },
		func(h *hookScript) { h.kubeconfig = "/root/\nid" },
		func(h *hookScript) { h.level = "baseline x=y" },
	} {
		h := good
		change(&h)
		if text, err := h.text(); err == nil {
			t.Errorf("%+v makes %s", h, text)
		}
	}
	good.also = "/opt/site/hook"
	if got := alsoOf(script(t, good)); got != good.also {
		t.Errorf("the hook that ran before is found as %q", got)
	}
}
