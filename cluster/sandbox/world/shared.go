package world

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharedKind is a pseudo-kind that no API server serves. Its object names a folder of objects that several scenarios
// share.
const sharedKind = "Shared"

// withShared replaces each pseudo-object of the kind sharedKind by the objects in the folder that it names.
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
			return nil, fmt.Errorf("there is nothing shared of the name %s", o.GetName())
		}
		all = append(all, found...)
	}
	return all, nil
}
