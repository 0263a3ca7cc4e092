// Package volumes fakes the storage of a Tanzu guest cluster, from claims to the files that pods write.
//
// First, it fakes pvCSI while the Deployment vsphere-csi-controller is available. Source:
// kubernetes-sigs/vsphere-csi-driver bf809025.
//
//   - A claim with an access mode for more than one node requests a file volume, which is rejected if the feature
//     file-volume is off: pkg/csi/service/common/util.go (IsFileVolumeRequest),
//     pkg/csi/service/wcpguest/controller_helper.go (validateGuestClusterCreateVolumeRequest),
//     pkg/csi/service/common/commonco/k8sorchestrator/k8sorchestrator.go.
//   - Names of the Deployment, the driver and the ConfigMap of features: manifests/guestcluster/1.37/pvcsi.yaml.
//   - The events are those of its csi-provisioner: kubernetes-csi/external-provisioner v4.0.1 and v5.2.0,
//     vendor/sigs.k8s.io/sig-storage-lib-external-provisioner. Later versions (from v6.0.0) use other messages.
//   - The StorageClass that the Supervisor declares is the default, and changes to it are reverted. This is a guess: no
//     source was found.
//
// Second, it fakes nfs-subdir-external-provisioner in each ready pod that has the provisioner's environment variables,
// with the permissions of the pod's ServiceAccount. Source: kubernetes-sigs/nfs-subdir-external-provisioner v4.0.2
// (fab8b56), the image of its chart, and sig-storage-lib-external-provisioner v6.0.0 (904215e), on which it builds.
//
//   - Folders, their names, and their deletion: cmd/nfs-subdir-external-provisioner/provisioner.go.
//   - The claims and volumes that it handles, its events, and the Endpoints object of the leader election:
//     controller/controller.go. A volume that cannot be saved: controller/volume_store.go.
//   - An image before v4.0.0 (nfs-client-provisioner) creates nothing: CHANGELOG.md. Its message is a guess: the
//     message of v6.0.0.
//
// Third, it fakes the kubelet of pods that mount such volumes. Source: kubernetes/kubernetes v1.37.2.
//
//   - The event of a failed mount: pkg/volume/util/operationexecutor/operation_generator.go, pkg/volume/nfs/nfs.go,
//     k8s.io/mount-utils mount_linux.go. The event contains the output of package nfs, or the output of mount(8) if
//     mount.nfs is missing, which is a guess. Some releases of mount(8) end their output with a line about dmesg(1).
//   - Otherwise the pod runs, and package shell runs its script in the directory that represents the volume.
//
// Kubernetes itself assigns claims to provisioners and binds them. It writes the provisioner into two annotations
// (pkg/controller/volume/persistentvolume/pv_controller_base.go): v4.0.2 reads the beta annotation, and this package
// reads the other annotation.
//
// Known differences: nothing limits a volume's size, no volume is attached, and owners of files are ignored. pvCSI
// sends no request to a Supervisor. In upstream, a guest whose own feature file-volume is on, as in all of upstream's
// manifests, waits four minutes for a Supervisor without file volumes. pvCSI's volumes have handles of our own. The
// provisioner retries in every pass. Upstream backs off and gives up after 15 failures. The provisioner tries to save
// a volume once, upstream five times. A .. in a pattern cannot escape the export. The oldest replica is the leader,
// and its lock never expires. NFS_SERVER and NFS_PATH are optional, and no node is read for WaitForFirstConsumer.
package volumes

import (
	"context"
	"errors"
	"os"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/standin/nfs"
)

const (
	storageProvisioner = "volume.kubernetes.io/storage-provisioner" // on a claim: provisioner of its volume
	provisionedBy      = "pv.kubernetes.io/provisioned-by"          // on a volume: its provisioner
	defaultClass       = "storageclass.kubernetes.io/is-default-class"
)

// Resources that this package reads.
var (
	classes           = storagev1.SchemeGroupVersion.WithResource("storageclasses")
	claims            = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	persistentVolumes = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	pods              = corev1.SchemeGroupVersion.WithResource("pods")
	configMaps        = corev1.SchemeGroupVersion.WithResource("configmaps")
	deployments       = appsv1.SchemeGroupVersion.WithResource("deployments")
)

// Options configures Start.
type Options struct {
	Config     *rest.Config // admin's credentials for the guest cluster
	Supervisor *rest.Config // admin's credentials for the Supervisor
	Export     *nfs.Server
	Dir        string // for pvCSI's volumes; Start creates it and Close removes it
}

// Player is the fake storage of one cluster.
type Player struct {
	options    Options
	client     kubernetes.Interface
	supervisor dynamic.Interface
	end        func()
	life       context.Context
	scripts    sync.WaitGroup

	mu           sync.Mutex
	noHelper     bool // mount.nfs is missing on the nodes
	provisioners map[types.UID]*provisioner
	mounts       map[types.UID]*mounted
	events       standin.Events
}

// seen is a snapshot for one pass.
type seen struct {
	classes map[string]*storagev1.StorageClass
	claims  []corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	pods    []corev1.Pod
}

// Start runs the storage until Close is called or ctx is done.
func Start(ctx context.Context, o Options) (*Player, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	supervisor, err := dynamic.NewForConfig(o.Supervisor)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Player{
		options: o, client: client, supervisor: supervisor, life: ctx,
		provisioners: map[types.UID]*provisioner{}, mounts: map[types.UID]*mounted{},
	}
	end, err := standin.LoopOnChange(
		ctx, o.Config, p.Look, classes, claims, persistentVolumes, pods, deployments, configMaps,
	)
	if err != nil {
		cancel()
		return nil, err
	}
	p.end = func() { cancel(); end() }
	return p, nil
}

// Close stops the storage and all scripts, and removes pvCSI's volumes.
func (p *Player) Close() {
	p.end()
	p.scripts.Wait()
	_ = os.RemoveAll(p.options.Dir)
}

// NoHelper makes the nodes behave as if mount.nfs were not installed.
func (p *Player) NoHelper() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noHelper = true
}

// Look reconciles every claim, volume and pod once.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, err := p.see(ctx)
	if err != nil {
		return err
	}
	return errors.Join(p.vsphere(ctx, now), p.provision(ctx, now), p.mountAll(ctx, now))
}

// see lists objects from the API server's watch cache. If the cache lags behind, the next pass sees the changes.
func (p *Player) see(ctx context.Context) (*seen, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	classes, err := p.client.StorageV1().StorageClasses().List(ctx, cached)
	if err != nil {
		return nil, err
	}
	claims, err := p.client.CoreV1().PersistentVolumeClaims("").List(ctx, cached)
	if err != nil {
		return nil, err
	}
	volumes, err := p.client.CoreV1().PersistentVolumes().List(ctx, cached)
	if err != nil {
		return nil, err
	}
	pods, err := p.client.CoreV1().Pods("").List(ctx, cached)
	if err != nil {
		return nil, err
	}
	now := &seen{
		classes: map[string]*storagev1.StorageClass{}, claims: claims.Items, volumes: map[string]*corev1.PersistentVolume{},
		pods: pods.Items,
	}
	for i := range classes.Items {
		now.classes[classes.Items[i].Name] = &classes.Items[i]
	}
	for i := range volumes.Items {
		now.volumes[volumes.Items[i].Name] = &volumes.Items[i]
	}
	return now, nil
}

// waiting returns the claims that wait for a volume from provisioner name.
func (now *seen) waiting(name string) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for i := range now.claims {
		c := &now.claims[i]
		_, made := now.volumes[volumeName(c)]
		if c.DeletionTimestamp == nil && c.Spec.VolumeName == "" && c.Annotations[storageProvisioner] == name &&
			c.Spec.StorageClassName != nil && !made {
			out = append(out, c)
		}
	}
	return out
}

// released returns the volumes from provisioner name whose claims were deleted and whose reclaim policy is Delete.
func (now *seen) released(name string) []*corev1.PersistentVolume {
	var out []*corev1.PersistentVolume
	for _, v := range now.volumes {
		if v.Annotations[provisionedBy] == name && v.Status.Phase == corev1.VolumeReleased &&
			v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && v.DeletionTimestamp == nil {
			out = append(out, v)
		}
	}
	return out
}

// volumeName returns the name of the volume for a claim.
func volumeName(c *corev1.PersistentVolumeClaim) string { return "pvc-" + string(c.UID) }

// volumeFor returns a volume for a claim, without a volume source.
func volumeFor(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(c), Annotations: map[string]string{provisionedBy: class.Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: c.Spec.AccessModes, PersistentVolumeReclaimPolicy: reclaim, StorageClassName: class.Name,
			MountOptions: class.MountOptions,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID,
				ResourceVersion: c.ResourceVersion,
			},
		},
	}
}

func claimRef(c *corev1.PersistentVolumeClaim) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		ResourceVersion: c.ResourceVersion,
	}
}
