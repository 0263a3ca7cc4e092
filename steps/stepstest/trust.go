package stepstest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clustertest/cases"
	"carrick/steps"
)

// tenantSpace is the only namespace in which a tenant can write. Its name sorts before most other namespaces.
const tenantSpace = "a-tenant"

// forgeable maps kinds that a tenant can write to their names in kubectl.
var forgeable = map[string]string{
	"ConfigMap": "configmap", "Secret": "secret", "ServiceAccount": "serviceaccount", "Role": "role",
	"RoleBinding": "rolebinding",
	"Service":     "service", "NetworkPolicy": "networkpolicy", "PersistentVolumeClaim": "persistentvolumeclaim",
	"Deployment": "deployment", "DaemonSet": "daemonset",
}

// entered is an object in the link's inventory.
type entered struct {
	APIVersion, Kind, Namespace, Name string
	Created                           bool
	action                            string
}

// Trust verifies that undo uses only the inventory. A tenant copies what the link created into their own namespace,
// with ownership labels, field managers and values to restore. Another user changes objects of the link. On objects
// that the link only changed, this user sets annotations that name the link as the creator and contain other old
// values. From objects that the link created, this user removes the labels. Undo must keep the copies and restore
// everything else. Before and after the apply, the tenant's namespace contains decoys (see decoys).
func (x Proof) Trust(t *testing.T) {
	t.Parallel()
	cases.LeftOut(t, "trust", x.Guide.Name)
	s := x.stage(t)
	for _, side := range clusters(x.Guide) {
		s.box.Run(t, string(side), "", "create", "namespace", tenantSpace)
		s.box.Cleanup(t, string(side), "delete", "namespace", tenantSpace, "--wait=false")
	}
	s.deceived(t, "site")
	before := s.snapshot(t)
	s.finish(t, "apply")
	s.holds(t)
	for key, text := range s.snapshot(t) {
		if text != before[key] && forged(text) {
			t.Errorf("apply copied a value from a tenant's object: %s: %s", key, text)
		}
	}
	tried := 0
	planted, changed := s.deceived(t, "set-up"), map[steps.Side][]entered{}
	for _, side := range clusters(x.Guide) {
		for _, e := range s.inventory(t, side) {
			if s.plants(t, side, e) {
				planted[string(side)+" "+e.Kind+" "+e.Name] = s.shown(t, side, e.Kind, tenantSpace, e.Name)
			}
			if e.Created && forgeable[e.Kind] != "" {
				s.strips(t, side, e)
			}
			if !e.Created {
				s.forges(t, side, e)
				changed[side] = append(changed[side], e)
			}
		}
	}
	s.finish(t, "undo")
	for key, was := range planted {
		side, rest, _ := strings.Cut(key, " ")
		kind, name, _ := strings.Cut(rest, " ")
		now := s.shown(t, steps.Side(side), kind, tenantSpace, name)
		if now != was {
			t.Errorf("undo changed a tenant's object, %s: %s", key, cmp.Diff(was, now))
		}
		cases.Note(t, "trust", t.Name()+"/planted "+key, now == was)
		s.box.Run(t, side, "", "-n", tenantSpace, "delete", forgeable[kind], name, "--ignore-not-found")
		maps.DeleteFunc(before, func(key, _ string) bool { // the copy replaced a decoy
			return strings.HasPrefix(key, side+" "+forgeable[kind]+"s") && strings.HasSuffix(key, " "+tenantSpace+"/"+name)
		})
		tried++
	}
	for side, list := range changed {
		for _, e := range list {
			s.box.Run(
				t, string(side), "",
				append(at(e), "annotate", strings.ToLower(e.Kind), e.Name, "carrick/before-", "carrick/created-by-")...,
			)
		}
	}
	d := cmp.Diff(before, s.snapshot(t))
	if d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
	for side, list := range changed {
		for _, e := range list {
			cases.Note(t, "trust", t.Name()+"/forged "+string(side)+" "+e.Kind+" "+e.Namespace+"/"+e.Name, d == "")
			tried++
		}
	}
	if tried == 0 {
		t.Error("nothing was planted or forged, so the test proves nothing")
	}
}

func (s *stage) inventory(t *testing.T, side steps.Side) []entered {
	t.Helper()
	text := s.box.Run(t, string(side), "", "get", "clusterrole", "carrick:"+proofLink, "-o", "json", "--ignore-not-found")
	if text == "" {
		return nil // the guide writes nothing on this side
	}
	var role unstructured.Unstructured
	if err := json.Unmarshal([]byte(text), &role.Object); err != nil {
		t.Fatal(err)
	}
	var out []entered
	for key, text := range role.GetAnnotations() {
		action, ok := strings.CutPrefix(key, "carrick/inventory.")
		if !ok {
			continue
		}
		var list []entered
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			e.action = action
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		t.Fatalf("the inventory on the %s side is empty", side)
	}
	// ServiceAccounts come first, because the token controller deletes a token Secret without its account.
	slices.SortFunc(out, func(a, b entered) int {
		switch account := "ServiceAccount"; {
		case a.Kind == account && b.Kind != account:
			return -1
		case b.Kind == account && a.Kind != account:
			return 1
		}
		return strings.Compare(a.Kind+a.Namespace+a.Name, b.Kind+b.Namespace+b.Name)
	})
	return out
}

// plants copies an object into the tenant's namespace with its ownership label and field manager. It reports whether a
// tenant can write such an object.
func (s *stage) plants(t *testing.T, side steps.Side, e entered) bool {
	t.Helper()
	if forgeable[e.Kind] == "" || e.Namespace == "" {
		return false
	}
	var o unstructured.Unstructured
	if err := json.Unmarshal(
		[]byte(s.box.Run(t, string(side), "", "-n", e.Namespace, "get", forgeable[e.Kind], e.Name, "-o", "json")), &o.Object,
	); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences", "finalizers", "generation",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	for _, field := range []string{"status", "spec.clusterIP", "spec.clusterIPs", "spec.ports", "spec.volumeName"} {
		unstructured.RemoveNestedField(o.Object, strings.Split(field, ".")...)
	}
	if e.Kind == "Service" {
		_ = unstructured.SetNestedSlice(
			o.Object, []any{map[string]any{"port": int64(80), "name": "planted"}}, "spec", "ports",
		)
	}
	// The copy gets no existing StorageClass. If it had a volume of the link, undo would not delete the provisioner.
	if e.Kind == "PersistentVolumeClaim" {
		_ = unstructured.SetNestedField(o.Object, "planted", "spec", "storageClassName")
	}
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	token := o.Object["type"] == string(corev1.SecretTypeServiceAccountToken)
	if token {
		delete(notes, corev1.ServiceAccountUIDKey) // the token controller sets the UID and the data
		delete(o.Object, "data")
	}
	notes["carrick/created-by"], notes["carrick/before"] = proofLink, `{"metadata":{"labels":{"planted":"changed"}}}`
	o.SetAnnotations(notes)
	o.SetNamespace(tenantSpace)
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s.box.Run(
		t, string(side), string(text), "apply", "--server-side", "--force-conflicts",
		"--field-manager=carrick."+proofLink+"."+e.action, "-f", "-",
	)
	if token {
		s.box.Run(
			t, string(side), "", "-n", tenantSpace, "wait", "secret", e.Name, "--for=jsonpath={.data.token}", "--timeout=1m",
		)
	}
	return true
}

// forges sets annotations on an object that the link only changed. They name the link as the creator of the object and
// contain forged values to restore.
func (s *stage) forges(t *testing.T, side steps.Side, e entered) {
	t.Helper()
	s.box.Run(t, string(side), "", append(at(e), "annotate", "--overwrite", strings.ToLower(e.Kind), e.Name,
		"carrick/created-by="+proofLink, `carrick/before={"metadata":{"labels":{"forged":"yes"}}}`)...)
}

// strips removes an object's ownership labels and field managers.
func (s *stage) strips(t *testing.T, side steps.Side, e entered) {
	t.Helper()
	patch := `{"metadata":{"managedFields":[{}],"labels":{"carrick/link.` + proofLink + `":null}}}`
	s.box.Run(t, string(side), "", append(at(e), "patch", forgeable[e.Kind], e.Name, "--type=merge", "-p", patch)...)
}

func at(e entered) []string {
	if e.Namespace == "" {
		return nil
	}
	return []string{"-n", e.Namespace}
}

// shown returns an object without the fields that servers set. If the object does not exist, it returns "".
func (s *stage) shown(t *testing.T, side steps.Side, kind, namespace, name string) string {
	t.Helper()
	text := s.box.Run(
		t, string(side), "", "-n", namespace, "get", forgeable[kind], name, "-o", "json", "--ignore-not-found",
	)
	var o unstructured.Unstructured
	if text == "" || json.Unmarshal([]byte(text), &o.Object) != nil {
		return ""
	}
	return plain(&o)
}
