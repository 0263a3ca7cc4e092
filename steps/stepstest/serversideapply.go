package stepstest

import (
	"errors"
	"net/http"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// merger merges objects as server-side apply does, with upstream's own code: built-in kinds by their schemas, all others
// as custom resources without list types. It fills in no defaults and validates nothing.
type merger struct {
	mu       sync.Mutex
	builtIn  managedfields.TypeConverter
	managers map[schema.GroupVersionKind]*managedfields.FieldManager
}

// builtInTypes parses the schemas of all built-in kinds once: it takes a while.
var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

func newMerger() *merger {
	return &merger{builtIn: builtInTypes(), managers: map[schema.GroupVersionKind]*managedfields.FieldManager{}}
}

// apply returns what becomes of live, which may be nil, when a manager applies an object. A conflict is an
// *apierrors.StatusError.
func (m *merger) apply(
	live, object *unstructured.Unstructured, manager string, force bool,
) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fm, err := m.manager(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = empty(object.GroupVersionKind())
	}
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	kept, err := fm.Apply(live.DeepCopy(), object, manager, force)
	if err != nil {
		return nil, err
	}
	return kept.(*unstructured.Unstructured), nil
}

func (m *merger) manager(kind schema.GroupVersionKind) (*managedfields.FieldManager, error) {
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

// sameVersion converts nothing: each object is served in one version.
type sameVersion struct{}

func (sameVersion) Convert(_, _, _ any) error {
	return errors.New("a state serves each object in one version")
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
	return empty(kind), nil
}

func empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	return o
}

// mergedDryRun is what becomes of an object that exists in a dry run of server-side apply; false: the request is answered
// with an error.
func (s *server) mergedDryRun(
	w http.ResponseWriter, r *http.Request, live *unstructured.Unstructured, asked map[string]any,
) (map[string]any, bool) {
	q, object := r.URL.Query(), &unstructured.Unstructured{Object: asked}
	kept, err := s.merger.apply(live, object, q.Get("fieldManager"), q.Get("force") == "true")
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &status):
		reply(w, int(status.ErrStatus.Code), status.ErrStatus)
		return nil, false
	case err != nil:
		fail(w, 500, metav1.StatusReasonInternalError, err.Error())
		return nil, false
	}
	return kept.Object, true
}

// find is the object at a path; nil: there is none.
func (s *server) find(a *authorizationv1.ResourceAttributes) *unstructured.Unstructured {
	at := schema.GroupVersionResource{Group: a.Group, Version: a.Version, Resource: a.Resource}
	for _, o := range s.objects {
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if gvr == at && o.GetNamespace() == a.Namespace && o.GetName() == a.Name {
			return o
		}
	}
	return nil
}
