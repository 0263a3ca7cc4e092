package walks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cmd/carrick/carricktest"
)

// ofJobs lists the kinds of objects that the guide creates or changes in its cluster.
const ofJobs = "namespaces,nodes,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,configmaps,services,deployments,jobs,networkpolicies," +
	"issuers.cert-manager.io,certificates.cert-manager.io"

// throughTheEndpoint matches the table of a job's permissions, as read through the endpoint and as the API reports them
// directly.
const throughTheEndpoint = `(?s)ENDPOINT +INSIDE +ON.*create +create +selfsubjectreviews\.authentication\.k8s\.io`

// briefly answers that a watch must stay open for one second, which is enough to prove that watches work.
func briefly(p *carricktest.Terminal) {
	p.Types("e")
	p.Wait(`Duration of the test watch \(seconds\)`)
	p.Types("\x151\x13")
	p.Wait(`1 answer saved`)
}

var throughInterLink = carricktest.Walk{
	Steps: 9,
	Titles: map[int]string{
		2: "Exposure", 3: "Certificates", 4: "Proxy", 6: "Virtual kubelet", 7: "Plugin", 9: "Test",
	},
	Before: map[int]func(*carricktest.Terminal){9: briefly}, Takes: map[int]bool{6: true},
}

// interlinkByKeys starts with a virtual node whose jobs cannot reach an API, applies the guide until the table of a
// job's permissions is shown, and undoes it. Every file of the edge node and every object of the cluster must then be
// unchanged.
func interlinkByKeys(t *testing.T) {
	p, w := carricktest.LentDemo(t, "interlink"), throughInterLink
	p.Wait(carricktest.Beginning)
	edge := p.InSandbox("edge")
	objects := func() []string { return p.ObjectsOf("sandbox-local", ofJobs) }
	files, before := filesUnder(t, edge), objects()
	p.Types("\r")
	w.Apply(p, 1, 9)
	p.Types("5")
	p.Wait(w.On(5))
	p.Types("gj")
	p.Wait(`✓ cluster: 127\.[0-9.]+:30443 \(seen from this machine\)`)
	p.Types("9")
	p.Wait(w.On(9))
	p.Types("g")
	p.Wait(`✓ cluster: GET /api returns 200 for\s+system:serviceaccount:default:default`)
	p.Types("/change the account\r")
	p.Wait(`(?s)1 of 9.*The endpoint does not change the account's permissions[ ┄]+✓ ok`)
	p.Types("\r")
	p.Wait(throughTheEndpoint)
	p.Types("\x1b")
	p.Wait(`(?s)` + w.On(9) + `.*1 of 9`)
	if now := filesUnder(t, edge); !strings.Contains(
		now["/root/.interlink/config/SlurmConfig.yaml"], "\nExportPodData: true\n",
	) {
		t.Error("the plugin's configuration is as it was")
	}
	w.Undo(p)
	p.Types("6")
	p.Wait(`The virtual kubelet runs with the current configuration[ ┄]+✓ ok`) // with what stood there
	if d := cmp.Diff(files, filesUnder(t, edge)); d != "" {
		t.Errorf("the edge node is not as it was (-before +after):\n%s", d)
	}
	if d := cmp.Diff(before, objects()); d != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", d)
	}
	p.Quits()
}
