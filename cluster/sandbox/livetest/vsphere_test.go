package livetest

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

var (
	profiles = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "profiles"}
	clusters = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "clusters"}
)

const labelsFile = "namespace-labels-data-4df5t8mdgf"

// guest is the running scenario vsphere.
type guest struct {
	t      *testing.T
	client kubernetes.Interface // local
	told   map[string]string
}

// seedGuest seeds the scenario vsphere in the shared sandbox, which is reset when the test ends.
func seedGuest(t *testing.T, fault string) *guest {
	t.Helper()
	t.Cleanup(func() { shared.must(t, "reset") })
	said := shared.ask(t, strings.TrimSpace("seed vsphere "+fault))
	if !said.OK || len(said.Hosts) > 0 {
		t.Fatalf("seed vsphere %s: %+v", fault, said)
	}
	return &guest{t: t, client: shared.client(t, "local"), told: said.Answers}
}

// claim returns a PersistentVolumeClaim. If class is "", the claim names no StorageClass.
func (g *guest) claim(
	namespace, name, class string, mode corev1.PersistentVolumeAccessMode,
) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	return c
}

func (g *guest) make(c *corev1.PersistentVolumeClaim) {
	g.t.Helper()
	if _, err := g.client.CoreV1().PersistentVolumeClaims(c.Namespace).Create(
		g.t.Context(), c, metav1.CreateOptions{},
	); err != nil {
		g.t.Fatal(err)
	}
}

// classOf returns the StorageClass that the API server would set on a claim, from a dry run.
func (g *guest) classOf(c *corev1.PersistentVolumeClaim) (string, error) {
	made, err := g.client.CoreV1().PersistentVolumeClaims(c.Namespace).Create(
		g.t.Context(), c, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
	)
	if err != nil {
		return "", err
	}
	return *made.Spec.StorageClassName, nil
}

// bound waits until a claim is bound, and returns its volume.
func (g *guest) bound(namespace, name string) *corev1.PersistentVolume {
	g.t.Helper()
	var v *corev1.PersistentVolume
	eventually(g.t, happens, func() error {
		c, err := g.client.CoreV1().PersistentVolumeClaims(namespace).Get(g.t.Context(), name, metav1.GetOptions{})
		if err != nil || c.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is not bound: %w", name, err)
		}
		v, err = g.client.CoreV1().PersistentVolumes().Get(g.t.Context(), c.Spec.VolumeName, metav1.GetOptions{})
		return err
	})
	return v
}

// says waits for an event on an object with a reason and these words.
func (g *guest) says(namespace, object, reason, words string) {
	g.t.Helper()
	eventually(g.t, happens, func() error {
		list, err := g.client.CoreV1().Events(namespace).List(g.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var all []string
		for _, e := range list.Items {
			if !strings.HasPrefix(e.InvolvedObject.Name, object) {
				continue
			}
			if e.Reason == reason && strings.Contains(e.Message, words) {
				return nil
			}
			all = append(all, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("of %s/%s nothing says %s %q:\n%s", namespace, object, reason, words, strings.Join(all, "\n"))
	})
}

// logs waits until the logs of the pods with a label contain words.
func (g *guest) logs(namespace, label, words string) {
	g.t.Helper()
	eventually(g.t, happens, func() error {
		pods, err := g.client.CoreV1().Pods(namespace).List(g.t.Context(), metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err
		}
		said := ""
		for _, pod := range pods.Items {
			data, _ := g.client.CoreV1().Pods(namespace).GetLogs(
				pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name},
			).DoRaw(g.t.Context())
			said += string(data)
		}
		if !strings.Contains(said, words) {
			return fmt.Errorf("%d pods don't say %q:\n%s", len(pods.Items), words, said)
		}
		return nil
	})
}

// waits verifies that a claim is pending. Call it after an event has reported the reason.
func (g *guest) waits(namespace, name string) {
	g.t.Helper()
	c, err := g.client.CoreV1().PersistentVolumeClaims(namespace).Get(g.t.Context(), name, metav1.GetOptions{})
	if err != nil || c.Status.Phase != corev1.ClaimPending {
		g.t.Errorf("claim %s: %v, %v", name, c.Status, err)
	}
}

func (g *guest) patch(resource schema.GroupVersionResource, namespace, name, patch string) {
	g.t.Helper()
	if _, err := shared.dynamic(g.t, "local").Resource(resource).Namespace(namespace).Patch(
		g.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{},
	); err != nil {
		g.t.Fatal(err)
	}
}

func TestGuestCluster(t *testing.T) {
	g := seedGuest(t, "")
	if v := g.bound("alice", "notes-workspace"); v.Spec.CSI == nil || v.Spec.CSI.Driver != "csi.vsphere.vmware.com" {
		t.Errorf("the notebook's volume is %+v", v.Spec)
	}
	server, port, _ := net.SplitHostPort(strings.TrimPrefix(shared.config(t, "local").Host, "https://"))
	declared, err := shared.dynamic(t, "remote").Resource(clusters).Namespace(
		g.told["supervisor.namespace"],
	).Get(t.Context(), "kubeflow", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := unstructured.NestedString(declared.Object, "spec", "controlPlaneEndpoint", "host")
	number, _, _ := unstructured.NestedInt64(declared.Object, "spec", "controlPlaneEndpoint", "port")
	if host != server || fmt.Sprint(number) != port {
		t.Errorf("the Supervisor declares %s:%d, and the guest is %s:%s", host, number, server, port)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(g.told["nfs.server"], "2049"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	// Shared volumes are refused, in upstream's words.
	g.make(g.claim("alice", "shared", "vsphere-policy", corev1.ReadWriteMany))
	g.says(
		"alice", "shared", "ProvisioningFailed",
		`failed to provision volume with StorageClass "vsphere-policy": rpc error: code = InvalidArgument desc = File volume provisioning is not supported.`,
	)
	g.says("alice", "shared", "ExternalProvisioning", "Waiting for a volume to be created")
	g.waits("alice", "shared")
	shared.must(t, "reset")
	for _, gone := range []string{"export", "volumes", "extension"} {
		if _, err := os.Stat(filepath.Join(shared.Dir, gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s outlives the reset: %v", gone, err)
		}
	}
	if left, err := g.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(left.Items) > 0 {
		t.Errorf("volumes outlive the reset: %v, %v", left.Items, err)
	}
}

// TestTheDefaultClassIsTheDeclaredOne verifies that the Supervisor's default StorageClass is restored, and that a
// default StorageClass of another provisioner is kept.
func TestTheDefaultClassIsTheDeclaredOne(t *testing.T) {
	g := seedGuest(t, "second-default")
	g.patch(
		schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, "", "vsphere-policy",
		`{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"false"}}}`,
	)
	eventually(t, happens, func() error {
		own, err := g.client.StorageV1().StorageClasses().Get(t.Context(), "vsphere-policy", metav1.GetOptions{})
		if err == nil && own.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			err = errors.New("it is not the default one again")
		}
		return err
	})
	other, err := g.client.StorageV1().StorageClasses().Get(t.Context(), "old-nfs", metav1.GetOptions{})
	if err != nil || other.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
		t.Errorf("%v, %v", other, err)
	}
}

func TestAProfileHasANamespace(t *testing.T) {
	g := seedGuest(t, "")
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubeflow.org/v1beta1", "kind": "Profile", "metadata": map[string]any{"name": "dora"},
		"spec": map[string]any{
			"owner":             map[string]any{"kind": "User", "name": "dora@example.com"},
			"resourceQuotaSpec": map[string]any{"hard": map[string]any{"cpu": "4"}},
		},
	}}
	older := profiles
	older.Version = "v1beta1"
	if _, err := shared.dynamic(t, "local").Resource(older).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		quota, err := g.client.CoreV1().ResourceQuotas("dora").Get(t.Context(), "kf-resource-quota", metav1.GetOptions{})
		if err == nil && quota.Spec.Hard.Cpu().Value() != 4 {
			err = fmt.Errorf("the quota is %v", quota.Spec.Hard)
		}
		return err
	})
	for name, role := range map[string]string{
		"default-editor": "kubeflow-edit", "default-viewer": "kubeflow-view", "namespaceAdmin": "kubeflow-admin",
	} {
		binding, err := g.client.RbacV1().RoleBindings("dora").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || binding.RoleRef.Name != role {
			t.Errorf("%s: %v, %v", name, binding, err)
		}
	}
	labelled := func(want map[string]string) {
		t.Helper()
		eventually(t, happens, func() error {
			ns, err := g.client.CoreV1().Namespaces().Get(t.Context(), "dora", metav1.GetOptions{})
			if err != nil {
				return err
			}
			delete(ns.Labels, "kubernetes.io/metadata.name")
			if !maps.Equal(ns.Labels, want) || ns.Annotations["owner"] != "dora@example.com" {
				return fmt.Errorf("it has %v, %v", ns.Labels, ns.Annotations)
			}
			return nil
		})
	}
	labelled(map[string]string{
		"istio-injection": "enabled", "app.kubernetes.io/part-of": "kubeflow-profile",
		"katib.kubeflow.org/metrics-collector-injection": "enabled",
		"serving.kubeflow.org/inferenceservice":          "enabled", "pipelines.kubeflow.org/enabled": "true",
	})
	// What is there stays, what is new comes, what is empty goes.
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	g.patch(configMaps, "kubeflow", labelsFile,
		`{"data":{"namespace-labels.yaml":"app.kubernetes.io/part-of: other\npipelines.kubeflow.org/enabled: \"\"\npod-security.kubernetes.io/enforce: baseline\n"}}`)
	labelled(map[string]string{
		"istio-injection": "enabled", "app.kubernetes.io/part-of": "kubeflow-profile",
		"katib.kubeflow.org/metrics-collector-injection": "enabled",
		"serving.kubeflow.org/inferenceservice":          "enabled", "pod-security.kubernetes.io/enforce": "baseline",
	})
	if err := shared.dynamic(t, "local").Resource(profiles).Delete(
		t.Context(), "dora", metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		_, err := g.client.CoreV1().Namespaces().Get(t.Context(), "dora", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("its namespace is still there: %w", err)
		}
		return nil
	})
	// Nothing is done while no controller runs, nor by a file that is none.
	g.patch(configMaps, "kubeflow", labelsFile, `{"data":{"namespace-labels.yaml":"- a list\n"}}`)
	g.logs("kubeflow", "kustomize.component=profiles", "is not a map of strings")
}

// writer returns a pod that writes its own file, waits for another pod's file and prints both.
func (g *guest) writer(namespace, claim, own, other string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "writer-" + own, Labels: map[string]string{"app": "writer"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "t", Image: "busybox:stable", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/mnt"}},
				Command: []string{
					"sh", "-c",
					"echo " + own + " on $NODE > /mnt/" + own + "; until [ -s /mnt/" + other + " ]; do sleep 0.1; done; cat /mnt/" +
						own + " /mnt/" + other,
				},
				Env: []corev1.EnvVar{
					{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
				},
			}},
			Volumes: []corev1.Volume{
				{
					Name: "v",
					VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
					},
				},
			},
			Affinity: &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey:   "kubernetes.io/hostname",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "writer"}},
				}}},
			},
		},
	}
	made, err := g.client.CoreV1().Pods(namespace).Create(g.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return made
}

func TestPodsOnTwoNodesShareAVolume(t *testing.T) {
	g := seedGuest(t, "by-hand")
	g.make(g.claim("default", "shared", "nfs-client", corev1.ReadWriteMany))
	v := g.bound("default", "shared")
	if v.Spec.NFS == nil || v.Spec.NFS.Server != g.told["nfs.server"] ||
		v.Annotations["pv.kubernetes.io/provisioned-by"] != "cluster.local/nfs-subdir-external-provisioner" {
		t.Fatalf("%+v", v)
	}
	folder := filepath.Join(shared.Dir, "export", filepath.Base(v.Spec.NFS.Path))
	for own, other := range map[string]string{"a": "b", "b": "a"} {
		g.writer("default", "shared", own, other)
	}
	nodes := map[string]bool{}
	for _, own := range []string{"a", "b"} {
		var pod *corev1.Pod
		eventually(t, happens, func() (err error) {
			if pod, err = g.client.CoreV1().Pods("default").Get(t.Context(), "writer-"+own, metav1.GetOptions{}); err == nil &&
				pod.Status.Phase != corev1.PodSucceeded {
				err = fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return err
		})
		nodes[pod.Spec.NodeName] = true
		data, err := g.client.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.HasPrefix(string(data), "stand-in: ") || !strings.Contains(string(data), "\na on ") ||
			!strings.Contains(string(data), "\nb on ") {
			t.Errorf("%s says %s, %v", own, data, err)
		}
		if text, err := os.ReadFile(filepath.Join(folder, own)); err != nil ||
			string(text) != own+" on "+pod.Spec.NodeName+"\n" {
			t.Errorf("the file of %s holds %q, %v", own, text, err)
		}
	}
	if len(nodes) != 2 {
		t.Errorf("they ran on %v", nodes)
	}
	// The class archives what it held.
	for _, own := range []string{"a", "b"} {
		if err := g.client.CoreV1().Pods("default").Delete(t.Context(), "writer-"+own, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.client.CoreV1().PersistentVolumeClaims("default").Delete(
		t.Context(), "shared", metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, happens, func() error {
		_, err := os.Stat(filepath.Join(filepath.Dir(folder), "archived-"+filepath.Base(folder), "a"))
		return err
	})
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	// What claims of profiles get, and what they keep.
	for _, c := range []struct {
		situation, namespace, class string
		mode                        corev1.PersistentVolumeAccessMode
		want                        string
	}{
		{"many write, no class", "bob", "", corev1.ReadWriteMany, "nfs-client"},
		{"many write, the cluster's own class", "bob", "vsphere-policy", corev1.ReadWriteMany, "nfs-client"},
		{"one writes", "bob", "vsphere-policy", corev1.ReadWriteOnce, "vsphere-policy"},
		{"another class", "bob", "vsphere-policy-latebinding", corev1.ReadWriteMany, "vsphere-policy-latebinding"},
		{"another namespace", "default", "vsphere-policy", corev1.ReadWriteMany, "vsphere-policy"},
	} {
		if got, err := g.classOf(g.claim(c.namespace, "try", c.class, c.mode)); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.situation, got, err)
		}
	}
}
