package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin/extension"
	"carrick/cluster/sandbox/world"
)

// Names in the manual set-up (world/scenarios/vsphere/faults).
const (
	byWebhook      = "webhook"
	extensionSpace = "vsphere-extensions"
	extensionRuns  = "vsphere-extensions"
	extensionPair  = "vsphere-extensions-tls"
	nfsSpace       = "nfs-provisioner"
	nfsClass       = "nfs-client"
	pipelineClaim  = "kale-marshal-pvc"
)

// vsphereActs returns descriptions of the faults in guest.acts, by fault.
func vsphereActs() map[string]string {
	return map[string]string{
		"export-closed": "The NFS server's port is closed: existing mounts hang, and new claims stay pending.",
		"write-denied": "The NFS server squashes the cluster's root user, which cannot create directories: new claims " +
			"stay pending.",
		"webhook-down": "The extension's program exits at startup: the API server skips the webhook, and claims " +
			"stay unchanged.",
		"cert-expired": "The extension's certificate expired an hour ago and was not renewed.",
	}
}

// vsphereUnder maps faults to the faults that they require. It contains only faults that require another fault.
func vsphereUnder() map[string]string {
	under := map[string]string{byWebhook: byHand}
	for _, fault := range []string{
		"export-closed", "access-denied", "write-denied", "no-mount-helper", "provisioner-down", "provisioner-name",
		"provisioner-rights", "old-provisioner", "class-deletes",
		"labels-missing", "restricted-namespace", "two-mutators", "policy-unbound", "policy-takes-all",
	} {
		under[fault] = byHand
	}
	for _, fault := range []string{
		"webhook-down", "cert-expired", "webhook-network", "webhook-sidecar", "webhook-wide", "webhook-other-ca",
		"config-stale",
	} {
		under[fault] = byWebhook
	}
	return under
}

// acts returns functions for the faults that YAML cannot express.
func (g *guest) acts() map[string]func(context.Context) error {
	idle := func(context.Context) error { g.noVolumes = true; return nil }
	return map[string]func(context.Context) error{
		byHand:               func(ctx context.Context) error { return g.claim(ctx, "bob") },
		"provisioner-down":   idle,
		"provisioner-name":   idle,
		"provisioner-rights": idle,
		"old-provisioner":    idle,
		"two-mutators":       idle, // the webhooks change the claim of Bob's pipeline
		"export-closed":      g.breaks(func() { g.export.Shut() }, false),
		"access-denied":      g.breaks(func() { g.export.Deny() }, true),
		"write-denied":       g.breaks(func() { g.export.Squash() }, false),
		"no-mount-helper":    g.breaks(func() { g.volumes.NoHelper() }, true),
		byWebhook:            g.answers,
		"webhook-down":       func(ctx context.Context) error { return g.extension.Down(ctx) },
		"cert-expired": func(ctx context.Context) error {
			return g.signer.Expire(ctx, extensionSpace, extensionPair)
		},
		"config-stale": g.stale,
	}
}

// claim creates the claim of a pipeline, after the profile controller has created the namespace. Helm has already
// installed the claim's StorageClass.
func (g *guest) claim(ctx context.Context, namespace string) error {
	class := nfsClass
	made := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: pipelineClaim}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	var failed error
	err := world.Until(ctx, "the namespace "+namespace, func() (bool, error) {
		_, err := g.client.CoreV1().PersistentVolumeClaims(namespace).Create(
			ctx, made, metav1.CreateOptions{FieldManager: "kubectl-create"},
		)
		if apierrors.IsNotFound(err) {
			return false, err
		}
		if !apierrors.IsAlreadyExists(err) {
			failed = err
		}
		return true, nil
	})
	return errors.Join(err, failed)
}

// bound waits until a claim is bound.
func (g *guest) bound(ctx context.Context, namespace, name string) error {
	return world.Until(ctx, fmt.Sprintf("the volume of claim %s/%s", namespace, name), func() (bool, error) {
		c, err := g.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && c.Status.Phase == corev1.ClaimBound, err
	})
}

// breaks returns a function that breaks the storage once. It first waits until the storage works, and then calls do. At
// the end it creates another claim. If again is true, it also deletes the provisioner's pods, so that new pods must
// mount the volume.
func (g *guest) breaks(do func(), again bool) func(context.Context) error {
	done := false
	return func(ctx context.Context) error {
		if done {
			return nil
		}
		if err := g.bound(ctx, "bob", pipelineClaim); err != nil {
			return err
		}
		do()
		g.noVolumes, done = true, true
		if again {
			if err := g.client.CoreV1().Pods(nfsSpace).DeleteCollection(
				ctx, metav1.DeleteOptions{}, metav1.ListOptions{},
			); err != nil {
				return err
			}
		}
		return g.claim(ctx, "alice")
	}
}

// answers waits until the webhook's pods are ready and the API server can call them. It waits only the first time,
// because later failures are part of a fault.
func (g *guest) answers(ctx context.Context) error {
	if g.answered {
		return nil
	}
	if !g.program {
		return fmt.Errorf(
			"the set-up with a webhook requires the binary carrick: run make, which builds it next to carrick-sandbox, or set "+
				"%s to its path",
			extension.Variable,
		)
	}
	return world.Until(ctx, "the extension to respond", func() (bool, error) {
		d, err := g.client.AppsV1().Deployments(extensionSpace).Get(ctx, extensionRuns, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		hook, err := g.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(
			ctx, "mutating.vsphere-extensions.keeyzar.de", metav1.GetOptions{},
		)
		if err != nil {
			return false, err
		}
		s := d.Status
		ready := s.ObservedGeneration >= d.Generation && s.AvailableReplicas == *d.Spec.Replicas &&
			s.Replicas == *d.Spec.Replicas
		g.answered = ready && len(hook.Webhooks[0].ClientConfig.CABundle) > 0
		return g.answered, errors.New("its pods are not ready yet, or its CA is unknown")
	})
}

// stale changes the configuration of the published program while the program is running.
func (g *guest) stale(ctx context.Context) error {
	started := time.Now().Truncate(time.Second) // Kubernetes timestamps have a resolution of one second
	if err := world.Until(
		ctx, "the next second", func() (bool, error) { return time.Since(started) > time.Second, nil },
	); err != nil {
		return err
	}
	text := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "vsphere-extensions-cm"},
		Data:       map[string]string{"application.properties": "vsphere-extensions.readwritemany-sc=old-nfs"},
	}
	_, err := g.client.CoreV1().ConfigMaps(extensionSpace).Create(
		ctx, text, metav1.CreateOptions{FieldManager: "kubectl-edit"},
	)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
