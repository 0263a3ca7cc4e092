package interlink_test

import (
	"path/filepath"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// charts contains the chart's objects that the assets edit and restart, reduced to the required fields.
const charts = `
apiVersion: v1
kind: Namespace
metadata: {name: interlink}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: virtual-node-node, namespace: interlink}
spec:
  replicas: 0
  selector: {matchLabels: {app: virtual-node}}
  template:
    metadata: {labels: {app: virtual-node}}
    spec: {containers: [{name: vk, image: registry.example.org/vk}]}
`

func TestConformance(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	folder := stepstest.Upstream(
		t, "../../..", "cert-manager", "the assets of cert-manager's own kinds, and with them all others",
	)
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%s holds %d definitions, %v", folder, len(files), err)
	}
	stepstest.Define(t, box, steps.Local, files...)
	box.Run(t, clustertest.Local, charts, "apply", "-f", "-")
	box.Cleanup(t, clustertest.Local, "delete", "namespace", "interlink")
	stepstest.Conformance(t, box, interlink.Guide(), assets, "testdata", example)
}
