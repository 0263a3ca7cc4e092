// Package csi fakes how a kubelet registers CSI drivers. When a driver's node plugin becomes Ready on a node, the
// driver is added to the node's CSINode. The entry remains until the plugin's pod is deleted. No volumes are mounted.
// The fake detects only csi-rclone's node plugin.
//
// Sources: SwissDataScienceCenter/csi-rclone v0.6.0 (ec40e70); kubernetes/kubernetes @ 010b2160 and @ 01aa0f3f.
//
//   - Pods, registrar and its socket, directory of the registration: csi-rclone: deploy/csi-rclone/templates/
//     csi-nodeplugin-rclone.yaml
//   - Name of the driver, which the plugin reads from DRIVER_NAME: csi-rclone: pkg/rclone/driver.go. This fake reads it
//     from the directory of the socket. The chart sets both to storageClassName.
//   - Registration, and deregistration when the socket disappears: kubernetes @ 010b2160: pkg/volume/csi/csi_plugin.go
//     (RegisterPlugin, DeRegisterPlugin)
//   - Entries of a CSINode: kubernetes @ 01aa0f3f: pkg/volume/csi/nodeinfomanager/nodeinfomanager.go
//
// Known differences:
//   - A driver registers when its pod is Ready. A real driver registers when its registrar runs.
//   - The CSINode of a node exists only while it lists a driver. A kubelet creates an empty CSINode when it starts.
//   - A registrar outside of the kubelet's directory is not detected. This is a guess, because
//     pkg/kubelet/pluginmanager was not read.
//   - Only the directory of the registration is compared with the kubelet's. The chart writes /var/lib/kubelet into the
//     registrar's --kubelet-registration-path regardless of its kubeletDir, so with another kubeletDir upstream's
//     driver announces a socket that does not exist.
package csi

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

const (
	pluginLabel  = "app=csi-nodeplugin-rclone"
	registration = "/var/lib/kubelet/plugins_registry" // directory where this kubelet detects registrars
	socketFlag   = "--kubelet-registration-path="      // followed by …/plugins/DRIVER/csi.sock
	mark         = "carrick/stand-in"                  // label of CSINodes that this fake created
)

// Driver is the fake CSI registration on the nodes of one cluster.
type Driver struct {
	client kubernetes.Interface
	mu     sync.Mutex      // serializes Look
	known  map[string]bool // drivers that this fake has registered; it ignores all others
	end    func()
}

// Start runs the registration until Close is called or ctx is done.
func Start(ctx context.Context, config *rest.Config) (*Driver, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	d := &Driver{client: client, known: map[string]bool{}}
	d.end, err = standin.LoopOnChange(ctx, config, d.Look,
		corev1.SchemeGroupVersion.WithResource("pods"), storagev1.SchemeGroupVersion.WithResource("csinodes"))
	return d, err
}

// Close stops the registration. The CSINodes remain.
func (d *Driver) Close() { d.end() }

// Look updates the CSINode of every node.
func (d *Driver) Look(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	pods, err := d.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: pluginLabel})
	if err != nil {
		return err
	}
	announced, kept := map[string]map[string]bool{}, map[string]map[string]bool{} // by node and driver
	for i := range pods.Items {
		pod := &pods.Items[i]
		name := driver(pod)
		if name == "" || pod.DeletionTimestamp != nil {
			continue
		}
		add(kept, pod.Spec.NodeName, name)
		if ready(pod) {
			d.known[name] = true
			add(announced, pod.Spec.NodeName, name)
		}
	}
	list, err := d.client.StorageV1().CSINodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		node := &list.Items[i]
		if err := d.update(ctx, node, announced[node.Name], kept[node.Name]); err != nil {
			return err
		}
		delete(announced, node.Name)
	}
	for node, drivers := range announced {
		if err := d.create(ctx, node, drivers); err != nil {
			return err
		}
	}
	return nil
}

func add(all map[string]map[string]bool, node, driver string) {
	if all[node] == nil {
		all[node] = map[string]bool{}
	}
	all[node][driver] = true
}

// update adds the drivers with a Ready pod to the CSINode. It removes an entry when the node has no pod of that driver
// anymore.
func (d *Driver) update(ctx context.Context, node *storagev1.CSINode, drivers, kept map[string]bool) error {
	var want []storagev1.CSINodeDriver
	for _, entry := range node.Spec.Drivers {
		if !d.known[entry.Name] || kept[entry.Name] {
			want = append(want, entry)
		}
	}
	for _, entry := range entries(node.Name, drivers) {
		if !slices.ContainsFunc(want, func(e storagev1.CSINodeDriver) bool { return e.Name == entry.Name }) {
			want = append(want, entry)
		}
	}
	client := d.client.StorageV1().CSINodes()
	switch {
	case len(want) == 0 && node.Annotations[mark] != "":
		return client.Delete(ctx, node.Name, metav1.DeleteOptions{})
	case len(want) == len(node.Spec.Drivers):
		return nil
	}
	node.Spec.Drivers = want
	_, err := client.Update(ctx, node, metav1.UpdateOptions{})
	return err
}

// create creates a node's CSINode, as a kubelet does at startup.
func (d *Driver) create(ctx context.Context, name string, drivers map[string]bool) error {
	node, err := d.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	made := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{mark: "created by the sandbox instead of a kubelet"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: entries(name, drivers)},
	}
	if _, err = d.client.StorageV1().CSINodes().Create(ctx, made, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func entries(node string, drivers map[string]bool) []storagev1.CSINodeDriver {
	var all []storagev1.CSINodeDriver
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		all = append(all, storagev1.CSINodeDriver{Name: name, NodeID: node})
	}
	return all
}

// driver returns the driver name in a pod's registrar, or "" if a kubelet would not detect the registrar.
func driver(pod *corev1.Pod) string {
	heard := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && strings.TrimSuffix(v.HostPath.Path, "/") == registration
	})
	if !heard {
		return ""
	}
	for _, container := range pod.Spec.Containers {
		for _, arg := range container.Args {
			if socket, ok := strings.CutPrefix(arg, socketFlag); ok {
				parts := strings.Split(socket, "/")
				return parts[max(0, len(parts)-2)]
			}
		}
	}
	return ""
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
