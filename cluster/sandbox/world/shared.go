package world

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sharedKind is another kind that no API server serves: the name of a folder of objects that several scenarios share.
const sharedKind = "Shared"

// withShared returns objects with the names of shared folders replaced by the objects in those folders.
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
