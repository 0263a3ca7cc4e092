package scenario

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/world"
)

// vsphereUnder are the faults that begin on a set-up that stands.
func vsphereUnder() map[string]string {
	return map[string]string{}
}

// acts are what faults do besides their objects.
func (g *guest) acts() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		byHand: g.byHand,
	}
}

// byHand makes what needs a class that Helm has installed by now: the volume of a
// pipeline of Bob's.
func (g *guest) byHand(ctx context.Context) error {
	const name = "kale-marshal-pvc"
	class := "nfs-client"
	claims := g.client.CoreV1().PersistentVolumeClaims("bob")
	made := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if _, err := claims.Create(ctx, made, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	return world.Until(ctx, "a volume of class "+class, func() (bool, error) {
		c, err := claims.Get(ctx, name, metav1.GetOptions{})
		return err == nil && c.Status.Phase == corev1.ClaimBound, err
	})
}
