package profiles

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keep reconciles a Profile's objects (Reconcile). As in upstream, it does so even for a Profile that is being deleted,
// before it handles the finalizer. A Profile that no longer owns its namespace therefore cannot be deleted.
func (p *Player) keep(ctx context.Context, one *profile, labels map[string]string) error {
	ours, err := p.namespace(ctx, one, labels)
	if err != nil || !ours {
		return err
	}
	if err := errors.Join(p.accounts(ctx, one), p.quota(ctx, one)); err != nil {
		return err
	}
	if one.DeletionTimestamp != nil {
		return p.finalize(
			ctx, one, slices.DeleteFunc(slices.Clone(one.Finalizers), func(f string) bool { return f == finalizer }),
		)
	}
	if slices.Contains(one.Finalizers, finalizer) {
		return nil
	}
	return p.finalize(ctx, one, append(slices.Clone(one.Finalizers), finalizer))
}

func (p *Player) finalize(ctx context.Context, one *profile, now []string) error {
	if slices.Equal(now, one.Finalizers) {
		return nil
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"finalizers": now, "resourceVersion": one.ResourceVersion}},
	)
	if err != nil {
		return err
	}
	_, err = p.dynamic.Resource(kind).Patch(
		ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager},
	)
	return err
}

// namespace reconciles a Profile's namespace (Reconcile). It reports whether the namespace belongs to the Profile and
// is not being deleted.
func (p *Player) namespace(ctx context.Context, one *profile, labels map[string]string) (bool, error) {
	spaces := p.client.CoreV1().Namespaces()
	found, err := spaces.Get(ctx, one.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: one.Name, Labels: Labelled(map[string]string{"istio-injection": "enabled"}, labels),
			Annotations: map[string]string{ownerKey: one.Spec.Owner.Name}, OwnerReferences: one.owns(),
		}}
		p.said.Say("info", "Creating Namespace: %s", one.Name)
		_, err := spaces.Create(ctx, made, metav1.CreateOptions{FieldManager: manager})
		return err == nil, err
	}
	if err != nil || found.DeletionTimestamp != nil {
		return false, err
	}
	if owner, ok := found.Annotations[ownerKey]; !ok || owner != one.Spec.Owner.Name {
		// Upstream appends a Failed condition (appendErrorConditionAndReturn), but updates the object instead of its status
		// subresource. The API server drops the condition, so only the log shows the failure.
		p.said.Once(
			"info", "namespace already exist, but not owned by profile creator %s {\"profile\": %q}", one.Spec.Owner.Name,
			one.Name,
		)
		return false, nil
	}
	now := Labelled(found.Labels, labels)
	if maps.Equal(now, found.Labels) {
		return true, nil
	}
	found.Labels = now
	_, err = spaces.Update(ctx, found, metav1.UpdateOptions{FieldManager: manager})
	return err == nil, err
}

// Labelled merges the default labels from the file into a namespace's labels. Existing labels keep their values. An
// empty value in the file removes the label (setNamespaceLabels).
func Labelled(has, file map[string]string) map[string]string {
	now := maps.Clone(has)
	if now == nil {
		now = map[string]string{}
	}
	for key, value := range file {
		_, there := now[key]
		switch {
		case value == "":
			delete(now, key)
		case !there:
			now[key] = value
		}
	}
	return now
}

// owns returns owner references to the Profile.
func (one *profile) owns() []metav1.OwnerReference {
	is := true
	return []metav1.OwnerReference{{
		APIVersion: kind.GroupVersion().String(), Kind: "Profile", Name: one.Name, UID: one.UID, Controller: &is,
		BlockOwnerDeletion: &is,
	}}
}

// accounts reconciles a Profile's ServiceAccounts and RoleBindings (updateServiceAccount, updateRoleBinding).
func (p *Player) accounts(ctx context.Context, one *profile) error {
	var faults []error
	for name, role := range map[string]string{"default-editor": "kubeflow-edit", "default-viewer": "kubeflow-view"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: one.owns()}}
		_, err := p.client.CoreV1().ServiceAccounts(one.Name).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = p.client.CoreV1().ServiceAccounts(one.Name).Create(
				ctx, account, metav1.CreateOptions{FieldManager: manager},
			)
		}
		faults = append(
			faults, err,
			p.bind(ctx, one, name, role, nil, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: one.Name}),
		)
	}
	marks := map[string]string{"user": one.Spec.Owner.Name, "role": "admin"}
	return errors.Join(append(faults, p.bind(ctx, one, "namespaceAdmin", "kubeflow-admin", marks, one.Spec.Owner))...)
}

func (p *Player) bind(
	ctx context.Context, one *profile, name, role string, marks map[string]string, subject rbacv1.Subject,
) error {
	bindings := p.client.RbacV1().RoleBindings(one.Name)
	if subject.Kind != rbacv1.ServiceAccountKind && subject.APIGroup == "" {
		subject.APIGroup = rbacv1.GroupName
	}
	want := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: marks, OwnerReferences: one.owns()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
	found, err := bindings.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = bindings.Create(ctx, want, metav1.CreateOptions{FieldManager: manager})
	case err == nil && !reflect.DeepEqual(found.Subjects, want.Subjects):
		found.Subjects = want.Subjects
		_, err = bindings.Update(ctx, found, metav1.UpdateOptions{FieldManager: manager})
	}
	return err
}

// quota reconciles a Profile's ResourceQuota if the Profile specifies one (updateResourceQuota).
func (p *Player) quota(ctx context.Context, one *profile) error {
	const name = "kf-resource-quota"
	quotas := p.client.CoreV1().ResourceQuotas(one.Name)
	found, err := quotas.Get(ctx, name, metav1.GetOptions{})
	there := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	switch wanted := len(one.Spec.Quota.Hard) > 0; {
	case wanted && !there:
		made := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: one.owns()}, Spec: one.Spec.Quota,
		}
		_, err = quotas.Create(ctx, made, metav1.CreateOptions{FieldManager: manager})
	case wanted && !reflect.DeepEqual(found.Spec, one.Spec.Quota):
		found.Spec = one.Spec.Quota
		_, err = quotas.Update(ctx, found, metav1.UpdateOptions{FieldManager: manager})
	case there && !wanted:
		err = quotas.Delete(ctx, name, metav1.DeleteOptions{})
	default:
		err = nil
	}
	return err
}
