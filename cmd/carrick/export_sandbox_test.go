package main

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
)

// gitops is somebody who has an export and kubectl, in one folder.
type gitops struct {
	*testing.T
	box *clustertest.Sandbox
	dir string
	env []string
}

const gitopsLink = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: gitops}
guide: renku
local: {context: sandbox-local}
remote: {context: sandbox-remote}
answers:
  sessions.namespace: gitops-sessions
  pool.members: ["group:01J0GR0VP00000000000000000"]
`

func newGitops(t *testing.T, guide, link string) *gitops {
	t.Helper()
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the commands of README.txt need %s: %v", tool, err)
		}
	}
	box := clustertest.Start(t)
	box.Seed(t, guide)
	g := &gitops{t, box, t.TempDir(), nil}
	both := box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) + box.Kubeconfigs[clustertest.Remote]
	path := os.Getenv("PATH") + string(os.PathListSeparator) + filepath.Dir(box.Kubectl)
	g.env = append(ownEnvironment(g.dir), "KUBECONFIG="+both, "PATH="+path)
	g.write("link.yaml", link)
	return g
}

func (g *gitops) write(name, text string) {
	g.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// run runs a program in that folder and returns all it says.
func (g *gitops) run(args ...string) string {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// commands are those of README.txt in an export: what stands eight spaces from
// the left.
func (g *gitops) commands(export string) string {
	g.Helper()
	readme, err := os.ReadFile(filepath.Join(g.dir, export, "README.txt"))
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

// noSecrets fails the test where a file of an export, or what was said, holds
// one of the secrets, in the open or in base64.
func (g *gitops) noSecrets(export, said string, secrets ...string) {
	g.Helper()
	look := func(where, text string) {
		for _, s := range secrets {
			if len(s) < 20 {
				g.Fatalf("a secret of %d characters proves nothing", len(s))
			}
			if strings.Contains(text, s) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(s))) {
				g.Errorf("%s holds a secret", where)
			}
		}
	}
	look("what it says", said)
	err := filepath.WalkDir(filepath.Join(g.dir, export), func(path string, d fs.DirEntry, err error) error {
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

var onlyMarks = regexp.MustCompile(`^(labels:|annotations:|carrick/link\.gitops: [a-z-]+)$`)

// What README.txt of an export says, done word by word with kubectl and curl,
// gives a link whose checks are green. It is nobody's but theirs.
func renkuExport(t *testing.T) {
	g := newGitops(t, "renku", gitopsLink)
	g.run("carrick", "export", "link.yaml", "fresh")
	g.run("carrick", "export", "link.yaml", "again")
	g.run("diff", "-r", "fresh", "again")
	g.wellOrdered("fresh/remote")
	script := g.commands("fresh")
	for _, part := range []string{"apply --server-side -k remote", "-d @files/local/register.json", "rollout restart deployment", "carrick check link.yaml --wait 2m"} {
		if !strings.Contains(script, part) {
			t.Fatalf("README.txt lacks %q:\n%s", part, script)
		}
	}
	t.Cleanup(func() { g.clear() })
	script = strings.NewReplacer("do sleep 5;", "do sleep 1;", "carrick check link.yaml --wait 2m", `cp "$private/token" ../token; rm -r "$private"`).Replace(script)
	g.run("bash", "-euo", "pipefail", "-c", "cd fresh\n"+script)
	signedIn := []string{"link.yaml", "--secret", "renku.token=@token"}
	look := append([]string{"carrick", "check", "--wait", "5m"}, signedIn...)
	g.run(look...)

	token := strings.TrimSpace(g.run("cat", "token"))
	account := g.box.Run(t, clustertest.Remote, "", "-n", "gitops-sessions", "get", "secret", "renku-gitops-token", "-o", "go-template={{.data.token | base64decode}}")
	said := g.run("carrick", "export", "link.yaml", "after", "--secret", "renku.token=@token")
	g.noSecrets("after", said, token, account)
	g.run("diff", "-r", "fresh", "after")

	// carrick takes part in it when it is asked to, and leaves it as it was.
	before := g.standing()
	plan, err := g.command(append([]string{"carrick", "diff"}, signedIn...)...)
	if err == nil || !strings.Contains(plan, "carrick/link.gitops") {
		t.Errorf("diff: %v\n%s", err, plan)
	}
	for line := range strings.Lines(plan) {
		diff, ok := strings.CutPrefix(line, "      ")
		if ok && (strings.HasPrefix(diff, "-") || strings.HasPrefix(diff, "+") && !onlyMarks.MatchString(strings.TrimSpace(diff[1:]))) {
			t.Errorf("apply would do more than put marks: %s", line)
		}
	}
	g.run(append([]string{"carrick", "apply", "--yes"}, signedIn...)...)
	g.run("carrick", "export", "link.yaml", "marked")
	g.run("diff", "-r", "fresh", "marked")
	g.run(append([]string{"carrick", "undo", "--yes"}, signedIn...)...)
	if d := cmp.Diff(before, g.standing()); d != "" {
		t.Errorf("apply and undo did not leave it as it was (-before +after):\n%s", d)
	}
	g.run(look...)
}

// wellOrdered fails the test where a folder is no kustomization, or one in which
// something comes before what it stands in.
func (g *gitops) wellOrdered(dir string) {
	g.Helper()
	var kinds []string
	for line := range strings.Lines(g.run("kubectl", "kustomize", dir)) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "kind: "); ok && strings.HasPrefix(line, "kind") {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 20 || kinds[0] != "Namespace" || kinds[1] != "Namespace" || !slices.Contains(kinds, "CustomResourceDefinition") {
		g.Errorf("the order is %v", kinds)
	}
	list := g.run("cat", dir+"/kustomization.yaml")
	if want := "resources:\n- namespace.yaml\n- driver-namespace.yaml\n- operator.crds.yaml\n"; !strings.Contains(list, want) {
		g.Errorf("the files are\n%s", list)
	}
	if strings.Contains(g.run("cat", dir+"/operator.yaml"), "CustomResourceDefinition") {
		g.Error("the definition does not stand apart")
	}
}

// standing is what stands on both sides, but for what the clusters themselves
// note on it.
func (g *gitops) standing() string {
	g.Helper()
	const script = `for side in local remote; do
  kubectl --context sandbox-$side get -A -o json namespaces,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,networkpolicies,priorityclasses,secrets,configmaps,deployments,daemonsets,statefulsets,customresourcedefinitions,storageclasses,csidrivers,resourcequotas |
    jq -S '.items[] | del(.status, .metadata.resourceVersion, .metadata.managedFields)'
done`
	return g.run("bash", "-euo", "pipefail", "-c", script)
}

func (g *gitops) command(args ...string) (string, error) {
	cmd := exec.CommandContext(g.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = g.dir, g.env
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}

// clear takes away what the test made; it may have failed anywhere.
func (g *gitops) clear() {
	const script = `cd fresh
url=$(grep -o 'https://[^ ]*/api/data' README.txt | head -1)
renku() { curl -sS --cacert files/local/renku-ca.crt -H "Authorization: Bearer $(cat ../token)" -H 'Content-Type: application/json' "$@"; }
for id in $(renku "$url/resource_pools" | jq -r '.[] | select(.name == "gitops") | .id'); do renku -X DELETE "$url/resource_pools/$id"; done
for id in $(renku "$url/clusters" | jq -r '.[] | select(.name == "gitops") | .id'); do renku -X DELETE "$url/clusters/$id"; done
kubectl --context sandbox-local -n renku patch secret renku-remote-clusters --type=json -p '[{"op": "remove", "path": "/data/gitops.yaml"}]'
kubectl --context sandbox-remote delete --ignore-not-found -k remote`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = g.dir, g.env
	if out, err := cmd.CombinedOutput(); err != nil {
		g.Logf("clear: %v\n%s", err, out)
	}
}
