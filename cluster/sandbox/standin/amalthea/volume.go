package amalthea

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeLabel is the label of volumes that this fake creates.
var volumeLabel = map[string]string{mark: "amalthea-sessions"}

// bind creates a volume for the session's claim, like the provisioner of its StorageClass would. Kubernetes then binds
// the claim. Without a StorageClass the claim stays Pending.
func (o *Operator) bind(ctx context.Context, s *session) error {
	claim, err := o.client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil || claim.Status.Phase == corev1.ClaimBound || claim.Spec.StorageClassName == nil {
		return err // the API server has already set the default StorageClass
	}
	class, err := o.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = o.client.CoreV1().PersistentVolumes().Create(ctx, volume(claim, class), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func volume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID), Labels: volumeLabel},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, // sweep deletes it
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/stand-in/nothing-is-stored-here",
			}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
}

// sweep deletes volumes whose claims no longer exist.
func (o *Operator) sweep(ctx context.Context) error {
	list, err := o.client.CoreV1().PersistentVolumes().List(
		ctx, metav1.ListOptions{LabelSelector: mark + "=" + volumeLabel[mark]},
	)
	if err != nil {
		return err
	}
	for _, v := range list.Items {
		if v.Status.Phase != corev1.VolumeReleased {
			continue
		}
		err := o.client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
