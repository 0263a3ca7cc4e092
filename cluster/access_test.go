package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: kind-rome
contexts:
- name: kind-rome
  context: {cluster: rome, user: rome, namespace: forum}
- name: kind-milan
  context: {cluster: milan, user: milan}
clusters:
- name: rome
  cluster: {server: "https://rome.test:6443", certificate-authority: pki/ca.crt}
- name: milan
  cluster: {server: "https://milan.test:6443", insecure-skip-tls-verify: true}
users:
- name: rome
  user: {token: secret-token}
- name: milan
  user: {token: secret-token}
`

func config(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContextsAreSorted(t *testing.T) {
	got, err := kubeconfig.Contexts(config(t, twoContexts))
	if err != nil {
		t.Fatal(err)
	}
	want := []kubeconfig.Context{
		{Name: "kind-milan", Cluster: "milan", User: "milan", Server: "https://milan.test:6443"},
		{
			Name: "kind-rome", Cluster: "rome", User: "rome", Namespace: "forum", Server: "https://rome.test:6443",
			Current: true,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKubeconfigsAreMergedAsKubectlDoes(t *testing.T) {
	other := strings.ReplaceAll(strings.ReplaceAll(twoContexts, "rome", "turin"), "milan", "bari")
	t.Setenv(
		"KUBECONFIG",
		strings.Join(
			[]string{config(t, twoContexts), filepath.Join(t.TempDir(), "none"), config(t, other)},
			string(filepath.ListSeparator),
		),
	)
	got, err := kubeconfig.Contexts("")
	if err != nil || len(got) != 4 {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, c := range got {
		if c.Current != (c.Name == "kind-rome") {
			t.Errorf("%s is current: %v", c.Name, c.Current)
		}
	}
}

func TestAKubeconfigAtHomeIsFound(t *testing.T) {
	path := config(t, twoContexts)
	t.Setenv("HOME", filepath.Dir(path))
	if got, err := kubeconfig.Contexts("~/config"); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestOpenTakesTheContextAndRelativePaths(t *testing.T) {
	path := config(t, twoContexts)
	if err := os.Mkdir(filepath.Join(filepath.Dir(path), "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	api := newFakeAPI(t)
	pem := api.config().CAData
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "pki", "ca.crt"), pem, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(kubeconfig.Access{Kubeconfig: path}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Context() != "kind-rome" || c.Namespace() != "forum" || c.Server() != "https://rome.test:6443" ||
		string(c.CA()) != string(pem) {
		t.Errorf("got %q %q %q %q", c.Context(), c.Namespace(), c.Server(), c.CA())
	}
	milan, err := cluster.Open(kubeconfig.Access{Kubeconfig: path, Context: "kind-milan"}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer milan.Close()
	if milan.Namespace() != "default" || milan.CA() != nil {
		t.Errorf("got %q %q", milan.Namespace(), milan.CA())
	}
}

// A link file from another user can name a kubeconfig that would run a program or send the content of a file to its
// server.
func TestAKubeconfigThatAFileNamesRunsNothing(t *testing.T) {
	exec := "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./steal, interactiveMode: Never}}"
	for name, tc := range map[string]struct{ user, want string }{
		"a token":          {"{token: t}", ""},
		"a program":        {exec, `steal", which carrick does not allow`},
		"a token file":     {"{tokenFile: /etc/hostname}", `sends the content of "/etc/hostname"`},
		"a token and both": {"{token: t, tokenFile: /etc/hostname}", `sends the content of "/etc/hostname"`},
		"an auth provider": {"{auth-provider: {name: oidc}}", `uses the auth provider "oidc"`},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("KUBECONFIG", "")
			text := strings.Replace(twoContexts, "{token: secret-token}", tc.user, 1)
			text = strings.Replace(text, "certificate-authority: pki/ca.crt, ", "", 1)
			text = strings.Replace(text, "certificate-authority: pki/ca.crt", "tls-server-name: rome.test", 1)
			path := config(t, text)
			opened := func(a kubeconfig.Access) error {
				a.Context = "kind-rome"
				c, err := cluster.Open(a, cluster.Options{})
				if err == nil {
					c.Close()
				}
				return err
			}
			err := opened(kubeconfig.Access{Kubeconfig: path, FromFile: true})
			if tc.want == "" && err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path)) {
				t.Errorf("it said %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret-token") {
				t.Errorf("it shows a secret: %v", err)
			}
			if name == "an auth provider" {
				return // which this build has none of
			}
			if err := opened(kubeconfig.Access{Kubeconfig: path}); err != nil {
				t.Errorf("named by the user: %v", err)
			}
			t.Setenv("KUBECONFIG", "/nowhere"+string(filepath.ListSeparator)+path)
			if err := opened(kubeconfig.Access{Kubeconfig: path, FromFile: true}); err != nil {
				t.Errorf("in $KUBECONFIG: %v", err)
			}
			t.Setenv("KUBECONFIG", "")
			own := filepath.Join(home, ".kube", "rome")
			if err := errors.Join(os.Mkdir(filepath.Dir(own), 0o700), os.WriteFile(own, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := opened(kubeconfig.Access{Kubeconfig: own, FromFile: true}); err != nil {
				t.Errorf("in ~/.kube: %v", err)
			}
			outside := filepath.Join(home, ".kube", "link")
			if err := os.Symlink(path, outside); err != nil {
				t.Fatal(err)
			}
			if err := opened(kubeconfig.Access{Kubeconfig: outside, FromFile: true}); err != nil {
				t.Errorf("a symlink that the user put into ~/.kube: %v", err)
			}
			through := filepath.Join(home, ".kube", "..", filepath.Base(path))
			if err := os.WriteFile(through, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := opened(
				kubeconfig.Access{Kubeconfig: home + "/.kube/../" + filepath.Base(path), FromFile: true},
			); (err == nil) != (tc.want == "") {
				t.Errorf("a path that leads out of ~/.kube: %v", err)
			}
		})
	}
}

func TestAKubeconfigThatCannotBeUsedSaysWhatToDo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	missing := filepath.Join(t.TempDir(), "none")
	tests := map[string]struct {
		content, context string
		want             []string
	}{
		"unknown context": {
			twoContexts, "kind-rom", []string{`no context "kind-rom"`, `did you mean "kind-rome"?`, "kind-milan, kind-rome"},
		},
		"part of a context": {twoContexts, "milan", []string{`did you mean "kind-milan"?`}},
		"nothing like it": {
			twoContexts, "production-eu-west",
			[]string{`no context "production-eu-west": its contexts are kind-milan, kind-rome`},
		},
		"no current context": {
			strings.Replace(twoContexts, "current-context: kind-rome\n", "", 1), "",
			[]string{"no current context: choose one of kind-milan, kind-rome"},
		},
		"cluster not there": {
			strings.Replace(twoContexts, "- name: rome\n  cluster:", "- name: florence\n  cluster:", 1), "",
			[]string{`context "kind-rome"`, `no cluster "rome"`},
		},
		"user not there": {
			strings.Replace(twoContexts, "- name: rome\n  user:", "- name: florence\n  user:", 1), "",
			[]string{`no user "rome"`},
		},
		"no server": {
			strings.Replace(twoContexts, `server: "https://rome.test:6443", `, "", 1), "",
			[]string{`cluster "rome"`, "has no server"},
		},
		"no contexts": {"apiVersion: v1\nkind: Config\n", "", []string{"has no context"}},
		"malformed": {
			strings.Replace(twoContexts, "clusters:\n", "clusters\n", 1), "", []string{"line 9", "could not find expected ':'"},
		},
		"a tab": {"apiVersion: v1\n\tkind: Config\n", "", []string{"line 2"}},
		"a map for a list": {
			"apiVersion: v1\nkind: Config\ncontexts:\n  name: x\n", "", []string{"line 4: found a map, expected a list"},
		},
		"a list for a map": {
			strings.Replace(twoContexts, "  user: {token: secret-token}", "  user: [secret-token]", 1), "",
			[]string{"found a list, expected a map"},
		},
		"not base64": {
			strings.Replace(twoContexts, "certificate-authority: pki/ca.crt", "certificate-authority-data: secret-token", 1), "",
			[]string{"line 11: the value of certificate-authority-data is not base64"},
		},
		"certificate not read": {twoContexts, "", []string{`context "kind-rome"`, "ca.crt", "no such file"}},
		"empty":                {"", "", []string{"has no context"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := config(t, test.content)
			_, err := cluster.Open(kubeconfig.Access{Kubeconfig: path, Context: test.context}, cluster.Options{})
			says(t, err, append(test.want, filepath.Base(path))...)
		})
	}
	_, err := cluster.Open(kubeconfig.Access{Kubeconfig: missing}, cluster.Options{})
	says(t, err, missing+" does not exist")
	_, err = kubeconfig.Contexts(t.TempDir())
	says(t, err, "is a directory")
	t.Setenv("KUBECONFIG", missing)
	_, err = kubeconfig.Contexts("")
	says(t, err, "$KUBECONFIG names "+missing+", which does not exist")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	_, err = kubeconfig.Contexts("")
	says(t, err, "no kubeconfig", "$KUBECONFIG is not set")
}

// says fails the test unless the error contains all parts and no secret.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %q", parts)
	}
	t.Log(err)
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "secret-token") || strings.Contains(err.Error(), "failed to") {
		t.Errorf("%q says what it should not", err)
	}
}
