package walks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/steps/stepstest"
)

// Root on the web node and the cluster's admin exchange facts files until all checks pass. The token for root is
// encrypted in the file.
func ondemandByTwoAdmins(t *testing.T) {
	box := clustertest.Start(t)
	box.Seed(t, "ondemand")
	node := box.Hosts[clustertest.Local]
	files, objects := filesUnder(t, node), stepstest.Snapshot(t, box)
	server := box.Run(
		t, clustertest.Remote, "", "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}",
	)
	answers := "answers: {cluster.server: " + server +
		", hooks.allow-cidr: 172.30.0.0/16, trial.user: alice, trial.other: bob}\n"
	root := carricktest.NewAdmin(
		t, "ondemand", "web node", "cluster", "local: {host: {root: "+node+"}}\nremote: {facts: theirs.facts}\n", answers, "",
	)
	cluster := carricktest.NewAdmin(
		t, "ondemand", "cluster", "web node",
		"local: {facts: theirs.facts}\nremote: {context: "+box.Contexts[clustertest.Remote]+"}\n", answers,
		box.Kubeconfigs[clustertest.Remote],
	)
	var handed []string

	// nobody has a file yet: the first one is written without any
	with := cluster.Read("link.yaml")
	cluster.Write("link.yaml", strings.Replace(with, "local: {facts: theirs.facts}\n", "", 1))
	handed = append(handed, cluster.Hand(root))
	cluster.Write("link.yaml", with)
	green := func() bool {
		_, _, ours := root.Run([]int{0, 3, 5}, "check", "link.yaml")
		_, _, theirs := cluster.Run([]int{0, 3, 5}, "check", "link.yaml")
		return ours == 0 && theirs == 0
	}
	for turn := 1; ; turn++ {
		for _, o := range []*carricktest.Admin{cluster, root} {
			if _, err := os.Stat(filepath.Join(o.Dir, "theirs.facts")); err != nil {
				handed = append(handed, root.Hand(cluster))
			}
			o.Run([]int{0, 5}, "apply", "--yes", "link.yaml", "--side", o.Role)
			handed = append(handed, o.Hand(map[*carricktest.Admin]*carricktest.Admin{cluster: root, root: cluster}[o]))
		}
		if green() {
			t.Logf("green after %d turns", turn)
			break
		}
		if turn == 4 {
			t.Fatal("not green after 4 turns")
		}
	}

	token := strings.TrimSpace(root.ReadAt(filepath.Join(node, "etc/ood/hooks/token")))
	if len(token) < 100 {
		t.Fatalf("root's token has %d bytes", len(token))
	}
	for _, text := range append(handed, root.Said.String(), cluster.Said.String()) {
		if strings.Contains(text, token) || strings.Contains(text, strings.Split(token, ".")[2]) {
			t.Error("root's token is in a file that was handed over, or was said")
		}
	}
	for _, o := range []*carricktest.Admin{root, cluster} {
		o.Run([]int{0}, "undo", "--yes", "link.yaml", "--side", o.Role)
	}
	if d := cmp.Diff(files, filesUnder(t, node)); d != "" {
		t.Errorf("the web node is not as it was (-before +after):\n%s", d)
	}
	for name := range stepstest.Snapshot(t, box) {
		if _, was := objects[name]; !was && !strings.Contains(name, "user-alice") && !strings.Contains(name, "user-bob") {
			t.Errorf("left in the cluster: %s", name)
		}
	}
}
