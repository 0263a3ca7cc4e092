package liqo_test

import (
	"strings"
	"testing"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

const (
	sliceUID = "11111111-0000-0000-0000-0000000000a1"
	nodeUID  = "11111111-0000-0000-0000-0000000000a2"
)

// inventoryAnd returns a state in which the link has created the consumer's ResourceSlice. entries are additional
// entries of the link's inventory.
func inventoryAnd(entries string) string {
	return `-- answers --
network.enabled: false
-- local --
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "carrick:test"
  uid: 11111111-0000-0000-0000-00000000000f
  annotations:
    carrick/inventory.credential-key: null
    carrick/inventory.control-plane: null
    carrick/inventory.resource-slice: >-
      [{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","namespace":"liqo-tenant-rome",
      "name":"rome","uid":"` + sliceUID + `","created":true}]
` + entries + `---
apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata: {name: rome, namespace: liqo-tenant-rome, uid: ` + sliceUID + `}
` + defined("authentication.liqo.io", "ResourceSlice") + defined("offloading.liqo.io", "VirtualNode")
}

// defined returns the CustomResourceDefinition of a kind, for the discovery of a fake API server.
func defined(group, kind string) string {
	plural := strings.ToLower(kind) + "s"
	return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: " + plural + "." + group + "}\n" +
		"spec: {group: " + group + ", scope: Namespaced, names: {kind: " + kind + ", plural: " + plural + "}}\n"
}

// planned returns the items of an undo plan, one per line, in the format "VERB WHAT: NOTE".
func planned(t *testing.T, s *engine.Session, o engine.Scope) string {
	t.Helper()
	p, err := s.PlanUndo(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			out = append(out, string(it.Verb)+" "+it.What+": "+it.Note)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// Earlier versions set disableNetworkCheck on the VirtualNode. Undo does not unset the field, and still deletes the
// link's inventory.
func TestWhatAnEarlierVersionSetOnTheVirtualNodeGoesWithIt(t *testing.T) {
	s := stepstest.StandWith(t, liqo.Guide(), assets, "testdata", "healthy", inventoryAnd(
		`    carrick/inventory.without-tunnel: >-
      [{"apiVersion":"offloading.liqo.io/v1beta1","kind":"VirtualNode","namespace":"liqo-tenant-rome",
      "name":"rome","uid":"`+nodeUID+`"}]
`)+`---
apiVersion: offloading.liqo.io/v1beta1
kind: VirtualNode
metadata:
  name: rome
  namespace: liqo-tenant-rome
  uid: `+nodeUID+`
  labels: {carrick/link.test: without-tunnel}
  managedFields:
  - manager: carrick.test.without-tunnel
    operation: Apply
    apiVersion: offloading.liqo.io/v1beta1
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:disableNetworkCheck": {}}}
spec: {disableNetworkCheck: true}
`)
	got := planned(t, s, engine.Scope{Side: steps.Local})
	goes := strings.Contains(got, "delete ResourceSlice") && strings.Contains(got, "delete ClusterRole carrick:test")
	if strings.Contains(got, "VirtualNode") || !goes {
		t.Errorf("the plan of undo:\n%s", got)
	}
}

// An undo deleted the Configuration but stopped while a finalizer of Liqo blocked the deletion of a Network. The plan
// of the next undo still shows the Network.
func TestWhatLiqoHoldsIsInThePlanOfTheNextUndo(t *testing.T) {
	s := stepstest.StandWith(t, liqo.Guide(), assets, "testdata", "healthy", `-- local --
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "carrick:test"
  uid: 11111111-0000-0000-0000-00000000000f
  annotations:
    carrick/inventory.consumer-namespace: >-
      [{"apiVersion":"v1","kind":"Namespace","name":"liqo-tenant-rome",
      "uid":"11111111-0000-0000-0000-0000000000a4","created":true}]
---
apiVersion: v1
kind: Namespace
metadata: {name: liqo-tenant-rome, uid: 11111111-0000-0000-0000-0000000000a4}
---
apiVersion: ipam.liqo.io/v1alpha1
kind: Network
metadata:
  name: rome-pod-0
  namespace: liqo-tenant-rome
  uid: 11111111-0000-0000-0000-0000000000a3
  deletionTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [network.ipam.liqo.io/finalizer]
spec: {cidr: 10.0.0.0/16}
---
apiVersion: ipam.liqo.io/v1alpha1
kind: Network
metadata:
  name: of-another-peering
  namespace: liqo-tenant-paris
  uid: 11111111-0000-0000-0000-0000000000a5
  deletionTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [network.ipam.liqo.io/finalizer]
spec: {cidr: 10.1.0.0/16}
`+defined("ipam.liqo.io", "Network"))
	got := planned(t, s, engine.Scope{Steps: []string{"network"}, Side: steps.Local})
	held := "delete Network liqo-tenant-rome/rome-pod-0: already being deleted, blocked by finalizers " +
		"network.ipam.liqo.io/finalizer"
	if !strings.Contains(got, held) || strings.Contains(got, "another") {
		t.Errorf("the plan of undo:\n%s", got)
	}
}
