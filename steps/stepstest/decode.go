package stepstest

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// builtIn returns the built-in kinds of Kubernetes that assets can contain.
func builtIn() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme,
		corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	)
	return scheme, builder.AddToScheme(scheme)
}

// decodeStrictly decodes an object of a built-in kind into its type. An unknown field is an error. Custom resources are
// accepted unchecked.
func decodeStrictly(obj *unstructured.Unstructured) error {
	scheme, err := builtIn()
	if err != nil {
		return err
	}
	gvk := obj.GroupVersionKind()
	if !scheme.Recognizes(gvk) {
		if strings.Contains(gvk.Group, ".") && !strings.HasSuffix(gvk.Group, ".k8s.io") {
			return nil
		}
		return fmt.Errorf("this test does not support the kind %s", gvk)
	}
	text, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	codec := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
	if _, _, err := codec.Decode(text, nil, nil); err != nil {
		return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}
