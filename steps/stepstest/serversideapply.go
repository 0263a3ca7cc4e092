package stepstest

import (
	"errors"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mergedDryRun returns the result of a server-side apply dry run on an existing object. If it has answered the request
// with an error, the bool is false.
func (s *server) mergedDryRun(
	w http.ResponseWriter, r *http.Request, live *unstructured.Unstructured, asked map[string]any,
) (map[string]any, bool) {
	q, object := r.URL.Query(), &unstructured.Unstructured{Object: asked}
	kept, err := s.merger.Apply(live, object, q.Get("fieldManager"), q.Get("force") == "true")
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
