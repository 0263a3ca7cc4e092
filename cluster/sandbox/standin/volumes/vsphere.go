package volumes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/sandbox/standin"
)

const (
	driver        = "csi.vsphere.vmware.com"
	driverSpace   = "vmware-system-csi"
	driverRuns    = "vsphere-csi-controller"
	features      = "internal-feature-states.csi.vsphere.vmware.com"
	fileVolumes   = "file-volume"
	driverManager = "csi-provisioner"
	declaredByTKG = "vmware-system-tkg" // field manager of the Supervisor's StorageClass
	noFileVolumes = "failed to provision volume with StorageClass %q: rpc error: code = InvalidArgument desc = File " +
		"volume provisioning is not supported."
	isProvisioning = "External provisioner is provisioning volume for claim %q"
	isProvisioned  = "Successfully provisioned volume %s"
)

var clusters = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "clusters"}

// vsphere fakes pvCSI, and the controller that reverts changes to the default StorageClass.
func (p *Player) vsphere(ctx context.Context, now *seen) error {
	faults := []error{p.declare(ctx, now)}
	controller, err := p.client.AppsV1().Deployments(driverSpace).Get(
		ctx, driverRuns, metav1.GetOptions{ResourceVersion: "0"},
	)
	if err != nil || controller.Status.AvailableReplicas == 0 {
		return errors.Join(append(faults, err)...)
	}
	states, err := p.client.CoreV1().ConfigMaps(driverSpace).Get(ctx, features, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	for _, c := range now.waiting(driver) {
		faults = append(faults, p.disk(ctx, now, c, enabled(states.Data[fileVolumes])))
	}
	for _, v := range now.released(driver) {
		err := os.RemoveAll(filepath.Join(p.options.Dir, v.Name))
		if err == nil {
			err = p.client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})
		}
		if !apierrors.IsNotFound(err) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// enabled reports whether a feature is on (pkg/csi/service/common/commonco/k8sorchestrator/k8sorchestrator.go,
// IsPVCSIFSSEnabled).
func enabled(state string) bool {
	on, err := strconv.ParseBool(state)
	return err == nil && on
}

// disk creates a volume for a claim, as pvCSI does (pkg/csi/service/wcpguest/controller.go, CreateVolume).
func (p *Player) disk(ctx context.Context, now *seen, c *corev1.PersistentVolumeClaim, files bool) error {
	class := now.classes[*c.Spec.StorageClassName]
	if class == nil || class.Provisioner != driver {
		return nil
	}
	say := func(kind, reason, message string) error {
		return p.events.Say(
			ctx, p.client,
			standin.Event{Of: claimRef(c), Component: driver + "_" + driverRuns, Type: kind, Reason: reason, Message: message},
		)
	}
	if err := say(
		corev1.EventTypeNormal, "Provisioning", fmt.Sprintf(isProvisioning, c.Namespace+"/"+c.Name),
	); err != nil {
		return err
	}
	kind := "vSphere CNS Block Volume"
	if shared(c.Spec.AccessModes) {
		if kind = "vSphere CNS File Volume"; !files {
			return say(corev1.EventTypeWarning, "ProvisioningFailed", fmt.Sprintf(noFileVolumes, class.Name))
		}
	}
	if err := os.Mkdir(filepath.Join(p.options.Dir, volumeName(c)), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	made := volumeFor(c, class)
	made.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		// ext4 even for a file volume. The node plugin mounts it as nfs4.
		Driver: driver, VolumeHandle: "stand-in-" + string(c.UID), FSType: "ext4",
		VolumeAttributes: map[string]string{"type": kind},
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Create(
		ctx, made, metav1.CreateOptions{FieldManager: driverManager},
	); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	return say(corev1.EventTypeNormal, "ProvisioningSucceeded", fmt.Sprintf(isProvisioned, made.Name))
}

// shared reports whether a claim requests a file volume (pkg/csi/service/common/util.go, IsFileVolumeRequest).
func shared(modes []corev1.PersistentVolumeAccessMode) bool {
	for _, m := range modes {
		if m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany {
			return true
		}
	}
	return false
}

// declare makes the Supervisor's StorageClass the guest's default. It does not change StorageClasses of other
// provisioners. This is a guess: no source was found.
func (p *Player) declare(ctx context.Context, now *seen) error {
	name, err := p.declared(ctx)
	if err != nil || name == "" {
		return nil // nothing is declared: leave all StorageClasses unchanged
	}
	var faults []error
	for _, class := range now.classes {
		is, want := class.Annotations[defaultClass] == "true", class.Name == name
		if class.Provisioner != driver || is == want {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, defaultClass, fmt.Sprint(want))
		_, err := p.client.StorageV1().StorageClasses().Patch(
			ctx, class.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: declaredByTKG},
		)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// declared returns the default StorageClass in the Supervisor's object for this guest. It finds the object by the
// address of the guest's API server.
func (p *Player) declared(ctx context.Context) (string, error) {
	api, err := url.Parse(p.options.Config.Host)
	if err != nil {
		return "", err
	}
	all, err := p.supervisor.Resource(clusters).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	for _, o := range all.Items {
		host, _, _ := unstructured.NestedString(o.Object, "spec", "controlPlaneEndpoint", "host")
		port, _, _ := unstructured.NestedInt64(o.Object, "spec", "controlPlaneEndpoint", "port")
		if host != api.Hostname() || fmt.Sprint(port) != api.Port() {
			continue
		}
		variables, _, _ := unstructured.NestedSlice(o.Object, "spec", "topology", "variables")
		for _, v := range variables {
			if fields, ok := v.(map[string]any); ok && fields["name"] == "defaultStorageClass" {
				name, _ := fields["value"].(string)
				return name, nil
			}
		}
	}
	return "", nil
}
