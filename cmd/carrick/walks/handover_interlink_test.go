package walks

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// looksAtEndpoint fails the test if a verdict about the endpoint does not say who checked it. It returns the number of
// these verdicts.
func looksAtEndpoint(o *carricktest.Admin, of map[string]engine.ReportCheck, side steps.Side, who string) (n int) {
	o.Helper()
	for id, c := range of {
		if !strings.HasPrefix(id, "endpoint-") || id == "endpoint-namespace@local" || c.Side != side {
			continue
		}
		n++
		if !strings.HasSuffix(c.Found, " (seen from "+who+")") {
			o.Errorf("%s does not say that %s looked: %s", id, who, c.Found)
		}
	}
	return n
}

// The admins of a cluster and of the edge node exchange facts files until jobs can reach the API. The edge node's admin
// checks the endpoint from there.
func interlinkByTwoAdmins(t *testing.T) {
	box := clustertest.Start(t)
	box.Seed(t, "interlink")
	node := box.Hosts[clustertest.Remote]
	files, objects := filesUnder(t, node), stepstest.Snapshot(t, box)
	answers := "answers: {exposure.address: " + box.Answers["exposure.address"] +
		", exposure.type: LoadBalancer, exposure.sources: [172.30.0.0/16], test.watch: 0"
	if port := box.Answers["exposure.port"]; port != "" {
		answers += ", exposure.port: " + port
	}
	answers += "}\n"
	cluster := carricktest.NewAdmin(
		t, "interlink", "cluster", "edge",
		"local: {context: "+box.Contexts[clustertest.Local]+"}\nremote: {facts: theirs.facts}\n", answers,
		box.Kubeconfigs[clustertest.Local],
	)
	edge := carricktest.NewAdmin(
		t, "interlink", "edge", "cluster", "local: {facts: theirs.facts}\nremote: {host: {root: "+node+", here: true}}\n", "",
		"",
	)
	var handed []string

	// NoServer has a file yet: the first one is written without any.
	with := edge.Read("link.yaml")
	edge.Write("link.yaml", strings.Replace(with, "local: {facts: theirs.facts}\n", "", 1))
	handed = append(handed, edge.Hand(cluster))
	edge.Write("link.yaml", with)
	for turn := 1; ; turn++ {
		for _, o := range []*carricktest.Admin{cluster, edge} {
			o.Run([]int{0, 5}, "apply", "--yes", "--take-over", "link.yaml", "--side", o.Role) // the configuration is Helm's
			handed = append(handed, o.Hand(map[*carricktest.Admin]*carricktest.Admin{cluster: edge, edge: cluster}[o]))
		}
		_, _, ours := cluster.Run([]int{0, 3, 5}, "check", "link.yaml")
		_, _, theirs := edge.Run([]int{0, 3, 5}, "check", "link.yaml")
		if ours == 0 && theirs == 0 {
			t.Logf("green after %d turns", turn)
			break
		}
		if turn == 3 {
			t.Fatal("not green after 3 turns")
		}
	}

	there := edge.Reported([]int{0}, "link.yaml", "--side", "edge")
	if n := looksAtEndpoint(edge, there, steps.Remote, "the edge node"); n != 8 {
		t.Errorf("%d verdicts of the endpoint from the edge node", n)
	}
	for id := range there {
		if strings.HasSuffix(id, "@local") {
			t.Errorf("the edge judges %s", id)
		}
	}
	if n := looksAtEndpoint(
		cluster, cluster.Reported([]int{0}, "link.yaml", "--side", "cluster"), steps.Local, "this machine",
	); n != 9 {
		t.Errorf("%d verdicts of the endpoint from the cluster's admin", n)
	}
	nothingOfTheCluster(t, box, append(handed, edge.Said.String(), cluster.Said.String(), edge.Read("link.yaml")))

	for _, o := range []*carricktest.Admin{edge, cluster} {
		o.Run([]int{0}, "undo", "--yes", "link.yaml", "--side", o.Role)
	}
	if d := cmp.Diff(files, filesUnder(t, node)); d != "" {
		t.Errorf("the edge node is not as it was (-before +after):\n%s", d)
	}
	if d := cmp.Diff(objects, stepstest.Snapshot(t, box)); d != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", d)
	}
}

// nothingOfTheCluster fails the test if one of the texts contains a private key or a token of the cluster.
func nothingOfTheCluster(t *testing.T, box *clustertest.Sandbox, texts []string) {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string][]byte
		}
	}
	if err := json.Unmarshal(
		[]byte(box.Run(t, clustertest.Local, "", "get", "secrets", "-A", "-o", "json")), &list,
	); err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, s := range list.Items {
		for _, key := range []string{"tls.key", "token"} {
			secret := string(s.Data[key])
			if len(secret) < 40 {
				continue
			}
			looked++
			secret = secret[len(secret)/3 : len(secret)*2/3]
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, secret) }) {
				t.Errorf("%s of Secret %s is in a file that was handed over, or was said", key, s.Metadata.Name)
			}
		}
	}
	if looked < 2 {
		t.Errorf("the cluster has %d secrets: this proves nothing", looked)
	}
}
