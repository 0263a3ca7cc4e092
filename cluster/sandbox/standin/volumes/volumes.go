// Package volumes plays the storage of a Tanzu guest cluster, from claims to what pods
// write:
//
//   - pvCSI (kubernetes-sigs/vsphere-csi-driver, pkg/csi/service/wcpguest): a claim of its
//     classes that one node writes to is bound; one that many nodes write to is only where
//     the cluster's feature file-volume is on, and else waits with upstream's event. The
//     default class is the one that the Supervisor declares, again and again. It plays
//     while the Deployment vsphere-csi-controller is available.
//   - nfs-subdir-external-provisioner (kubernetes-sigs, cmd/nfs-subdir-external-provisioner
//     and sig-storage-lib-external-provisioner): while a pod with its environment runs, it
//     makes folders in the export, with the rights of that pod's ServiceAccount and no
//     others, of claims whose class has its PROVISIONER_NAME. Deleted claims' folders are
//     archived, kept or erased, as their class says.
//   - what a kubelet does for pods that mount such volumes: mount(8)'s words in an event
//     where that fails, else the pod runs, and a shell script in it is really played
//     (package shell) in the folder that stands for the volume.
//
// Which claim is whose, and the binding of claims to volumes, are Kubernetes' own here.
// Known differences: nothing limits a volume's size, no volume is attached, of two
// replicas of a provisioner the older one leads, and who a file belongs to is not looked at.
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
	storageProvisioner = "volume.kubernetes.io/storage-provisioner" // on a claim: who is to make its volume
	provisionedBy      = "pv.kubernetes.io/provisioned-by"          // on a volume: who has
	defaultClass       = "storageclass.kubernetes.io/is-default-class"
)

// What is watched.
var (
	classes           = storagev1.SchemeGroupVersion.WithResource("storageclasses")
	claims            = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	persistentVolumes = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	pods              = corev1.SchemeGroupVersion.WithResource("pods")
	configMaps        = corev1.SchemeGroupVersion.WithResource("configmaps")
	deployments       = appsv1.SchemeGroupVersion.WithResource("deployments")
)

// Options are what Start needs.
type Options struct {
	Config     *rest.Config // the guest's admin
	Supervisor *rest.Config // the Supervisor's
	Export     *nfs.Server
	Dir        string // for the volumes of pvCSI; made, and removed with Close
}

// Player plays for one cluster.
type Player struct {
	options    Options
	client     kubernetes.Interface
	supervisor dynamic.Interface
	end        func()
	life       context.Context
	scripts    sync.WaitGroup

	mu           sync.Mutex
	noHelper     bool // the nodes have no mount.nfs
	provisioners map[types.UID]*provisioner
	mounts       map[types.UID]*mounted
	events       standin.Events
}

// seen is a cluster's storage at one moment.
type seen struct {
	classes map[string]*storagev1.StorageClass
	claims  []corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	pods    []corev1.Pod
}

// Start plays until Close, or until ctx ends.
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
	end, err := standin.LoopOnChange(ctx, o.Config, p.Look, classes, claims, persistentVolumes, pods, deployments, configMaps)
	if err != nil {
		cancel()
		return nil, err
	}
	p.end = func() { cancel(); end() }
	return p, nil
}

// Close ends it with all scripts, and removes the volumes of pvCSI.
func (p *Player) Close() {
	p.end()
	p.scripts.Wait()
	_ = os.RemoveAll(p.options.Dir)
}

// NoHelper makes the nodes ones without mount.nfs.
func (p *Player) NoHelper() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noHelper = true
}

// Look does once what is to be done.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, err := p.see(ctx)
	if err != nil {
		return err
	}
	return errors.Join(p.vsphere(ctx, now), p.provision(ctx, now), p.mountAll(ctx, now))
}

// see lists what is played. From the API server's memory: what is missed now is seen
// the next time.
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
	now := &seen{classes: map[string]*storagev1.StorageClass{}, claims: claims.Items, volumes: map[string]*corev1.PersistentVolume{}, pods: pods.Items}
	for i := range classes.Items {
		now.classes[classes.Items[i].Name] = &classes.Items[i]
	}
	for i := range volumes.Items {
		now.volumes[volumes.Items[i].Name] = &volumes.Items[i]
	}
	return now, nil
}

// waiting are the claims for which somebody is to make a volume.
func (now *seen) waiting(name string) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for i := range now.claims {
		c := &now.claims[i]
		_, made := now.volumes[volumeName(c)]
		if c.DeletionTimestamp == nil && c.Spec.VolumeName == "" && c.Annotations[storageProvisioner] == name && c.Spec.StorageClassName != nil && !made {
			out = append(out, c)
		}
	}
	return out
}

// released are the volumes of somebody's whose claims are gone and that go with them.
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

// volumeName is what a volume is called that is made for a claim.
func volumeName(c *corev1.PersistentVolumeClaim) string { return "pvc-" + string(c.UID) }

// volumeFor is a volume that is made for a claim, but for what it is.
func volumeFor(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(c), Annotations: map[string]string{provisionedBy: class.Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: c.Spec.AccessModes, PersistentVolumeReclaimPolicy: reclaim, StorageClassName: class.Name, MountOptions: class.MountOptions,
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
		},
	}
}

func claimRef(c *corev1.PersistentVolumeClaim) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}
}
