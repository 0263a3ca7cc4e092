package world

import (
	"context"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stored returns the resourceVersions of all objects of a cluster by their keys in etcd.
type Stored func(ctx context.Context) (map[string]string, error)

// shelf keeps the objects of each kind for as long as their keys in etcd show no change. With it, a reset of two
// unchanged clusters takes 0.05 s of CPU time instead of 0.45 s.
//
// A kind's folder is the part of its keys before the namespace and name. It cannot be derived from the kind: Nodes, for
// example, are in /registry/minions. The shelf learns it from the resourceVersion of an object, which only one key has.
// Kinds of which there has never been an object have no folder yet. The shelf keeps them for as long as nothing changes
// in any unknown folder.
type shelf struct {
	stored Stored
	kinds  map[schema.GroupVersionResource]kept
	// What etcd contained at the last look.
	keys   map[string]string // by resourceVersion
	states map[string]uint64 // by folder; "" stands for all unknown folders
}

// kept contains the objects of a kind at a state of its folder.
type kept struct {
	folder  string
	state   uint64
	objects inventory
}

var hashing = maphash.MakeSeed()

// restless lists the folders in which Kubernetes components write continuously. They belong to volatile resources or to
// no resource.
var restless = []string{
	"/registry/events/", "/registry/leases/", "/registry/masterleases/", "/registry/services/endpoints/",
	"/registry/ipaddresses/", "/registry/controllerrevisions/", "/registry/ranges/",
}

// look reads the keys in etcd.
func (s *shelf) look(ctx context.Context) error {
	stored, err := s.stored(ctx)
	if err != nil {
		return err
	}
	folders := map[string]bool{}
	for _, k := range s.kinds {
		folders[k.folder] = true
	}
	s.keys, s.states = map[string]string{}, map[string]uint64{}
	for key, version := range stored {
		if slices.ContainsFunc(restless, func(folder string) bool { return strings.HasPrefix(key, folder) }) {
			continue
		}
		s.keys[version] = key
		state := maphash.String(hashing, key+" "+version)
		one := path.Dir(key)   // a cluster-scoped kind's folder
		two := path.Dir(one)   // a namespaced kind's
		s.states[one] += state // a sum, because the order of the keys does not matter
		s.states[two] += state
		if !folders[one] && !folders[two] {
			s.states[""] += state
		}
	}
	return nil
}

// unchanged returns the objects of a kind if they are as they were at the last put.
func (s *shelf) unchanged(kind schema.GroupVersionResource) (inventory, bool) {
	k, ok := s.kinds[kind]
	if !ok || k.state != s.states[k.folder] {
		return nil, false
	}
	return k.objects, true
}

// put keeps the objects of a kind that were listed after the last look. items are all of them, and objects those that
// list returns.
func (s *shelf) put(kind schema.GroupVersionResource, items []unstructured.Unstructured, objects inventory) {
	if s.kinds == nil {
		s.kinds = map[schema.GroupVersionResource]kept{}
	}
	k := s.kinds[kind]
	for i := range items {
		key, own := s.keys[items[i].GetResourceVersion()], "/"+items[i].GetName()
		if namespace := items[i].GetNamespace(); namespace != "" {
			own = "/" + namespace + own
		}
		if folder, ok := strings.CutSuffix(key, own); ok {
			k.folder = folder
			break
		}
	}
	if k.folder == "" && len(items) > 0 { // created after the look, or stored elsewhere by an extension API server
		delete(s.kinds, kind)
		return
	}
	k.state, k.objects = s.states[k.folder], objects
	s.kinds[kind] = k
}
