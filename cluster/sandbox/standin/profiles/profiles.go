// Package profiles fakes Kubeflow's profile controller. It runs while the namespace kubeflow has an available
// Deployment whose container manager mounts a ConfigMap with the key namespace-labels.yaml.
//
// Source: kubeflow/dashboard d8424648, components/profile-controller. The functions below are in
// controllers/profile_controller.go.
//
//   - The namespace of a Profile has the Profile's name, an annotation with the owner, the label istio-injection and
//     the labels of the file. A namespace with another owner stays unchanged: Reconcile, setNamespaceLabels.
//   - Only the log reports that a Profile has failed because of such a namespace. Upstream appends the condition
//     Failed (appendErrorConditionAndReturn), but updates the object instead of its status subresource. The
//     CustomResourceDefinition has that subresource (manifests/kustomize/base/crd/kubeflow.org_profiles.yaml), so the
//     API server drops the condition (kubernetes/apiextensions-apiserver v0.37.2,
//     pkg/registry/customresource/strategy.go).
//   - The file is parsed as YAML 1.1 into a map of strings: readDefaultLabelsFromFile. The Deployment that mounts it:
//     manifests/kustomize/base/manager/manager.yaml.
//   - ServiceAccounts, RoleBindings and the quota: updateServiceAccount, updateRoleBinding, updateResourceQuota. All
//     objects have the Profile as their controller, so they are deleted with it.
//   - The finalizer is added and removed at the end of a successful reconciliation, also of a Profile that is being
//     deleted: Reconcile.
//   - Pods have the label kustomize.component: kubeflow/kubeflow 0214c7ab,
//     components/profile-controller/config/overlays/kubeflow. In the commit above they have app: profile-controller
//     instead.
//
// Known differences: no AuthorizationPolicy is created and no plugin is applied. If the file cannot be read, this
// controller waits. Upstream's controller exits and crash-loops. A change to the file takes effect in the next pass. In
// upstream it takes effect after the kubelet has written it. A RoleBinding to another role stays unchanged. Upstream
// tries to change it and fails. While a namespace is being deleted, this controller does nothing. Upstream tries to
// reconcile it and fails.
package profiles

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

const (
	space     = "kubeflow" // namespace of the controller
	file      = "namespace-labels.yaml"
	container = "manager"
	ownerKey  = "owner" // annotation of a Profile's namespace
	finalizer = "profile-finalizer"
	manager   = "manager" // field manager
)

var kind = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "profiles"}

// profile contains the fields of a Profile that this fake reads.
type profile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Owner rbacv1.Subject           `json:"owner"`
		Quota corev1.ResourceQuotaSpec `json:"resourceQuotaSpec"`
	} `json:"spec"`
}

// Player is the fake profile controller of one cluster.
type Player struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	end     func()

	mu   sync.Mutex
	said standin.Said
}

// Start runs the controller until Close is called or ctx is done.
func Start(ctx context.Context, config *rest.Config) (*Player, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p := &Player{client: client, dynamic: untyped}
	p.said.Say("info", "starting the profile controller (stand-in)")
	p.end, err = standin.LoopOnChange(ctx, config, p.Look, kind, appsv1.SchemeGroupVersion.WithResource("deployments"),
		corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("namespaces"))
	return p, err
}

// Close stops the controller. Its objects remain.
func (p *Player) Close() { p.end() }

// Look reconciles every Profile once.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	labels, err := p.labels(ctx)
	if err != nil {
		return err
	}
	list, err := p.dynamic.Resource(kind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var faults []error
	for i := range list.Items {
		var one profile
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &one); err != nil {
			faults = append(faults, err)
			continue
		}
		if err := p.keep(ctx, &one, labels); err != nil {
			p.said.Once("error", "profile %s: %v", one.Name, err)
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// errIdle means that no profile controller is running.
var errIdle = errors.New("no profile controller is available")

// labels returns the default labels in the file that the controller mounts.
func (p *Player) labels(ctx context.Context) (map[string]string, error) {
	deployments, err := p.client.AppsV1().Deployments(space).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		if d.Status.AvailableReplicas == 0 || !runs(&d) {
			continue
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.ConfigMap == nil {
				continue
			}
			held, err := p.client.CoreV1().ConfigMaps(space).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			text, ok := held.Data[file]
			if !ok {
				continue
			}
			labels, err := parse(text)
			if err != nil {
				p.said.Once("error", "%s of %s is not a map of strings: %v", file, held.Name, err)
				return nil, fmt.Errorf("%s of %s: %w", file, held.Name, err)
			}
			return labels, nil
		}
	}
	return nil, errIdle
}

// parse parses the labels file (readDefaultLabelsFromFile). Unlike upstream's YAML library, the library here also
// accepts true and 1 as strings.
func parse(text string) (map[string]string, error) {
	labels := map[string]string{}
	err := yaml.Unmarshal([]byte(text), &labels)
	return labels, err
}

func runs(d *appsv1.Deployment) bool {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == container && d.Spec.Template.Labels["kustomize.component"] == "profiles" {
			return true
		}
	}
	return false
}

// Log returns the controller's log.
func (p *Player) Log(namespace, name, of string) (string, bool) {
	if namespace != space || of != container {
		return "", false
	}
	pod, err := p.client.CoreV1().Pods(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil || pod.Labels["kustomize.component"] != "profiles" {
		return "", false
	}
	return p.said.String(), true
}
