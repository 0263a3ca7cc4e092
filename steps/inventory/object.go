package inventory

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clean"
)

// Describe returns the kind, namespace and name of an object as users see them, such as "Role renku-sessions/renku".
func Describe(obj *unstructured.Unstructured) string {
	if ns := obj.GetNamespace(); ns != "" {
		return obj.GetKind() + " " + ns + "/" + clean.Name(obj.GetName())
	}
	return obj.GetKind() + " " + clean.Name(obj.GetName())
}

// IsSecret reports whether an object is a core/v1 Secret.
func IsSecret(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Secret" && o.GroupVersionKind().Group == ""
}

// MetadataOf returns the metadata of an object, with its kind.
func MetadataOf(o *unstructured.Unstructured) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(), ResourceVersion: o.GetResourceVersion(),
		ManagedFields: o.GetManagedFields(),
	}}
}

// FieldPaths returns the sorted paths of all values.
func FieldPaths(at string, values map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := strings.TrimPrefix(at+"."+clean.Text(key), ".")
		if inner, ok := values[key].(map[string]any); ok && len(inner) > 0 {
			out = append(out, FieldPaths(path, inner)...)
		} else {
			out = append(out, path)
		}
	}
	return out
}
