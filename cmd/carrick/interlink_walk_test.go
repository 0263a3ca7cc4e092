package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofJobs are the kinds of objects that the guide makes or changes in its cluster.
const ofJobs = "namespaces,nodes,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,configmaps,services,deployments,jobs,networkpolicies," +
	"issuers.cert-manager.io,certificates.cert-manager.io"

// throughTheEndpoint is the table of what a job may do, as it was read through the
// endpoint, beside what the API says without it.
const throughTheEndpoint = `(?s)ENDPOINT +INSIDE +ON.*create +create +selfsubjectreviews\.authentication\.k8s\.io`

// briefly answers that a watch is held for a second, which proves that it can be.
func briefly(p *terminal) {
	p.types("e")
	p.wait(`Seconds for which a watch is held`)
	p.types("\x151\x13")
	p.wait(`1 answer saved`)
}

var throughInterLink = walk{
	steps: 9,
	titles: map[int]string{
		2: "Exposure", 3: "Certificates", 4: "Proxy", 6: "Virtual kubelet", 7: "Plugin", 9: "Test",
	},
	before: map[int]func(*terminal){9: briefly}, takes: map[int]bool{6: true},
}

// interlinkByKeys goes from a virtual node whose jobs know no API to the table of what a job may do there, and
// back to nothing: every file of the edge node and every object of the cluster is as before.
func interlinkByKeys(t *testing.T) {
	p, w := demoLent(t, "interlink"), throughInterLink
	p.wait(beginning)
	edge := p.inSandbox("edge")
	objects := func() []string { return p.objectsOf("sandbox-local", ofJobs) }
	files, before := filesUnder(t, edge), objects()
	p.types("\r")
	w.apply(p, 1, 9)
	p.types("5")
	p.wait(w.on(5))
	p.types("gj")
	p.wait(`✓ cluster: 127\.[0-9.]+:30443, seen from this machine`)
	p.types("9")
	p.wait(w.on(9))
	p.types("g")
	p.wait(`✓ cluster: GET /api is 200, and it is\s+system:serviceaccount:default:default`)
	p.types("/what it may inside\r")
	p.wait(`(?s)1 of 9.*through the endpoint it may do what it may inside +✓ ok`)
	p.types("\r")
	p.wait(throughTheEndpoint)
	p.types("\x1b")
	p.wait(`(?s)` + w.on(9) + `.*1 of 9`)
	if now := filesUnder(t, edge); !strings.Contains(now["/root/.interlink/config/SlurmConfig.yaml"], "\nExportPodData: true\n") {
		t.Error("the plugin's configuration is as it was")
	}
	w.undo(p)
	p.types("6")
	p.wait(`the virtual kubelet runs with that configuration +✓ ok`) // with what stood there
	if d := cmp.Diff(files, filesUnder(t, edge)); d != "" {
		t.Errorf("the edge node is not as it was (-before +after):\n%s", d)
	}
	if d := cmp.Diff(before, objects()); d != "" {
		t.Errorf("the cluster is not as it was (-before +after):\n%s", d)
	}
	p.quits()
}
