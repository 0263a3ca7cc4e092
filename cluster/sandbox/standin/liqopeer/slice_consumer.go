package liqopeer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin"
)

// Types and statuses of a ResourceSlice's conditions.
const (
	authenticationCondition = "Authentication"
	resourcesCondition      = "Resources"
	accepted                = "Accepted"
	denied                  = "Denied"
)

// ours reports whether this cluster is a slice's consumer, according to the slice's labels.
func (l *look) ours(s *slice) bool {
	return s.Labels[replication] == yes && s.Labels[destination] != "" && l.remoteOf(s.Namespace) != ""
}

// askForSlices fakes the slice controller on the consumer, and the controllers that create Identities and virtual nodes
// for slices.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager:
// authentication/localresourceslice-controller/localresourceslice_controller.go,
// authentication/identitycreator-controller/identitycreator_controller.go and
// virtualnodecreator-controller/virtualnodecreator_controller.go. They select slices by their labels in any namespace
// (LocalResourcesLabelSelector, internal/crdReplicator/reflection/manager.go).
func (l *look) askForSlices(ctx context.Context) error {
	var all []error
	for i := range l.slices {
		if s := &l.slices[i]; l.ours(s) && s.DeletionTimestamp == nil {
			all = append(all, l.askForSlice(ctx, s))
		}
	}
	return errors.Join(all...)
}

func (l *look) askForSlice(ctx context.Context, s *slice) error {
	if s.Spec.ConsumerClusterID == "" || len(s.Spec.CSR) == 0 {
		return l.sign(ctx, s)
	}
	if says(s.Status.Conditions, authenticationCondition) != accepted || s.Status.AuthParams == nil {
		return nil
	}
	if err := l.identify(ctx, s); err != nil {
		return err
	}
	if says(s.Status.Conditions, resourcesCondition) != accepted || !wantsVirtualNode(s) ||
		s.Labels[remoteClusterID] == "" ||
		!l.hasKubeconfig(s) {
		return nil
	}
	return l.makeVirtualNode(ctx, s)
}

// wantsVirtualNode reports whether a slice requests a virtual node. Every annotation value except false is a request.
func wantsVirtualNode(s *slice) bool {
	value := s.Annotations[createVirtualNode]
	return value != "" && !strings.EqualFold(value, "false")
}

// sign adds this cluster's certificate request to a slice.
func (l *look) sign(ctx context.Context, s *slice) error {
	secret, err := standin.Got[corev1.Secret](ctx, l.seen, kubeSecrets, home, authenticationKeys)
	if err != nil {
		return err
	}
	key, err := privateKey(secret.Data["privateKey"])
	if err != nil {
		return fmt.Errorf("key of %s/%s: %w", home, authenticationKeys, err)
	}
	csr, err := request(key, s.Name, l.id)
	if err != nil {
		return err
	}
	return l.patch(ctx, resourceSlices, s, []map[string]any{
		{"op": "add", "path": "/spec/consumerClusterID", "value": l.id},
		{
			"op": "add", "path": "/spec/providerClusterID",
			"value": cmp.Or(s.Spec.ProviderClusterID, s.Labels[remoteClusterID], l.remoteOf(s.Namespace)),
		},
		{"op": "add", "path": "/spec/csr", "value": csr},
	})
}

func identityName(slice string) string { return "resourceslice-" + slice }

func identitySecret(slice string) string { return "kubeconfig-" + identityName(slice) }

// identify creates the Identity for an accepted slice.
func (l *look) identify(ctx context.Context, s *slice) error {
	name := identityName(s.Name)
	for i := range l.identities {
		if have := &l.identities[i]; have.Name == name && have.Namespace == s.Namespace {
			if string(have.Spec.AuthParams.crt()) == string(s.Status.AuthParams.SignedCRT) {
				return nil
			}
			return l.put(ctx, identities, have, "/spec/authParams", s.Status.AuthParams)
		}
	}
	return create(ctx, l.site, identities, "Identity", identity{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.Namespace, OwnerReferences: owned(s), Annotations: mark(),
			Labels: map[string]string{
				remoteClusterID: l.remoteOf(s.Namespace), resourceSliceName: s.Name, identityType: resourceSliceType,
			},
		},
		Spec: identitySpec{ClusterID: l.remoteOf(s.Namespace), Type: resourceSliceType, AuthParams: s.Status.AuthParams},
	})
}

func (p *authParams) crt() []byte {
	if p == nil {
		return nil
	}
	return p.SignedCRT
}

// hasKubeconfig reports whether the slice's Identity has a kubeconfig.
func (l *look) hasKubeconfig(s *slice) bool {
	return slices.ContainsFunc(l.identities, func(i identity) bool {
		return i.Name == identityName(s.Name) && i.Namespace == s.Namespace && i.Status.KubeconfigSecretRef != nil
	})
}

// makeVirtualNode creates a virtual node with the slice's name, or updates its resources. A webhook can deny the
// creation.
func (l *look) makeVirtualNode(ctx context.Context, s *slice) error {
	for i := range l.virtualNodes {
		n := &l.virtualNodes[i]
		switch {
		case n.Name != s.Name || n.Namespace != s.Namespace:
			continue
		case n.DeletionTimestamp != nil || equality.Semantic.DeepEqual(n.Spec.ResourceQuota.Hard, s.Status.Resources):
			return nil
		}
		return l.put(ctx, virtualNodes, n, "/spec/resourceQuota", corev1.ResourceQuotaSpec{Hard: s.Status.Resources})
	}
	createNode := true
	return create(ctx, l.site, virtualNodes, "VirtualNode", virtualNode{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace, OwnerReferences: owned(s), Annotations: mark(),
			Labels: map[string]string{remoteClusterID: s.Labels[remoteClusterID], resourceSliceName: s.Name},
		},
		Spec: virtualNodeSpec{
			ClusterID: s.Labels[remoteClusterID], CreateNode: &createNode,
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: identitySecret(s.Name)},
			ResourceQuota:       corev1.ResourceQuotaSpec{Hard: s.Status.Resources},
			Labels:              map[string]string{remoteClusterID: s.Labels[remoteClusterID]},
		},
	})
}

// sliceOf returns the slice that o was created for. It returns nil if the slice does not exist or is being deleted.
func (l *look) sliceOf(o metav1.ObjectMeta) *slice {
	for i := range l.slices {
		if s := &l.slices[i]; s.Name == o.Labels[resourceSliceName] && s.Namespace == o.Namespace &&
			s.DeletionTimestamp == nil {
			return s
		}
	}
	return nil
}

// keepIdentities writes the kubeconfig of each slice's Identity. It deletes Identities whose slice was deleted or
// denied.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/authentication: identity-controller/identity_controller.go,
// identitycreator-controller/identitycreator_controller.go (authenticationDenied) and forge.
func (l *look) keepIdentities(ctx context.Context) error {
	var all []error
	for i := range l.identities {
		have := &l.identities[i]
		if have.Labels[resourceSliceName] == "" {
			continue
		}
		switch s := l.sliceOf(have.ObjectMeta); {
		case s == nil:
			all = append(all, l.dropIdentity(ctx, have))
		case says(s.Status.Conditions, authenticationCondition) == denied:
			all = append(all, l.deleteIdentity(ctx, have))
		default:
			all = append(all, l.kubeconfigOf(ctx, have))
		}
	}
	return errors.Join(all...)
}

// dropIdentity deletes an Identity when no virtual node uses it anymore.
func (l *look) dropIdentity(ctx context.Context, have *identity) error {
	for _, n := range l.virtualNodes {
		if n.Namespace == have.Namespace && n.Name == have.Labels[resourceSliceName] {
			return nil
		}
	}
	return l.deleteIdentity(ctx, have)
}

// deleteIdentity deletes an Identity and its kubeconfig.
func (l *look) deleteIdentity(ctx context.Context, have *identity) error {
	err := l.client.CoreV1().Secrets(have.Namespace).Delete(
		ctx, identitySecret(have.Labels[resourceSliceName]), metav1.DeleteOptions{},
	)
	if ignoreMissing(err) != nil {
		return err
	}
	return l.remove(ctx, identities, have)
}

// kubeconfigOf writes an Identity's kubeconfig to its Secret.
func (l *look) kubeconfigOf(ctx context.Context, have *identity) error {
	name := identitySecret(have.Labels[resourceSliceName])
	keys, err := standin.Got[corev1.Secret](ctx, l.seen, kubeSecrets, home, authenticationKeys)
	if err != nil {
		return err
	}
	data, err := kubeconfig(have.Spec.ClusterID, have.Spec.AuthParams, keys.Data["privateKey"])
	if err != nil {
		return err
	}
	secrets := l.client.CoreV1().Secrets(have.Namespace)
	was, err := standin.Got[corev1.Secret](ctx, l.seen, kubeSecrets, have.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: have.Namespace, OwnerReferences: owned(have), Annotations: mark(),
				Labels: map[string]string{remoteClusterID: have.Spec.ClusterID, identityType: resourceSliceType},
			},
			Data: map[string][]byte{"kubeconfig": data},
		}, metav1.CreateOptions{FieldManager: controllerManager})
	case err == nil && string(was.Data["kubeconfig"]) != string(data):
		was.Data = map[string][]byte{"kubeconfig": data}
		_, err = secrets.Update(ctx, was, metav1.UpdateOptions{FieldManager: controllerManager})
	}
	if err != nil {
		return err
	}
	return report(
		ctx, l.site, identities, have, identityStatus{KubeconfigSecretRef: &corev1.LocalObjectReference{Name: name}},
	)
}
