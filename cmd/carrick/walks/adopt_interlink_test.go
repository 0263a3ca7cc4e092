package walks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/steps/stepstest"
)

// If the link file is lost, adopt discovers the set-up by its marks and the existing objects. An undo with the
// discovered answers works.
func interlinkIsAdopted(t *testing.T) {
	box := clustertest.Start(t)
	box.Seed(t, "interlink")
	node := box.Hosts[clustertest.Remote]
	files, objects := filesUnder(t, node), stepstest.Snapshot(t, box)
	answers := "answers: {exposure.address: " + box.Answers["exposure.address"] +
		", exposure.type: LoadBalancer, exposure.sources: [172.30.0.0/16], cert.days: 33, test.watch: 0, test.job: false"
	if port := box.Answers["exposure.port"]; port != "" {
		answers += ", exposure.port: " + port
	}
	ends := "local: {context: " + box.Contexts[clustertest.Local] + "}\nremote: {host: {root: " + node + ", here: true}}\n"
	o := carricktest.NewAdmin(t, "interlink", "cluster", "edge", ends, answers+"}\n", box.Kubeconfigs[clustertest.Local])
	o.Run([]int{0}, "apply", "--yes", "--take-over", "link.yaml")
	if err := os.Remove(filepath.Join(o.Dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	_, said, _ := o.Alone([]int{0}, "adopt", "interlink", "--context", box.Contexts[clustertest.Local], "--host", node)
	if !strings.Contains(said, "carrick created part of this set-up for link apart") {
		t.Errorf("it does not say whose it is: %s", said)
	}
	told := regexp.MustCompile(` +`).ReplaceAllString(said, " ")
	for _, want := range []string{
		"exposure.mode proxy", "exposure.namespace interlink-api", "exposure.type LoadBalancer",
		"exposure.address " + box.Answers["exposure.address"], "exposure.sources 172.30.0.0/16",
		"cert.source cert-manager", "cert.days 33", "cert.ca-years 10", "workload.namespace default",
	} {
		if !strings.Contains(told, " "+want+" ") {
			t.Errorf("it has not found %s: %s", want, said)
		}
	}
	found := o.Read("apart.yaml") // what is not as usual
	for _, want := range []string{"cert.days: 33", "- 172.30.0.0/16"} {
		if !strings.Contains(found, want) {
			t.Errorf("the link file lacks %s:\n%s", want, found)
		}
	}
	o.Write("apart.yaml", strings.Replace(found, "\nanswers:\n", "\nanswers:\n  test.job: false\n  test.watch: 0\n", 1))
	if said, _, _ := o.Run([]int{0}, "diff", "apart.yaml"); strings.Contains(said, "create") ||
		strings.Contains(said, "update") {
		t.Errorf("there is something to do: %s", said)
	}
	o.Run([]int{0}, "undo", "--yes", "apart.yaml")
	if d := cmp.Diff(files, filesUnder(t, node)); d != "" {
		t.Errorf("the edge node is not as it was (-before +after):\n%s", d)
	}
	if d := cmp.Diff(objects, stepstest.Snapshot(t, box)); d != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", d)
	}
}

// Another user may manage the edge node. Without it, adopt discovers the cluster's half of the set-up.
func interlinkHalfIsAdopted(t *testing.T) {
	box := clustertest.Start(t)
	box.SeedFault(t, "interlink", "by-hand")
	o := carricktest.NewAdmin(t, "interlink", "cluster", "edge", "", "", box.Kubeconfigs[clustertest.Local])
	_, said, _ := o.Alone([]int{0}, "adopt", "interlink", "--context", box.Contexts[clustertest.Local], "-o", "found.yaml")
	if !strings.Contains(said, "Service interlink-api/k8s-api-proxy") {
		t.Errorf("it has not found the proxy: %s", said)
	}
	found := o.Read("found.yaml")
	if !strings.Contains(found, "guide: interlink") || strings.Contains(found, "\nremote:") {
		t.Errorf("%s", found)
	}
}
