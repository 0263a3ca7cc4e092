package extension

import (
	"context"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// managedBy is the label of all objects that the controller creates. Made is a label selector for these objects.
const (
	managedBy = "app.kubernetes.io/managed-by"
	Made      = managedBy + "=" + manager
)

const (
	// ownerNote is the annotation with the owner of a profile's namespace. The profile controller sets it, and does not
	// change a namespace with another owner (kubeflow/dashboard:
	// components/profile-controller/controllers/profile_controller.go).
	ownerNote  = "owner"
	levelLabel = "pod-security.kubernetes.io/enforce"
	// bindingPrefix is the prefix of the RoleBinding's name, as in upstream. The namespace's name follows.
	bindingPrefix = "rb-all-sa_ns-"
	manager       = "carrick-vsphere-extension"
)

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func listOf(
	of dynamic.NamespaceableResourceInterface,
) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) }
}

// stripped removes managedFields and status from an object, to save memory in large clusters.
func stripped(v any) (any, error) {
	o, ok := v.(*unstructured.Unstructured)
	if !ok {
		return v, nil
	}
	o.SetManagedFields(nil)
	delete(o.Object, "status")
	return o, nil
}

// createMissing creates the missing objects for a namespace and the profile of the same name. If either of them is nil,
// it does nothing. Like the profile controller, it does not change a namespace whose owner differs from the profile's
// owner.
func (f *follower) createMissing(ctx context.Context, namespace, profile *unstructured.Unstructured) error {
	if namespace == nil || profile == nil || namespace.GetDeletionTimestamp() != nil ||
		profile.GetDeletionTimestamp() != nil {
		return nil
	}
	owner, _, _ := unstructured.NestedString(profile.Object, "spec", "owner", "name")
	if have := namespace.GetAnnotations()[ownerNote]; owner == "" || have != owner {
		f.log.Info(
			"skipped: the namespace does not belong to the profile's owner", "namespace", namespace.GetName(), "owner", have,
			"profile's", owner,
		)
		return nil
	}
	if err := f.bind(ctx, namespace.GetName()); err != nil {
		return fmt.Errorf("bind its ServiceAccounts to %s: %w", f.PSPRole, err)
	}
	if err := f.label(ctx, namespace); err != nil {
		return fmt.Errorf("label it with level %s: %w", f.Level, err)
	}
	return nil
}

// bind creates the RoleBinding that allows the pods of a namespace to use PSPRole. It keeps an existing binding,
// because the role of a binding cannot be changed, and another role might be intended.
func (f *follower) bind(ctx context.Context, namespace string) error {
	if f.PSPRole == "" {
		return nil
	}
	in, name := f.client.Resource(bindingKind).Namespace(namespace), bindingPrefix+namespace
	_, err := in.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	b := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{managedBy: manager}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.PSPRole},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + namespace},
		},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		return err
	}
	_, err = in.Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	f.metrics.made.WithLabelValues("RoleBinding").Inc()
	f.log.Info("bound", "namespace", namespace, "role", f.PSPRole)
	return nil
}

// label sets the pod security level of a namespace that has none. If the namespace has changed since it was read, the
// API server rejects the update, and the namespace is processed again.
func (f *follower) label(ctx context.Context, namespace *unstructured.Unstructured) error {
	if _, has := namespace.GetLabels()[levelLabel]; f.Level == "" || has {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": namespace.GetUID(), "resourceVersion": namespace.GetResourceVersion(),
		"labels": map[string]any{levelLabel: f.Level},
	}})
	if err != nil {
		return err
	}
	_, err = f.client.Resource(namespaceKind).Patch(
		ctx, namespace.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager},
	)
	if err != nil {
		return err
	}
	f.metrics.made.WithLabelValues("level").Inc()
	f.log.Info("labelled", "namespace", namespace.GetName(), "level", f.Level)
	return nil
}
