package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin"
)

const (
	mountPath     = "/persistentvolumes" // where the provisioner mounts the export
	folderManager = "nfs-subdir-external-provisioner"
)

// folder provisions a volume: it creates a directory in the export (provisionClaimOperation of
// controller/controller.go, and Provision of the provisioner).
func (p *Player) folder(
	ctx context.Context, one *provisioner, c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
) error {
	say := func(kind, reason, message string) error {
		return one.event(ctx, claimRef(c), kind, reason, message)
	}
	fail := func(err error) error {
		one.said.Once("error", "provision %q class %q: %v", c.Namespace+"/"+c.Name, class.Name, err)
		return say(
			corev1.EventTypeWarning, "ProvisioningFailed",
			fmt.Sprintf("failed to provision volume with StorageClass %q: %v", class.Name, err),
		)
	}
	if c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return say(corev1.EventTypeWarning, "ProvisioningFailed", one.name+" does not support block volume provisioning")
	}
	if err := say(
		corev1.EventTypeNormal, "Provisioning", fmt.Sprintf(isProvisioning, c.Namespace+"/"+c.Name),
	); err != nil {
		return err
	}
	if c.Spec.Selector != nil {
		return fail(errors.New("claim Selector is not supported"))
	}
	name := folderName(c, class)
	root, err := p.options.Export.Mount(ctx, one.server, one.path, mountPath, nil)
	if err != nil { // upstream's NFS mount hangs
		one.said.Once("error", "stand-in: the export does not respond, so mkdir hangs: %v", err)
		return nil
	}
	if p.options.Export.Squashed() {
		return fail(fmt.Errorf(
			"unable to create directory to provision new pv: mkdir %s: permission denied", path.Join(mountPath, name),
		))
	}
	if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(name)), 0o700); err != nil {
		return fail(fmt.Errorf("unable to create directory to provision new pv: %w", err))
	}
	made := volumeFor(c, class)
	made.Spec.NFS = &corev1.NFSVolumeSource{Server: one.server, Path: path.Join(one.path, name)}
	if _, err := one.client.CoreV1().PersistentVolumes().Create(
		ctx, made, metav1.CreateOptions{FieldManager: folderManager},
	); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		message := fmt.Sprintf(
			"Error creating provisioned PV object for claim %s/%s: %v. Deleting the volume.", c.Namespace, c.Name, err,
		)
		one.said.Once("error", "%s", message)
		return errors.Join(say(corev1.EventTypeWarning, "ProvisioningFailed", message), erase(root, made, class))
	}
	one.said.Say("info", "provision %q class %q: volume %q provisioned", c.Namespace+"/"+c.Name, class.Name, made.Name)
	return say(corev1.EventTypeNormal, "ProvisioningSucceeded", fmt.Sprintf(isProvisioned, made.Name))
}

// folderName returns the path of a claim's directory in the export. If the pattern expands to "", the path is the
// export itself. Upstream fixed that after v4.0.2.
func folderName(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	if pattern, ok := class.Parameters["pathPattern"]; ok {
		return path.Join("/", fromPattern(pattern, c))
	}
	return path.Join("/", c.Namespace+"-"+c.Name+"-"+volumeName(c))
}

var inPattern = regexp.MustCompile(`\${\.PVC\.((labels|annotations)\.(.*?)|.*?)}`)

// fromPattern expands pathPattern for a claim.
func fromPattern(pattern string, c *corev1.PersistentVolumeClaim) string {
	return inPattern.ReplaceAllStringFunc(pattern, func(found string) string {
		parts := inPattern.FindStringSubmatch(found)
		switch parts[2] {
		case "labels":
			return c.Labels[parts[3]]
		case "annotations":
			return c.Annotations[parts[3]]
		}
		return map[string]string{"name": c.Name, "namespace": c.Namespace}[parts[1]]
	})
}

// event records an event with the provisioner's permissions.
func (one *provisioner) event(ctx context.Context, of corev1.ObjectReference, kind, reason, message string) error {
	err := one.events.Say(
		ctx, one.client, standin.Event{Of: of, Component: one.identity, Type: kind, Reason: reason, Message: message},
	)
	if apierrors.IsForbidden(err) {
		one.said.Once("error", "Server rejected event: %v (will not retry!)", err)
		return nil
	}
	return err
}

// unmake deletes a volume. The StorageClass determines whether its directory is deleted, archived or kept (Delete of
// the provisioner, and deleteVolumeOperation of controller/controller.go).
func (p *Player) unmake(
	ctx context.Context, one *provisioner, v *corev1.PersistentVolume, class *storagev1.StorageClass,
) error {
	fail := func(err error) error {
		one.said.Once("error", "delete %q: volume deletion failed: %v", v.Name, err)
		return one.event(
			ctx, corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: v.Name, UID: v.UID},
			corev1.EventTypeWarning, "VolumeFailedDelete", err.Error(),
		)
	}
	root, err := p.options.Export.Mount(ctx, one.server, one.path, mountPath, nil)
	if err != nil || v.Spec.NFS == nil {
		return nil // upstream's NFS mount hangs
	}
	if err := erase(root, v, class); err != nil {
		return fail(err)
	}
	err = one.client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fail(err)
	}
	one.said.Say("info", "delete %q: volume deleted", v.Name)
	return nil
}

// erase deletes or archives a volume's directory. v4.0.2 searches for the last path element only at the top of the
// export, so it never finds nested directories. If there is no directory, erase needs no StorageClass.
func erase(root string, v *corev1.PersistentVolume, class *storagev1.StorageClass) error {
	base := path.Base(v.Spec.NFS.Path)
	folder := filepath.Join(root, base)
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if class == nil {
		return fmt.Errorf("storageclasses.storage.k8s.io %q not found", v.Spec.StorageClassName)
	}
	return tidy(folder, filepath.Join(root, "archived-"+base), class.Parameters)
}

// tidy deletes, keeps or archives a directory, depending on the parameters of the StorageClass.
func tidy(folder, archive string, parameters map[string]string) error {
	switch parameters["onDelete"] {
	case "delete":
		return os.RemoveAll(folder)
	case "retain":
		return nil
	}
	if said, ok := parameters["archiveOnDelete"]; ok {
		archives, err := strconv.ParseBool(said)
		if err != nil {
			return err
		}
		if !archives {
			return os.RemoveAll(folder)
		}
	}
	return os.Rename(folder, archive)
}
