// Package amalthea plays Renku's session operator (SwissDataScienceCenter/
// amalthea, internal/controller and api/v1alpha1): for an AmaltheaSession it
// makes a StatefulSet, a PersistentVolumeClaim, a Service and an Ingress, and
// says in the status how the session fares and where it is found. It does so
// while a Deployment of the operator's chart is available in the cluster, for
// the namespaces that its environment names. All that it makes belongs to the
// session and goes with it.
//
// Nothing runs in a session's pod. Culling, hibernation by idleness, cloning
// of repositories, data sources and the authentication of users are not
// played.
package amalthea

import (
	"context"
	"errors"

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

// Operator plays for one cluster.
type Operator struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	end     func()
}

// installed is an operator that the cluster runs.
type installed struct {
	namespace string // whose sessions it takes care of; "" is all
	https     bool   // it takes every session for one with https
}

// Start plays until Close, or until ctx ends.
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

// Close ends it and leaves what it made.
func (o *Operator) Close() { o.end() }

// look takes care of every session once.
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
			continue // the definition is not there
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

// read returns what a Deployment's environment says, and whether it runs.
func read(d *appsv1.Deployment) (installed, bool) {
	this := installed{namespace: d.Namespace}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, env := range container.Env {
			switch env.Name {
			case "RELEASE_NAMESPACE":
				this.namespace = env.Value
			case "HTTPS_SESSION_INGRESS":
				this.https = env.Value == "true"
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

// reconcile makes what a session needs and writes how it fares.
func (o *Operator) reconcile(ctx context.Context, this installed, object *unstructured.Unstructured) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	var s session
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
		return o.report(ctx, object, status{State: failed, Error: err.Error()})
	}
	for _, made := range s.objects() {
		if err := o.apply(ctx, made); err != nil {
			return o.report(ctx, object, status{State: failed, Error: err.Error()})
		}
	}
	if err := o.bind(ctx, &s); err != nil {
		return o.report(ctx, object, status{State: failed, Error: err.Error()})
	}
	pod, err := o.client.CoreV1().Pods(s.Namespace).Get(ctx, s.Name+"-0", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		pod = nil
	}
	return o.report(ctx, object, s.fares(this, pod))
}

// report writes a status where it differs from what stands there.
func (o *Operator) report(ctx context.Context, object *unstructured.Unstructured, now status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now)
	if err != nil {
		return err
	}
	was, _, _ := unstructured.NestedMap(object.Object, "status")
	if was["state"] == fields["state"] && was["url"] == fields["url"] && was["error"] == fields["error"] {
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

// apply makes an object as it shall be. A claim, which can hardly be changed,
// is only made.
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
	"Ingress":               {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
