package cluster

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/diff"
	"carrick/cluster/masked"
)

// record is one object as the store keeps it. It is never changed.
type record struct {
	object *unstructured.Unstructured
	kept   map[string]masked.Value // values of a Secret that somebody asked for
	sizes  map[string]int          // every key of a Secret
}

// same reports whether nothing tells two records apart.
func (r record) same(other record) bool {
	return r.object.GetUID() == other.object.GetUID() &&
		r.object.GetResourceVersion() == other.object.GetResourceVersion() &&
		r.object.GetResourceVersion() != "" &&
		len(r.kept) == len(other.kept)
}

// take makes a record of an object that just arrived; the caller gives it away.
// Of a Secret it keeps no value but the wanted ones.
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

// hide replaces the values of a Secret by their hashes.
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
	for _, repeats := range diff.AppliedAnnotations { // the data, too
		if _, ok := annotations[repeats]; ok {
			annotations[repeats] = masked.Hidden
			r.object.SetAnnotations(annotations)
		}
	}
}
