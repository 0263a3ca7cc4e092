package steps

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// entry is one object of the inventory.
type entry struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	UID        types.UID      `json:"uid,omitempty"`     // "": carrick is about to create it
	Created    bool           `json:"created,omitempty"` // this link created it: undo deletes it
	Before     map[string]any `json:"before,omitempty"`  // another manager's values that this link took over
	Content    string         `json:"content,omitempty"` // of a release: what a link wrote into its Secret

	adopted bool // it is taken from the object's marks, because an earlier version wrote the object
}

func entryOf(gvk schema.GroupVersionKind, namespace, name string) entry {
	return entry{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
}

// newEntry is that of an object that the link is about to create.
func newEntry(obj *unstructured.Unstructured) *entry {
	e := entryOf(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	e.Created = true
	return &e
}

func (e entry) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

// is reports whether two entries are of one object, in whatever version of its API.
func (e entry) is(o entry) bool {
	return e.gvk().GroupKind() == o.gvk().GroupKind() && e.Namespace == o.Namespace && e.Name == o.Name
}

func (e entry) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.gvk())
	o.SetNamespace(e.Namespace)
	o.SetName(e.Name)
	o.SetUID(e.UID)
	return o
}
