package cluster

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/diff"
	"carrick/cluster/masked"
)

// record is one object in the store of a read. It is immutable.
type record struct {
	object *unstructured.Unstructured
	kept   map[string]masked.Value // values of the requested keys of a Secret
	sizes  map[string]int          // size of the value of every key of a Secret
}

// same reports whether both records have the same object in the same version, and the same number of kept values. A
// record without a resource version never equals another one.
func (r record) same(other record) bool {
	return r.object.GetUID() == other.object.GetUID() &&
		r.object.GetResourceVersion() == other.object.GetResourceVersion() &&
		r.object.GetResourceVersion() != "" &&
		len(r.kept) == len(other.kept)
}

// take creates a record from an object of the response. The caller must not use the object afterwards. The record of a
// Secret has only the values of the wanted keys.
func (r *read) take(object *unstructured.Unstructured) record {
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	rec := record{object: object}
	if r.key.gvr.Group == "" && r.key.gvr.Resource == "secrets" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.begun = true
		rec.hide(r.wanted)
	}
	return rec
}

// hide replaces the values of a Secret with their hashes, and keeps the values of the wanted keys.
func (r *record) hide(wanted map[string]bool) {
	r.kept, r.sizes = map[string]masked.Value{}, map[string]int{}
	if data, ok := r.object.Object["data"].(map[string]any); ok {
		for key, value := range data {
			text, _ := value.(string)
			raw, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				raw = []byte(text)
			}
			if wanted[key] || wanted[EveryKey] {
				r.kept[key] = masked.New(string(raw))
			}
			r.sizes[key] = len(raw)
			data[key] = fmt.Sprintf("%s (%d bytes)", masked.Hash(string(raw)), len(raw))
		}
	} else {
		delete(r.object.Object, "data")
	}
	delete(r.object.Object, "stringData")
	annotations := r.object.GetAnnotations()
	for _, repeats := range diff.AppliedAnnotations { // these annotations repeat the data
		if _, ok := annotations[repeats]; ok {
			annotations[repeats] = masked.Hidden
			r.object.SetAnnotations(annotations)
		}
	}
}
