package liqonet

import (
	"context"
	"encoding/json"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/sandbox/standin"
)

// objects is a snapshot for one pass. Each kind is listed at most once. The fields after networks are empty unless
// gateway resources or running gateways exist.
type objects struct {
	configurations []configuration
	ends           []end
	networks       []network

	templates   map[string][]metav1.PartialObjectMetadata // by mode of the gateway resources
	secrets     []corev1.Secret                           // only Secrets with the label remoteID
	keys        []publicKey
	connections []unstructured.Unstructured
	deployments []appsv1.Deployment // this field and the next two contain only objects of gateways
	services    []corev1.Service
	pods        []corev1.Pod
}

func (p *Player) read(ctx context.Context) (objects, error) {
	var all objects
	var err1, err2 error
	all.configurations, err1 = list[configuration](ctx, p, configurations)
	all.networks, err2 = list[network](ctx, p, networks)
	faults := errors.Join(err1, err2)
	for _, of := range []side{serverSide, clientSide} {
		found, err := list[end](ctx, p, of.resource)
		for i := range found {
			found[i].side = of
		}
		all.ends, faults = append(all.ends, found...), errors.Join(faults, err)
	}
	if faults != nil || len(all.ends)+len(p.gateways) == 0 {
		return all, faults
	}
	return all, p.children(ctx, &all)
}

// children lists the objects that gateway resources own or use.
func (p *Player) children(ctx context.Context, all *objects) error {
	ofGateways := componentL + "=" + component
	var err1, err2, err3, err4, err5, err6 error
	all.deployments, err1 = standin.Listed[appsv1.Deployment](ctx, p.seen, deployments, "", ofGateways)
	all.services, err2 = standin.Listed[corev1.Service](ctx, p.seen, services, "", ofGateways)
	all.pods, err3 = standin.Listed[corev1.Pod](ctx, p.seen, pods, "", ofGateways)
	all.secrets, err4 = standin.Listed[corev1.Secret](ctx, p.seen, secrets, "", remoteID)
	all.connections, err5 = p.seen.List(ctx, connections, "", "")
	all.keys, err6 = list[publicKey](ctx, p, publicKeys)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return err
	}
	all.templates = map[string][]metav1.PartialObjectMetadata{}
	for _, of := range []side{serverSide, clientSide} {
		found, err := list[metav1.PartialObjectMetadata](ctx, p, of.template)
		if err != nil {
			return err
		}
		all.templates[of.mode] = found
	}
	return nil
}

// find returns the object with the given namespace and name, or nil.
func find[T any, P interface {
	*T
	metav1.Object
}](all []T, namespace, name string) P {
	for i := range all {
		if o := P(&all[i]); o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

// list returns all objects of a kind. It returns none if the API server does not serve the kind.
func list[T any](ctx context.Context, p *Player, kind resource) ([]T, error) {
	all, err := standin.Listed[T](ctx, p.seen, kind, "", "")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return all, err
}

// apply applies an object with server-side apply.
func (p *Player) apply(ctx context.Context, kind resource, object any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	made := &unstructured.Unstructured{Object: fields}
	delete(made.Object, "status")
	_, err = p.dynamic.Resource(kind).Namespace(made.GetNamespace()).
		Apply(ctx, made.GetName(), made, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// merge sends a merge patch for an object or its subresource sub.
func (p *Player) merge(ctx context.Context, kind resource, namespace, name string, patch any, sub ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = p.dynamic.Resource(kind).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager}, sub...)
	if apierrors.IsNotFound(err) {
		return nil // the object has been deleted
	}
	return err
}

// status merges fields into an object's status.
func (p *Player) status(ctx context.Context, kind resource, namespace, name string, fields any) error {
	return p.merge(ctx, kind, namespace, name, map[string]any{"status": fields}, "status")
}
