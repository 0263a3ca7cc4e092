package world

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharedKind is the kind of what is no object either: the name of a folder of
// objects that several scenarios have.
const sharedKind = "Shared"

// withShared returns objects with those of the folders that they name in the place
// of the names.
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
