package action

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sameContent reports whether two states of an object differ only in carrick's labels and annotations and in fields
// that the server sets. If two managers apply `nodeSelector: {}`, the API server reports a conflict although it stores
// no such field. Forcing the apply is then harmless.
func sameContent(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(bare(a), bare(b))
}

func bare(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	delete(o.Object, "status")
	for _, f := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	for _, f := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedMap(o.Object, "metadata", f)
		for k := range values {
			if strings.HasPrefix(k, "carrick/") {
				delete(values, k)
			}
		}
		unstructured.RemoveNestedField(o.Object, "metadata", f)
		if len(values) > 0 {
			_ = unstructured.SetNestedMap(o.Object, values, "metadata", f)
		}
	}
	return o.Object
}
