// Package amalthea fakes Renku's session operator. For an AmaltheaSession it creates a StatefulSet, a
// PersistentVolumeClaim, a Service, an Ingress and a Secret, and writes the session's state and URL into its status.
// The session owns these objects. The fake runs only while a Deployment of the operator's chart is available, and only
// for the namespaces in the Deployment's environment.
//
// Source: SwissDataScienceCenter/amalthea, tags 0.30.2 (e97a521) and 0.31.0 (4760427). The newer 82726e5 deletes the
// Ingress of a hibernated session.
//
//   - Watched namespaces: cmd/amalthea/main.go (CLUSTER_SCOPED, RELEASE_NAMESPACE)
//   - Objects of a session: api/v1alpha1/amaltheasession_children.go; the containers that authenticate users:
//     api/v1alpha1/auth_templates.go
//   - Fields that are updated after creation: internal/controller/children.go
//   - State, error and counts: internal/controller/children.go (State, Status),
//     internal/controller/children_conditions.go, internal/controller/status.go
//   - URL: api/v1alpha1/amaltheasession_types.go (GetURL, UrlScheme)
//
// Upstream's operator does not create the volume of a session. This fake creates it, like the StorageClass's
// provisioner would (volume.go).
//
// Known differences:
//   - If an object cannot be applied, the next change or resync retries it, without exponential backoff.
//   - A session is Running as soon as its pod is running. Upstream also waits for the StatefulSet's status. In
//     upstream, a session also fails if its pod is unschedulable for 10 minutes.
//   - Nothing runs in a session's pod, and its containers have no probes. The Secret is empty.
//   - Not implemented: conditions, runID, culling and hibernation of idle sessions, cloning of repositories, data
//     sources, extra containers, metadata templates, reconcile strategies, adopted Secrets, locations other than local
//     (FirecREST, Run:ai), sessions of type NonInteractive, and the rewriting of images.
package amalthea

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

const (
	operatorLabel = "app.kubernetes.io/name=amalthea-sessions"
	mark          = "carrick/stand-in"
	manager       = "amalthea-sessions"
)

var sessions = schema.GroupVersionResource{Group: "amalthea.dev", Version: "v1alpha1", Resource: "amaltheasessions"}

// Operator is the fake session operator of one cluster.
type Operator struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	end     func()
}

// installed is an installation of the operator.
type installed struct {
	namespace string // watched namespace; "" means all
	https     bool   // all sessions use https
	sidecars  string // image of the sidecar containers
}

// Start runs the operator until Close is called or ctx is done.
func Start(ctx context.Context, config *rest.Config) (*Operator, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	o := &Operator{client: client, dynamic: untyped}
	kinds := []schema.GroupVersionResource{
		sessions, appsv1.SchemeGroupVersion.WithResource("deployments"),
		corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("persistentvolumes"),
	}
	for _, kind := range resourceOf {
		kinds = append(kinds, kind)
	}
	o.end, err = standin.LoopOnChange(ctx, config, o.look, kinds...)
	return o, err
}

// Close stops the operator. Its objects remain.
func (o *Operator) Close() { o.end() }

// look reconciles all sessions once.
func (o *Operator) look(ctx context.Context) error {
	deployments, err := o.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: operatorLabel})
	if err != nil {
		return err
	}
	var all []error
	for i := range deployments.Items {
		this, runs := read(&deployments.Items[i])
		if !runs {
			continue
		}
		list, err := o.dynamic.Resource(sessions).Namespace(this.namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the CustomResourceDefinition does not exist
		}
		if err != nil {
			return err
		}
		for j := range list.Items {
			all = append(all, o.reconcile(ctx, this, &list.Items[j]))
		}
	}
	return errors.Join(append(all, o.sweep(ctx))...)
}

// read parses the operator's settings in its Deployment. The bool reports whether the Deployment is available.
func read(d *appsv1.Deployment) (installed, bool) {
	this := installed{namespace: "default", sidecars: "renku/sidecars:latest"}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, env := range container.Env {
			switch env.Name {
			case "RELEASE_NAMESPACE":
				this.namespace = cmp.Or(env.Value, this.namespace)
			case "HTTPS_SESSION_INGRESS":
				this.https = strings.EqualFold(env.Value, "true")
			case "SIDECARS_IMAGE":
				this.sidecars = cmp.Or(env.Value, this.sidecars)
			}
		}
		for _, env := range container.Env {
			if env.Name == "CLUSTER_SCOPED" && env.Value == "true" {
				this.namespace = ""
			}
		}
	}
	return this, d.Status.AvailableReplicas > 0
}

// reconcile creates a session's objects and writes its status.
func (o *Operator) reconcile(ctx context.Context, this installed, object *unstructured.Unstructured) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	var s session
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
		return err
	}
	var all []error
	for _, made := range s.objects(this) {
		all = append(all, o.apply(ctx, made))
	}
	if err := errors.Join(append(all, o.bind(ctx, &s))...); err != nil {
		// As in upstream, the first status contains the URL, and errors are only logged.
		if url, _, _ := unstructured.NestedString(object.Object, "status", "url"); url == "" {
			err = errors.Join(err, o.report(ctx, object, status{State: notReady, URL: s.url(this)}))
		}
		return err
	}
	pod, err := o.client.CoreV1().Pods(s.Namespace).Get(ctx, s.Name+"-0", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	now := s.fares(this, pod)
	if err != nil {
		now = s.fares(this, nil)
		if o.overQuota(ctx, &s) {
			now.State, now.Error = failed, "Quota exceeded: the resource pool has too few free resources for the session"
		}
	}
	return o.report(ctx, object, now)
}

// overQuota reports whether a quota prevents the creation of the session's pod.
func (o *Operator) overQuota(ctx context.Context, s *session) bool {
	events, err := o.client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=StatefulSet,involvedObject.name=" + s.Name,
	})
	return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return e.Reason == "FailedCreate" && strings.Contains(e.Message, "exceeded quota")
	})
}

// report writes a status unless it is unchanged.
func (o *Operator) report(ctx context.Context, object *unstructured.Unstructured, now status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now)
	if err != nil {
		return err
	}
	was, _, _ := unstructured.NestedMap(object.Object, "status")
	if was["state"] == fields["state"] && was["url"] == fields["url"] && was["error"] == fields["error"] &&
		reflect.DeepEqual(was["containerCounts"], fields["containerCounts"]) {
		return nil
	}
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(),
		"metadata": map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()},
		"status":   fields,
	}}
	_, err = o.dynamic.Resource(sessions).Namespace(object.GetNamespace()).
		ApplyStatus(ctx, object.GetName(), applied, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// apply creates or updates an object. It only creates PersistentVolumeClaims, because they are mostly immutable.
func (o *Operator) apply(ctx context.Context, made runtime.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: fields}
	delete(object.Object, "status")
	resource := o.dynamic.Resource(resourceOf[object.GetKind()]).Namespace(object.GetNamespace())
	if object.GetKind() == "PersistentVolumeClaim" {
		if _, err = resource.Create(ctx, object, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

var resourceOf = map[string]schema.GroupVersionResource{
	"StatefulSet":           {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"Service":               {Version: "v1", Resource: "services"},
	"Secret":                {Version: "v1", Resource: "secrets"},
	"Ingress":               {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
}

func ready(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodSucceeded {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
