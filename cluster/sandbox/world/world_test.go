package world

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEveryFileIsASidesAndHasObjects(t *testing.T) {
	seen := 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(name) == about {
			return err
		}
		seen++
		if side := path.Base(path.Dir(name)); !slices.Contains([]string{"both", "local", "remote"}, side) {
			t.Errorf("%s belongs to no side", name)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		objects, err := Parse(data)
		if err != nil || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v", name, len(objects), err)
		}
		for _, object := range objects {
			if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
				t.Errorf("%s: an object without kind, version or name", name)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("%d files, %v", seen, err)
	}
	if !slices.Contains(Scenarios(), "renku") {
		t.Errorf("scenarios: %v", Scenarios())
	}
}

// played lists the faults that have a description here but no objects, because an act causes them.
var played = []string{"page-frames", "verbose-token"}

func TestEveryFaultSaysWhatItIsAndIsNotNothing(t *testing.T) {
	seen := 0
	for _, scenario := range Scenarios() {
		faults, err := Faults(scenario)
		if err != nil {
			t.Fatal(err)
		}
		for name, sentence := range faults {
			seen++
			if len(sentence) < 20 || sentence[len(sentence)-1] != '.' {
				t.Errorf("%s: %q", name, sentence)
			}
			local, err1 := read(path.Join("scenarios", scenario, "faults", name, "local"), anything())
			remote, err2 := read(path.Join("scenarios", scenario, "faults", name, "remote"), anything())
			both, err3 := read(path.Join("scenarios", scenario, "faults", name, "both"), anything())
			local = append(local, both...)
			if err := errors.Join(err1, err2, err3); err != nil || (len(local)+len(remote) == 0 &&
				!slices.Contains(played, name)) {
				t.Errorf("%s: %d objects, %v", name, len(local)+len(remote), err)
			}
		}
	}
	if seen == 0 {
		t.Error("no fault at all")
	}
}

// anything returns a value for every name that the scenarios' YAML uses.
func anything() Values {
	all := Values{}
	for _, name := range []string{
		"renku.domain", "renku.ca", "session.host",
		"cluster.id", "cidr.pod", "cidr.service", "liqo.version", "networking.enabled", "replicator.replicas",
		"ipam.replicas",
		"webhook.crt", "webhook.key", "liqo.webhook.ca", "liqo.webhook.crt", "liqo.webhook.key",
		"liqo.webhook.expiring.crt", "liqo.webhook.expiring.key", "liqo.authentication.private", "liqo.authentication.public",
		"page.peer", "page.space", "page.private", "page.public", "page.theirs", "liqo.page.local.private",
		"liqo.page.local.public",
		"liqo.page.remote.private", "liqo.page.remote.public",
		"some.ca", "watch.cut", "endpoint.address", "endpoint.port", "endpoint.text", "api.port",
		"oidc.issuer", "oidc.audience", "server", "destination.server", "nfs.server", "nfs.path", "guest.host", "guest.port",
		"cluster.ca",
	} {
		all[name] = name
	}
	return all
}

func TestValuesAreFilledIn(t *testing.T) {
	values := Values{"port": int64(7), "host": "a: b\n- c", "ca": "x"}
	for text, want := range map[string]any{
		"${port}":            int64(7),
		"at ${host}:${port}": "at a: b\n- c:7",
		"${port}${port}":     "77",
		"plain $x {y}":       "plain $x {y}",
	} {
		fields := map[string]any{"list": []any{map[string]any{"field": text}}}
		if err := fill(fields, values); err != nil {
			t.Fatal(err)
		}
		if got := fields["list"].([]any)[0].(map[string]any)["field"]; got != want {
			t.Errorf("%s: %#v", text, got)
		}
	}
	for _, text := range []string{"${nobody}", "${port", "a ${} b"} {
		if err := fill(map[string]any{"field": text}, values); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func TestAFaultStandsForTheHealthyObject(t *testing.T) {
	object := func(kind, name, mark string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "mark": mark,
			"metadata": map[string]any{"name": name, "namespace": "x"},
		}}
	}
	got := Overlay(
		[]*unstructured.Unstructured{object("Secret", "a", "old"), object("Secret", "b", "old")},
		[]*unstructured.Unstructured{object("Secret", "a", "new"), object("ConfigMap", "a", "new")},
	)
	var marks []string
	for _, o := range got {
		marks = append(marks, o.GetKind()+o.GetName()+o.Object["mark"].(string))
	}
	if !slices.Equal(marks, []string{"Secretanew", "Secretbold", "ConfigMapanew"}) {
		t.Errorf("%v", marks)
	}
}

func TestWhatIsSharedStandsInThePlaceOfItsName(t *testing.T) {
	for _, scenario := range []string{"interlink", "vsphere"} {
		objects, err := Scenario(scenario, "local", nil, anything())
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, o := range objects {
			found[o.GetKind()+" "+o.GetName()] = true
		}
		if !found["CustomResourceDefinition issuers.cert-manager.io"] || !found["Deployment cert-manager"] ||
			found[sharedKind+" cert-manager"] {
			t.Errorf("%s: %v", scenario, found)
		}
	}
	nothing := &unstructured.Unstructured{
		Object: map[string]any{"kind": sharedKind, "metadata": map[string]any{"name": "nothing"}},
	}
	if _, err := withShared([]*unstructured.Unstructured{nothing}); err == nil {
		t.Error("what is not there is shared")
	}
}

func TestStringDataIsEncoded(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "stringData": map[string]any{"key": "value"}}}
	normal(o)
	if got, _, _ := unstructured.NestedString(o.Object, "data", "key"); got != "dmFsdWU=" ||
		o.Object["stringData"] != nil {
		t.Errorf("%v", o.Object)
	}
}

func TestValuesOfAFaultStandForTheHealthyOnes(t *testing.T) {
	given := anything()
	id := func(side string, faults ...string) string {
		objects, err := Scenario("liqo", side, faults, given)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() == settings {
				t.Errorf("%s: values are left among the objects", side)
			}
			if o.GetName() == "liqo-clusterid-configmap" {
				id, _, _ := unstructured.NestedString(o.Object, "data", "CLUSTER_ID")
				return id
			}
		}
		t.Fatalf("%s: no cluster id", side)
		return ""
	}
	if a, b, c := id("local"), id("remote"), id("remote", "same-id"); a != "milan" || b != "rome" || c != "milan" {
		t.Errorf("%s, %s, with the fault %s", a, b, c)
	}
	if given["cluster.id"] != "cluster.id" {
		t.Errorf("the values that were given are now %v", given["cluster.id"])
	}
}
