package action

import (
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/inventory"
)

// If an object is deleted between the read and the release, the empty server-side apply does not recreate it. It does
// not change another object of the same name.
func TestReleaseMakesNothing(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const ns = "released"
	box.Run(t, clustertest.Remote, "", "create", "namespace", ns)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", ns, "--wait=false")
	env := steps.Env{Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Link: "l", Action: "a"}
	f := found{
		PartialObjectMetadata: metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: ns, UID: "5e7a2f0c-0000-4000-8000-000000000000"},
		},
		gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		gvr: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}
	for _, odd := range []map[string]string{nil, {"carrick/link.b": ""}, {"carrick/link.b": "odd_Action"}} {
		f.Labels, f.Annotations = odd, map[string]string{inventory.CreatedByAnnotation: "l"}
		if err := release(t.Context(), env, f); err != nil {
			t.Errorf("%v: %v", odd, err)
		}
		if got := box.Run(
			t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o", "name", "--ignore-not-found",
		); got != "" {
			t.Fatalf("%v: %s was made", odd, got)
		}
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "configmap", "c", "--from-literal=a=b")
	f.Labels, f.entry = nil, &steps.Entry{UID: f.UID, Before: map[string]any{"data": map[string]any{"a": "old"}}}
	_ = release(t.Context(), env, f)
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o", "jsonpath={.data.a}{.metadata.annotations}",
	); got != "b" {
		t.Errorf("another object of the name became %s", got)
	}
}

// A tenant who can write a Role can mark it and store old rules in an annotation. Undo has the admin's permissions, but
// does not restore these rules, and does not change the Role unless the user names it.
func TestUndoPutsNoPermissionsBack(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const ns = "tenant"
	box.Run(t, clustertest.Remote, "", "create", "namespace", ns)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", ns, "--wait=false")
	box.Run(t, clustertest.Remote, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: own
  namespace: tenant
  labels: {carrick/link.l: a}
  annotations: {carrick/before: '{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}],"metadata":{"labels":{"team":"old"}}}'}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`, "apply", "--server-side", "--field-manager=carrick.l.a", "-f", "-")
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "patch", "role", "own", "--type=merge", "--field-manager=tenant", "-p",
		`{"metadata":{"labels":{"team":"new"}}}`,
	)
	show := func() string {
		return box.Run(
			t, clustertest.Remote, "", "-n", ns, "get", "role", "own", "-o", "jsonpath={.rules} {.metadata.labels}",
		)
	}
	before := show()
	asset := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: elsewhere}\nrules: []\n"
	env := steps.Env{
		Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Link: "l", Action: "a",
		Assets: fstest.MapFS{"a.yaml": {Data: []byte(asset)}},
	}
	m := Manifest{File: "a.yaml"}
	p, err := m.PlanUndo(t.Context(), env)
	if err != nil || len(p.Items) != 1 || p.Items[0].Verb != steps.Leave ||
		!strings.Contains(p.Items[0].Note, "--found 'Role tenant/own'") {
		t.Fatalf("%+v, %v", p.Items, err)
	}
	if err := m.Undo(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	if after := show(); after != before {
		t.Errorf("undo made %s of %s", after, before)
	}
	env.Runtime.Found = []string{"Role tenant/own"}
	if err := m.Undo(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	if got := show(); strings.Contains(got, "*") || strings.Contains(got, "old") {
		t.Errorf("undo gave the Role %s", got)
	}
}

// If a user is not allowed to list all namespaces, undo says that it searched only some of them.
func TestUndoSaysWhereItDidNotLook(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const ns = "looked-in"
	box.Run(t, clustertest.Remote, "", "create", "namespace", ns)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", ns, "--wait=false")
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "rolebinding", "narrow", "--clusterrole=admin", "--user=narrow")
	box.Run(
		t, clustertest.Remote, "", "create", "clusterrole", "narrow", "--verb=get,create,patch", "--resource=clusterroles",
	)
	box.Run(t, clustertest.Remote, "", "create", "clusterrolebinding", "narrow", "--clusterrole=narrow", "--user=narrow")
	box.Cleanup(
		t, clustertest.Remote, "delete", "clusterrole/narrow", "clusterrolebinding/narrow", "clusterrole/carrick:narrow",
	)
	c, err := cluster.Open(
		kubeconfig.Access{
			Kubeconfig: box.Kubeconfigs[clustertest.Remote], Context: box.Contexts[clustertest.Remote], As: "narrow",
		},
		cluster.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	asset := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: " + ns + "}\n"
	env := steps.Env{Cluster: c, Link: "narrow", Action: "a", Assets: fstest.MapFS{"a.yaml": {Data: []byte(asset)}}}
	m := Manifest{File: "a.yaml"}
	if err := m.Do(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	p, err := m.PlanUndo(t.Context(), env)
	if err != nil || len(p.Items) != 2 || p.Items[0].Verb != steps.Leave || p.Items[1].Verb != steps.Delete {
		t.Fatalf("%+v, %v", p.Items, err)
	}
	if err := m.Undo(t.Context(), env, nil); err != nil {
		t.Error(err)
	}
}
