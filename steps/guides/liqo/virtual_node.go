package liqo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// networkDown is the reason in a virtual node's condition NetworkUnavailable while the tunnel does not work. If the
// consumer has no network objects for the provider, the provider's ForeignCluster reports that networking is disabled.
// Liqo then requires no tunnel (liqotech/liqo 557c199cf: pkg/virtualKubelet/liqoNodeProvider/{conditions,utils}.go, and
// v1.0.0).
const networkDown = "LiqoNetworkingDown"

func virtualNodeReady(ctx context.Context, e steps.Env) steps.Result {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if s == nil {
		return steps.Undone("the consumer has requested no resources yet, so no virtual node exists")
	}
	var v, n *unstructured.Unstructured
	err = check.Together(
		func() (err error) { v, err = present(ctx, e, virtualNodes, s.GetNamespace(), s.GetName()); return err },
		func() (err error) { n, err = present(ctx, e, check.Nodes, "", s.GetName()); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	if r, ok := judgeVirtual(e, s, v); !ok {
		return r
	}
	if n == nil {
		return steps.Waits(
			lastMoved(v, conditions(v, "status", "conditions")), "VirtualNode %s is running, but its node does not exist yet",
			v.GetName(),
		).Or(kubeletPods(e, s))
	}
	node, err := check.As[corev1.Node](n)
	if err != nil {
		return steps.Errored(err)
	}
	return judgeNode(e, s, node)
}

// present returns the object, or nil if the object does not exist.
func present(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, namespace, name string,
) (*unstructured.Unstructured, error) {
	o, err := e.Cluster.Get(ctx, gvr, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// kubeletPods returns the command that lists the pods in the tenant namespace, including the virtual kubelet's pod.
func kubeletPods(e steps.Env, s *unstructured.Unstructured) string {
	return e.Kubectl() + " -n " + s.GetNamespace() + " get pods    # then logs of vk-" + s.GetName()
}

// judgeVirtual reports whether the VirtualNode that Liqo creates for slice s is running. If the VirtualNode is not
// running, the Result explains why.
func judgeVirtual(e steps.Env, s, v *unstructured.Unstructured) (steps.Result, bool) {
	granted := lastMoved(s, conditions(s, "status", "conditions"))
	switch {
	case v == nil && !makesNode(s):
		return steps.Failed(
			fmt.Sprintf(
				"no VirtualNode exists: ResourceSlice %s lacks the annotation %s: \"true\"", s.GetName(), virtualNodeNote,
			),
			"",
		), false
	case v == nil:
		return steps.Waits(granted, "Liqo has not created VirtualNode %s for the ResourceSlice yet", s.GetName()).
			Or(
				e.Kubectl() + " -n " + s.GetNamespace() + " get identities.authentication.liqo.io    # resourceslice-" +
					s.GetName() + " must reference a kubeconfig; otherwise see the logs of liqo-controller-manager",
			), false
	case v.GetDeletionTimestamp() != nil:
		return steps.Failed(
			fmt.Sprintf("VirtualNode %s is being deleted (finalizers %s)", v.GetName(), check.OrNone(v.GetFinalizers())),
			e.Kubectl()+" -n "+v.GetNamespace()+" describe virtualnodes.offloading.liqo.io "+v.GetName(),
		), false
	}
	if makes, ok, _ := unstructured.NestedBool(v.Object, "spec", "createNode"); ok && !makes {
		return steps.Failed(
			fmt.Sprintf("VirtualNode %s is configured to create no node (spec.createNode: false)", v.GetName()),
			fmt.Sprintf(
				`%s -n %s patch virtualnodes.offloading.liqo.io %s --type merge -p '{"spec":{"createNode":true}}'`, e.Kubectl(),
				v.GetNamespace(), v.GetName(),
			),
		), false
	}
	all := conditions(v, "status", "conditions")
	for _, kind := range []string{"VirtualKubelet", "Node"} {
		switch c := conditionOf(all, kind); c.status {
		case "Running":
		case "Draining", "Deleting":
			return steps.Failed(
				fmt.Sprintf("VirtualNode %s: %s is %s %s", v.GetName(), kind, c.status, c.why()),
				e.Kubectl()+" -n "+v.GetNamespace()+" describe virtualnodes.offloading.liqo.io "+v.GetName(),
			), false
		default:
			return steps.Waits(
				lastMoved(v, all), "VirtualNode %s: %s", v.GetName(),
				strings.TrimSpace(kind+" is "+cmp.Or(c.status, "None")+" "+c.why()),
			).Or(kubeletPods(e, s)), false
		}
	}
	return steps.Result{}, true
}

func judgeNode(e steps.Env, s *unstructured.Unstructured, n *corev1.Node) steps.Result {
	if n.Labels[nodeTypeLabel] != virtualNodeType {
		return steps.Failed(
			fmt.Sprintf("node %s is a node of this cluster, so a virtual node of that name cannot be created", n.Name),
			"create a ResourceSlice with another name and the labels of the example: "+page,
		)
	}
	if down := check.NodeCondition(n, corev1.NodeNetworkUnavailable); down.Status == corev1.ConditionTrue {
		if down.Reason == networkDown && !joins(e) {
			id, _ := peerID(e) // cannot fail, because the slice was found by this id
			return steps.Failed(
				fmt.Sprintf(
					"node %s waits for a tunnel (%s) although network.enabled is false. A Configuration, a gateway or a Connection "+
						"for the %s exists",
					n.Name, networkDown, e.PeerName(),
				),
				e.Kubectl()+" get configurations.networking.liqo.io,gatewayservers.networking.liqo.io,"+
					"gatewayclients.networking.liqo.io,connections.networking.liqo.io -A -l "+remoteIDLabel+"="+id+
					"    # delete the leftovers of an earlier peering, or set network.enabled: true in "+e.LinkFile())
		}
		if down.Reason == networkDown {
			return steps.Failed(
				fmt.Sprintf("node %s is up, but its network is down (%s). The tunnel does not work", n.Name, networkDown),
				"carrick check "+e.LinkFile()+" --only connection,gateway-up",
			)
		}
		return steps.Waits(
			down.LastTransitionTime.Time, "node %s has no network (%s %s)", n.Name, down.Reason, down.Message,
		).Or(e.Kubectl() + " describe node " + n.Name)
	}
	ready := check.NodeCondition(n, corev1.NodeReady)
	if ready.Status != corev1.ConditionTrue {
		since := ready.LastTransitionTime.Time
		if since.IsZero() {
			since = n.CreationTimestamp.Time
		}
		return steps.Waits(
			since, "node %s is not ready (%s)", n.Name, strings.Trim(ready.Reason+": "+ready.Message, ": "),
		).Or(kubeletPods(e, s))
	}
	if n.Spec.Unschedulable {
		return steps.Warned(
			fmt.Sprintf("node %s is ready but cordoned, so it accepts no pods", n.Name), e.Kubectl()+" uncordon "+n.Name,
		)
	}
	if lacks := missingCapacity(s, n); len(lacks) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"node %s is ready but cannot run a pod: it has no allocatable %s. The provider grants only the requested "+
					"resources and those in its Helm value offloading.defaultNodeResources", n.Name, check.OrNone(lacks),
			),
			"set resources."+answerFor(lacks[0])+", then: "+e.ApplyStep("resources"),
		)
	}
	have := map[string]string{}
	for name, q := range n.Status.Allocatable {
		have[string(name)] = q.String()
	}
	return steps.Passed("node %s is ready, with %s", n.Name, amounts(have))
}

// missingCapacity returns the resources that the node does not offer. It checks CPU, memory, pods and the other
// resources that the slice requests. A node without pod capacity runs no pods, regardless of its CPU capacity.
//
// Source: liqotech/liqo pkg/virtualKubelet/liqoNodeProvider/utils.go (applyVirtualNodeStatus: the node offers only
// granted resources), 557c199cf.
func missingCapacity(s *unstructured.Unstructured, n *corev1.Node) []string {
	needs := []string{"cpu", "memory", "pods"}
	for name, amount := range sliceResources(s) {
		if q, err := resource.ParseQuantity(amount); err == nil && !q.IsZero() && !slices.Contains(needs, name) {
			needs = append(needs, name)
		}
	}
	needs = slices.DeleteFunc(needs, func(name string) bool {
		has := n.Status.Allocatable[corev1.ResourceName(name)]
		return has.Sign() > 0
	})
	slices.Sort(needs)
	return needs
}

// answerFor returns the rest of a fix that begins with "set resources.", such as "cpu to 4".
func answerFor(name string) string {
	if usual := map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"}[name]; usual != "" {
		return name + " to " + usual
	}
	return "other to a list without " + name
}
