// Package merge merges objects as server-side apply does, for fake API servers in tests. client-go provides the schemas
// of all built-in kinds.
package merge

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// Merger merges objects as server-side apply does, with the code of k8s.io/apimachinery. It merges built-in kinds by
// their schemas. It treats all other kinds as custom resources without list types. It sets no defaults and validates
// nothing.
type Merger struct {
	mu       sync.Mutex
	builtIn  managedfields.TypeConverter
	managers map[schema.GroupVersionKind]*managedfields.FieldManager
}

// builtInTypes parses the schemas of all built-in kinds once, because parsing is slow.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// New returns a Merger that is safe for concurrent use.
func New() *Merger {
	return &Merger{builtIn: builtInTypes(), managers: map[schema.GroupVersionKind]*managedfields.FieldManager{}}
}

// Apply returns the result of applying an object to the existing object live, which can be nil. If fields conflict, the
// error is an *apierrors.StatusError.
func (m *Merger) Apply(
	live, object *unstructured.Unstructured, manager string, force bool,
) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fm, err := m.manager(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = Empty(object.GroupVersionKind())
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	kept, err := fm.Apply(live.DeepCopy(), object, manager, force)
	if err != nil {
		return nil, err
	}
	return kept.(*unstructured.Unstructured), nil
}

func (m *Merger) manager(kind schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	if fm := m.managers[kind]; fm != nil {
		return fm, nil
	}
	create, types := managedfields.NewDefaultCRDFieldManager, managedfields.NewDeducedTypeConverter()
	if scheme.Scheme.Recognizes(kind) {
		create, types = managedfields.NewDefaultFieldManager, m.builtIn
	}
	fm, err := create(types, sameVersion{}, noDefaults{}, emptyObjects{}, kind, kind.GroupVersion(), "", nil)
	m.managers[kind] = fm
	return fm, err
}

// sameVersion is a converter that does nothing, because the fake API servers serve each kind in one version.
type sameVersion struct{}

func (sameVersion) Convert(_, _, _ any) error {
	return errors.New("a state can contain each object in one version only")
}

func (sameVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (sameVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

type emptyObjects struct{}

func (emptyObjects) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return Empty(kind), nil
}

// Empty returns an object with only its apiVersion and kind.
func Empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	return o
}
