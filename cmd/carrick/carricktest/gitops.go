package carricktest

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
)

// Gitops is a user with kubectl and an export in one directory.
type Gitops struct {
	*testing.T
	Box *clustertest.Sandbox
	Dir string
	Env []string
}

// GitopsLink is a link file for the guide renku.
const GitopsLink = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: gitops}
guide: renku
local: {context: sandbox-local}
remote: {context: sandbox-remote}
answers:
  sessions.namespace: gitops-sessions
  pool.members: ["group:01J0GR0VP00000000000000000"]
`

// NewGitops starts a sandbox with the objects that guide expects, and writes the link file.
func NewGitops(t *testing.T, guide, link string) *Gitops {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands of README.txt need %s: %v", tool, err)
		}
	}
	box := clustertest.Start(t)
	box.Seed(t, guide)
	g := &Gitops{t, box, t.TempDir(), nil}
	both := box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) + box.Kubeconfigs[clustertest.Remote]
	path := os.Getenv("PATH") + string(os.PathListSeparator) + filepath.Dir(box.Kubectl)
	g.Env = append(OwnEnvironment(g.Dir), "KUBECONFIG="+both, "PATH="+path)
	g.Write("link.yaml", link)
	return g
}

// Write writes text to the file name in the user's directory.
func (g *Gitops) Write(name, text string) {
	g.Helper()
	if err := os.WriteFile(filepath.Join(g.Dir, name), []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// Run runs a program in the user's directory and returns its standard output and standard error.
func (g *Gitops) Run(args ...string) string {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = g.Dir, g.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Commands returns the commands in the README.txt of an export. These are the lines that are indented by eight spaces.
func (g *Gitops) Commands(export string) string {
	g.Helper()
	readme, err := os.ReadFile(filepath.Join(g.Dir, export, "README.txt"))
	if err != nil {
		g.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(readme)) {
		if text, ok := strings.CutPrefix(line, "        "); ok {
			out = append(out, text)
		}
	}
	return strings.Join(out, "")
}

// NoSecrets fails the test if a file of the export or the output contains one of the secrets in plain text or in
// base64.
func (g *Gitops) NoSecrets(export, said string, secrets ...string) {
	g.Helper()
	look := func(where, text string) {
		for _, s := range secrets {
			if len(s) < 20 {
				g.Fatalf("a secret of %d characters is too short for this test", len(s))
			}
			if strings.Contains(text, s) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(s))) {
				g.Errorf("%s contains a secret", where)
			}
		}
	}
	look("what it says", said)
	err := filepath.WalkDir(filepath.Join(g.Dir, export), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		look(path, string(text))
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
}

// OnlyMarks matches the lines of a diff that adds only the labels and annotations of the link gitops.
var OnlyMarks = regexp.MustCompile(`^(labels:|annotations:|carrick/link\.gitops: [a-z-]+)$`)

// Standing returns the objects of both sides without the fields that the API servers set.
func (g *Gitops) Standing() string {
	g.Helper()
	const script = `for side in local remote; do
  kubectl --context sandbox-$side get -A -o json namespaces,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,networkpolicies,priorityclasses,secrets,configmaps,deployments,daemonsets,statefulsets,customresourcedefinitions,storageclasses,csidrivers,resourcequotas |
    jq -S '.items[] | del(.status, .metadata.resourceVersion, .metadata.managedFields)'
done`
	return g.Run("bash", "-euo", "pipefail", "-c", script)
}

// Command runs a program in the user's directory and returns its standard output.
func (g *Gitops) Command(args ...string) (string, error) {
	cmd := exec.CommandContext(g.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = g.Dir, g.Env
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}
