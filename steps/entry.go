package steps

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Entry is the inventory's record of one object that the link created or changed. See package inventory.
type Entry struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	UID        types.UID      `json:"uid,omitempty"`     // "" if carrick is about to create the object
	Created    bool           `json:"created,omitempty"` // this link created the object, so an undo deletes it
	Before     map[string]any `json:"before,omitempty"`  // values of another manager that this link took over
	Wrote      []string       `json:"wrote,omitempty"`   // only for an edited text: hashes of the settings that this link wrote
	Content    string         `json:"content,omitempty"` // only for a release: hash of what a link wrote into its Secret

	Adopted bool `json:"-"` // derived from labels and annotations that an earlier version of carrick wrote
}

// EntryOf returns the Entry of an object that this link did not create.
func EntryOf(gvk schema.GroupVersionKind, namespace, name string) Entry {
	return Entry{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
}

// NewEntry returns the Entry of an object that the link is about to create.
func NewEntry(obj *unstructured.Unstructured) *Entry {
	e := EntryOf(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	e.Created = true
	return &e
}

// GVK returns the group, version and kind of the object.
func (e Entry) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

// Is reports whether two entries refer to the same object. It ignores the API version.
func (e Entry) Is(o Entry) bool {
	return e.GVK().GroupKind() == o.GVK().GroupKind() && e.Namespace == o.Namespace && e.Name == o.Name
}

// Object returns an object with only the name and UID of the entry.
func (e Entry) Object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.GVK())
	o.SetNamespace(e.Namespace)
	o.SetName(e.Name)
	o.SetUID(e.UID)
	return o
}
