package liqo

import (
	"fmt"
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
)

// A dry run on a real API server reports a node port that is in use, and creates nothing. It does not report a port
// outside the range. If that ever changes, inRange can be deleted.
func TestVerifyADryRunTellsThatAPortIsTaken(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.Run(t, clustertest.Remote, "", "create", "namespace", "node-port-trial")
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", "node-port-trial", "--wait=false")
	holder := `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "holder", "namespace": "node-port-trial"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}`
	box.Run(t, clustertest.Remote, holder, "create", "-f", "-")
	var taken int
	port := box.Run(
		t, clustertest.Remote, "", "-n", "node-port-trial", "get", "service", "holder", "-o",
		"jsonpath={.spec.ports[0].nodePort}",
	)
	if _, err := fmt.Sscan(port, &taken); err != nil {
		t.Fatal(err)
	}
	c := box.Open(t, clustertest.Remote, cluster.Options{})
	free := usualPorts.first + (taken-usualPorts.first+1)%(usualPorts.last-usualPorts.first)
	for _, tc := range []struct {
		port int
		want string
	}{{taken, "already allocated"}, {free, ""}, {51840, ""}} {
		why, err := refusedPort(t.Context(), c, "node-port-trial", tc.port)
		if err != nil || (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("port %d: %q, %v", tc.port, why, err)
		}
	}
	if left := box.Run(
		t, clustertest.Remote, "", "-n", "node-port-trial", "get", "services", "-o", "name",
	); strings.TrimSpace(left) != "service/holder" {
		t.Errorf("left behind: %s", left)
	}
}
