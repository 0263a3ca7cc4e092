package world

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharedKind is a kind that exists only in this package's YAML. It refers to a directory of objects that several
// scenarios share.
const sharedKind = "Shared"

// withShared replaces objects of the kind sharedKind with the objects in their directories.
func withShared(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() != sharedKind {
			all = append(all, o)
			continue
		}
		found, err := parsed(path.Join("shared", o.GetName(), "both"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("shared manifests with the name %s do not exist", o.GetName())
		}
		all = append(all, found...)
	}
	return all, nil
}
