// Package argocd fakes Argo CD's application controller, limited to Applications and cluster Secrets. For each
// Application, the fake connects to the target cluster with the credentials in the Secret, lists the cluster's
// objects, and writes the result to the Application's status. The fake runs only while the controller's StatefulSet
// has a ready replica.
//
// Source: argoproj/argo-cd, master at 37ee0097 (version 3.6.0).
//
//   - How cluster Secrets are selected and parsed: util/settings/cluster_informer.go, util/db/cluster.go
//   - How the cluster of an Application is determined: util/argo/argo.go (GetDestinationServer, GetDestinationCluster)
//   - Validation and its order: util/argo/argo.go (ValidatePermissions), controller/appcontroller.go
//   - How the cluster is read: gitops-engine/pkg/cache/cluster.go (sync, processApi)
//   - The status: controller/state.go (CompareAppState), controller/cache/cache.go (GetManagedLiveObjs)
//
// Known differences:
//   - Repositories are not read. All sources render to zero objects, so an Application is Synced unless its cluster
//     causes an error.
//   - The fake lists only one object of each kind. It does not watch a cluster, but lists it again after 30 seconds.
//   - If several Secrets have the same address, the first by name is used. Upstream's index has no order.
//   - Patterns in a project's destinations are "*" or exact names.
//   - Not implemented: syncs, sharding, skip-reconcile, respectRBAC, project-scoped clusters, Applications in other
//     namespaces, the cluster's connection state in the cache, and the Argo CD API.
package argocd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"carrick/cluster/sandbox/standin"
)

const namespace, controller = "argocd", "argocd-application-controller"

var (
	applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	projects     = applications.GroupVersion().WithResource("appprojects")
)

// application contains the fields of an Application that this fake reads and writes.
type application struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Project     string      `json:"project"`
		Destination destination `json:"destination"`
	} `json:"spec"`
	Status status `json:"status"`
}

type destination struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	Namespace string `json:"namespace"`
}

type status struct {
	Conditions   []condition       `json:"conditions"`
	Health       map[string]string `json:"health"`
	Sync         map[string]string `json:"sync"`
	ReconciledAt string            `json:"reconciledAt"`
}

type condition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Player is the fake application controller of one cluster.
type Player struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	synced  map[string]sync // by UID of the cluster Secret
	end     func()
}

// Start runs the controller until Close is called or ctx is done.
func Start(ctx context.Context, config *rest.Config) (_ *Player, err error) {
	p := &Player{synced: map[string]sync{}}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if p.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	p.end, err = standin.LoopOnChange(ctx, config, p.look, applications, projects,
		corev1.SchemeGroupVersion.WithResource("secrets"), appsv1.SchemeGroupVersion.WithResource("statefulsets"))
	return p, err
}

// Close stops the controller. The statuses remain.
func (p *Player) Close() { p.end() }

// look reconciles every Application once.
func (p *Player) look(ctx context.Context) error {
	set, err := p.client.AppsV1().StatefulSets(namespace).Get(ctx, controller, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && set.Status.ReadyReplicas == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	clusters, err := p.clusters(ctx)
	if err != nil {
		return err
	}
	list, err := p.dynamic.Resource(applications).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		var app application
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &app); err != nil {
			return err
		}
		if err := p.write(ctx, &app, p.compare(ctx, &app, clusters)); err != nil {
			return err
		}
	}
	return nil
}

// write writes the conditions to the Application's status. It skips unchanged conditions for three minutes
// (timeout.reconciliation).
func (p *Player) write(ctx context.Context, app *application, wrong []condition) error {
	now := status{Conditions: wrong}
	now.Sync, now.Health = map[string]string{"status": "Synced"}, map[string]string{"status": "Healthy"}
	if len(wrong) > 0 {
		now.Sync["status"], now.Health["status"] = "Unknown", "Unknown"
	}
	was := app.Status
	at, _ := time.Parse(time.RFC3339, was.ReconciledAt)
	if maps.Equal(was.Sync, now.Sync) && slices.Equal(was.Conditions, wrong) && time.Since(at) < 3*time.Minute {
		return nil
	}
	now.ReconciledAt = time.Now().UTC().Format(time.RFC3339)
	patch, err := yaml.Marshal(map[string]any{"status": now})
	if err == nil {
		patch, err = yaml.YAMLToJSON(patch)
	}
	if err != nil {
		return err
	}
	_, err = p.dynamic.Resource(applications).Namespace(namespace).Patch(ctx, app.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: controller})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// compare returns the error conditions of an Application.
func (p *Player) compare(ctx context.Context, app *application, clusters []cluster) []condition {
	invalid := func(format string, args ...any) []condition {
		return []condition{{"InvalidSpecError", fmt.Sprintf(format, args...)}}
	}
	project, err := p.dynamic.Resource(projects).Namespace(namespace).Get(ctx, app.Spec.Project, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return invalid("Application referencing project %s which does not exist", app.Spec.Project)
	} else if err != nil {
		return []condition{{"UnknownError", err.Error()}}
	}
	to, err := target(app.Spec.Destination, clusters)
	if err != nil {
		return invalid("%s", err)
	}
	if in := app.Spec.Destination.Namespace; !permitted(project, to, in) {
		return invalid("application destination server '%s' and namespace '%s' do not match any of the allowed destinations "+
			"in project '%s'", cmp.Or(app.Spec.Destination.Name, to.server), in, app.Spec.Project)
	}
	if err := p.sync(ctx, to); err != nil {
		const said = "Failed to load live state: failed to get cluster info for %q: error synchronizing cache state : %v"
		return []condition{{"ComparisonError", fmt.Sprintf(said, to.server, err)}}
	}
	return nil
}

// target returns the cluster in a destination.
func target(d destination, clusters []cluster) (cluster, error) {
	server := strings.TrimRight(d.Server, "/")
	if d.Name != "" {
		if server != "" {
			const said = "application destination can't have both name and server defined: %s %s"
			return cluster{}, fmt.Errorf(said, d.Name, d.Server)
		}
		var of []string
		for _, c := range clusters {
			if c.name == d.Name {
				of = append(of, c.server)
			}
		}
		switch len(of) {
		case 0:
			return cluster{}, fmt.Errorf("there are no clusters with this name: %s", d.Name)
		case 1:
			server = of[0]
		default:
			return cluster{}, fmt.Errorf("there are %d clusters with the same name: [%s]", len(of), strings.Join(of, " "))
		}
	}
	for _, c := range clusters {
		if c.server == server {
			return c, nil
		}
	}
	return cluster{}, fmt.Errorf("error getting cluster by server %q: cluster %q not found", server, server)
}

// permitted reports whether a project allows a destination.
func permitted(project *unstructured.Unstructured, to cluster, in string) bool {
	all, _, _ := unstructured.NestedSlice(project.Object, "spec", "destinations")
	return slices.ContainsFunc(all, func(d any) bool {
		m, _ := d.(map[string]any)
		matches := func(key, value string) bool { return m[key] == "*" || value != "" && m[key] == value }
		return (matches("server", to.server) || matches("name", to.name)) && matches("namespace", in)
	})
}
