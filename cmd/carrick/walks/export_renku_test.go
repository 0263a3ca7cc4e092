package walks

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

// The user follows README.txt of an export exactly, with kubectl and curl. All checks of the link then pass. The
// created objects have no marks of carrick.
func renkuExport(t *testing.T) {
	g := carricktest.NewGitops(t, "renku", carricktest.GitopsLink)
	g.Run("carrick", "export", "link.yaml", "fresh")
	g.Run("carrick", "export", "link.yaml", "again")
	g.Run("diff", "-r", "fresh", "again")
	wellOrdered(g, "fresh/remote")
	script := g.Commands("fresh")
	for _, part := range []string{
		"apply --server-side -k remote", "-d @files/local/register.json", "rollout restart deployment",
		`carrick check ../link.yaml --wait 2m --secret renku.token=@"$private/token"`,
	} {
		if !strings.Contains(script, part) {
			t.Fatalf("README.txt lacks %q:\n%s", part, script)
		}
	}
	t.Cleanup(func() { clearRenku(g) })
	script = strings.NewReplacer(
		"do sleep 5;", "do sleep 1;", "--wait 2m", "--wait 5m",
	).Replace(script) + "\n" + `cp "$private/token" ../token; rm -r "$private"`
	g.Run("bash", "-euo", "pipefail", "-c", "cd fresh\n"+script)
	signedIn := []string{"link.yaml", "--secret", "renku.token=@token"}
	look := append([]string{"carrick", "check", "--wait", "5m"}, signedIn...)
	g.Run(look...)

	token := strings.TrimSpace(g.Run("cat", "token"))
	account := g.Box.Run(
		t, clustertest.Remote, "", "-n", "gitops-sessions", "get", "secret", "renku-gitops-token", "-o",
		"go-template={{.data.token | base64decode}}",
	)
	said := g.Run("carrick", "export", "link.yaml", "after", "--secret", "renku.token=@token")
	g.NoSecrets("after", said, token, account)
	g.Run("diff", "-r", "fresh", "after")

	// carrick takes part in it when it is asked to, and leaves it as it was.
	before := g.Standing()
	plan, err := g.Command(append([]string{"carrick", "diff"}, signedIn...)...)
	if err == nil || !strings.Contains(plan, "carrick/link.gitops") {
		t.Errorf("diff: %v\n%s", err, plan)
	}
	for line := range strings.Lines(plan) {
		diff, ok := strings.CutPrefix(line, "      ")
		if ok && (strings.HasPrefix(diff, "-") || strings.HasPrefix(diff, "+") &&
			!carricktest.OnlyMarks.MatchString(strings.TrimSpace(diff[1:]))) {
			t.Errorf("apply would do more than put marks: %s", line)
		}
	}
	g.Run(append([]string{"carrick", "apply", "--yes"}, signedIn...)...)
	g.Run("carrick", "export", "link.yaml", "marked")
	g.Run("diff", "-r", "fresh", "marked")
	g.Run(append([]string{"carrick", "undo", "--yes"}, signedIn...)...)
	if d := cmp.Diff(before, g.Standing()); d != "" {
		t.Errorf("apply and undo did not leave it as it was (-before +after):\n%s", d)
	}
	g.Run(look...)
}

// wellOrdered fails the test if a folder is not a kustomization, or if it lists an object before the namespace or
// definition that the object needs.
func wellOrdered(g *carricktest.Gitops, dir string) {
	g.Helper()
	var kinds []string
	for line := range strings.Lines(g.Run("kubectl", "kustomize", dir)) {
		if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "kind: "); ok && strings.HasPrefix(line, "kind") {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 20 || kinds[0] != "Namespace" || kinds[1] != "Namespace" ||
		!slices.Contains(kinds, "CustomResourceDefinition") {
		g.Errorf("the order is %v", kinds)
	}
	list := g.Run("cat", dir+"/kustomization.yaml")
	if want := "resources:\n- namespace.yaml\n- driver-namespace.yaml\n- operator.crds.yaml\n"; !strings.Contains(list, want) {
		g.Errorf("the files are\n%s", list)
	}
	if strings.Contains(g.Run("cat", dir+"/operator.yaml"), "CustomResourceDefinition") {
		g.Error("the definition does not stand apart")
	}
}

// clearRenku deletes what the test created. The test may have failed at any point.
func clearRenku(g *carricktest.Gitops) {
	const script = `cd fresh
url=$(grep -o 'https://[^ ]*/api/data' README.txt | head -1)
renku() { curl -sS --cacert files/local/renku-ca.crt -H "Authorization: Bearer $(cat ../token)" -H 'Content-Type: application/json' "$@"; }
for id in $(renku "$url/resource_pools" | jq -r '.[] | select(.name == "gitops") | .id'); do renku -X DELETE "$url/resource_pools/$id"; done
for id in $(renku "$url/clusters" | jq -r '.[] | select(.name == "gitops") | .id'); do renku -X DELETE "$url/clusters/$id"; done
kubectl --context sandbox-local -n renku patch secret renku-remote-clusters --type=json -p '[{"op": "remove", "path": "/data/gitops.yaml"}]'
kubectl --context sandbox-remote delete --ignore-not-found -k remote`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = g.Dir, g.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		g.Logf("clear: %v\n%s", err, out)
	}
}
