package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/steps/stepstest"
)

const portalLink = "apiVersion: carrick/v1alpha1\nkind: Link\nmetadata: {name: apart}\nguide: ondemand\n"

// portalAdmin is one of two who share nothing: root on the web node, who has no
// kubeconfig at all, or the cluster's admin, who has no web node.
func portalAdmin(t *testing.T, role, peer, ends, answers, kubeconfig string) *admin {
	t.Helper()
	o := &admin{T: t, dir: t.TempDir(), role: role, peer: peer}
	var err error
	if o.key, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	o.write("key", o.key.String()+"\n")
	o.write("link.yaml", portalLink+ends+answers)
	o.env = append(ownEnvironment(o.dir), "KUBECONFIG="+filepath.Join(o.dir, "config"))
	if kubeconfig != "" {
		text, err := os.ReadFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		o.write("config", string(text))
	}
	return o
}

// Root on the web node and the cluster's admin come to a green set-up by handing
// each other files of facts; the token for root crosses over sealed.
func TestAPortalByTwoAdmins(t *testing.T) {
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "ondemand")
	node := box.Hosts[clustertest.Local]
	files, objects := filesUnder(t, node), stepstest.Snapshot(t, box)
	const answers = "answers: {hooks.allow-cidr: 172.30.0.0/16, trial.user: alice, trial.other: bob}\n"
	root := portalAdmin(t, "web node", "cluster", "local: {host: {root: "+node+"}}\nremote: {facts: theirs.facts}\n", answers, "")
	cluster := portalAdmin(t, "cluster", "web node", "local: {facts: theirs.facts}\nremote: {context: "+box.Contexts[clustertest.Remote]+"}\n", answers, box.Kubeconfigs[clustertest.Remote])
	var handed []string

	// nobody has a file yet: the first one is written without any
	with := cluster.read("link.yaml")
	cluster.write("link.yaml", strings.Replace(with, "local: {facts: theirs.facts}\n", "", 1))
	handed = append(handed, cluster.hand(root))
	cluster.write("link.yaml", with)
	green := func() bool {
		_, _, ours := root.run([]int{0, 3, 5}, "check", "link.yaml")
		_, _, theirs := cluster.run([]int{0, 3, 5}, "check", "link.yaml")
		return ours == 0 && theirs == 0
	}
	for turn := 1; ; turn++ {
		for _, o := range []*admin{cluster, root} {
			if _, err := os.Stat(filepath.Join(o.dir, "theirs.facts")); err != nil {
				handed = append(handed, root.hand(cluster))
			}
			o.run([]int{0, 5}, "apply", "--yes", "link.yaml", "--side", o.role)
			handed = append(handed, o.hand(map[*admin]*admin{cluster: root, root: cluster}[o]))
		}
		if green() {
			t.Logf("green after %d turns", turn)
			break
		}
		if turn == 4 {
			t.Fatal("not green after 4 turns")
		}
	}

	token := strings.TrimSpace(root.readAt(filepath.Join(node, "etc/ood/hooks/token")))
	if len(token) < 100 {
		t.Fatalf("root's token has %d bytes", len(token))
	}
	for _, text := range append(handed, root.said.String(), cluster.said.String()) {
		if strings.Contains(text, token) || strings.Contains(text, strings.Split(token, ".")[2]) {
			t.Error("root's token is in a file that was handed over, or was said")
		}
	}
	for _, o := range []*admin{root, cluster} {
		o.run([]int{0}, "undo", "--yes", "link.yaml", "--side", o.role)
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

func (o *admin) readAt(path string) string {
	o.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}
