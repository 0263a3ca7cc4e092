// Package csi plays what a kubelet does with the CSI drivers that announce
// themselves to it: a driver whose node plugin is Ready on a node is listed in
// that node's CSINode, and no longer when the plugin is gone (Kubernetes
// pkg/kubelet/pluginmanager and pkg/volume/csi). No volume is ever mounted.
//
// It knows the node plugin of csi-rclone (deploy/csi-rclone in
// SwissDataScienceCenter/csi-rclone): pods labelled app=csi-nodeplugin-rclone,
// with a registrar whose socket must be in the folder that the kubelet looks
// into. A chart with another kubeletDir is not heard, as on a real node.
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
	registration = "/var/lib/kubelet/plugins_registry" // where this kubelet looks
	socketFlag   = "--kubelet-registration-path="      // …/plugins/DRIVER/csi.sock
	mark         = "carrick/stand-in"                  // of the CSINodes that it made
)

// Driver plays for one cluster.
type Driver struct {
	client kubernetes.Interface
	mu     sync.Mutex      // one look at a time
	known  map[string]bool // drivers that were announced once; others are not its business
	end    func()
}

// Start plays until Close, or until ctx ends.
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

// Close ends it and leaves the CSINodes as they are.
func (d *Driver) Close() { d.end() }

// Look makes the CSINode of every node what its pods say.
func (d *Driver) Look(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	pods, err := d.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: pluginLabel})
	if err != nil {
		return err
	}
	announced := map[string]map[string]bool{} // node, driver
	for i := range pods.Items {
		pod := &pods.Items[i]
		name := driver(pod)
		if name == "" || !ready(pod) {
			continue
		}
		d.known[name] = true
		if announced[pod.Spec.NodeName] == nil {
			announced[pod.Spec.NodeName] = map[string]bool{}
		}
		announced[pod.Spec.NodeName][name] = true
	}
	list, err := d.client.StorageV1().CSINodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		node := &list.Items[i]
		if err := d.update(ctx, node, announced[node.Name]); err != nil {
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

func (d *Driver) update(ctx context.Context, node *storagev1.CSINode, drivers map[string]bool) error {
	var want []storagev1.CSINodeDriver
	for _, entry := range node.Spec.Drivers {
		if !d.known[entry.Name] || drivers[entry.Name] {
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

// create makes the CSINode of a node, which a kubelet does when it starts.
func (d *Driver) create(ctx context.Context, name string, drivers map[string]bool) error {
	node, err := d.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	made := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{mark: "made in the place of a kubelet"},
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

// driver returns the name under which a pod's registrar announces its driver
// where the kubelet looks, "" where it does not.
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
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
