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

// networkDown is the reason of a virtual node whose tunnel does not work. If the cluster has no
// network objects for the provider, its ForeignCluster reports that networking is disabled, and
// no tunnel is required (liqotech/liqo 557c199cf:
// pkg/virtualKubelet/liqoNodeProvider/{conditions,utils}.go, and v1.0.0).
const networkDown = "LiqoNetworkingDown"

func virtualNodeReady(ctx context.Context, e steps.Env) steps.Result {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if s == nil {
		return steps.Undone("the consumer has requested no resources yet, so there is no virtual node")
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

// present returns an object, or nil if it does not exist.
func present(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, namespace, name string,
) (*unstructured.Unstructured, error) {
	o, err := e.Cluster.Get(ctx, gvr, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// kubeletPods shows the pods of the tenant namespace, among them the virtual
// kubelet.
func kubeletPods(e steps.Env, s *unstructured.Unstructured) string {
	return e.Kubectl() + " -n " + s.GetNamespace() + " get pods    # then logs of vk-" + s.GetName()
}

// judgeVirtual reports whether the VirtualNode that Liqo creates for a slice is running. If it is
// not, the verdict gives the reason.
func judgeVirtual(e steps.Env, s, v *unstructured.Unstructured) (steps.Result, bool) {
	granted := lastMoved(s, conditions(s, "status", "conditions"))
	switch {
	case v == nil && !makesNode(s):
		return steps.Failed(
			fmt.Sprintf(
				"there is no VirtualNode: ResourceSlice %s lacks the annotation %s: \"true\"", s.GetName(), virtualNodeNote,
			),
			"",
		), false
	case v == nil:
		return steps.Waits(granted, "Liqo has not created VirtualNode %s for the slice yet", s.GetName()).
			Or(
				e.Kubectl() + " -n " + s.GetNamespace() + " get identities.authentication.liqo.io    # resourceslice-" +
					s.GetName() + " must name a kubeconfig; otherwise see the logs of liqo-controller-manager",
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

// judgeNode judges the node of a slice.
func judgeNode(e steps.Env, s *unstructured.Unstructured, n *corev1.Node) steps.Result {
	if n.Labels[nodeTypeLabel] != virtualNodeType {
		return steps.Failed(
			fmt.Sprintf("node %s is a node of this cluster, so a virtual node of that name cannot be created", n.Name),
			"create a slice with another name and the labels of the example: "+page,
		)
	}
	if down := check.NodeCondition(n, corev1.NodeNetworkUnavailable); down.Status == corev1.ConditionTrue {
		if down.Reason == networkDown && !joins(e) {
			id, _ := peerID(e) // the slice was found by this id
			return steps.Failed(
				fmt.Sprintf(
					"node %s waits for a tunnel (%s) although network.enabled is false. There is a Configuration, a gateway or a "+
						"Connection for the %s",
					n.Name, networkDown, e.PeerName(),
				),
				e.Kubectl()+" get configurations.networking.liqo.io,gatewayservers.networking.liqo.io,"+
					"gatewayclients.networking.liqo.io,connections.networking.liqo.io -A -l "+remoteIDLabel+"="+id+
					"    # delete what is left of an earlier peering, or answer network.enabled: true in "+e.LinkFile())
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
	if lacks := roomless(s, n); len(lacks) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"node %s is ready but cannot run a pod: it offers no %s. The provider grants only what is requested and what its "+
					"chart sets in offloading.defaultNodeResources", n.Name, check.OrNone(lacks),
			),
			"answer resources."+answerFor(lacks[0])+", then: "+e.ApplyStep("resources"),
		)
	}
	have := map[string]string{}
	for name, q := range n.Status.Allocatable {
		have[string(name)] = q.String()
	}
	return steps.Passed("node %s is ready, with %s", n.Name, amounts(have))
}

// roomless returns the resources of which the node has none, out of CPU, memory, pods and all
// others that the slice requests. A node without pod capacity runs no pods, however much CPU it
// has.
//
// Source: liqotech/liqo pkg/virtualKubelet/liqoNodeProvider/utils.go (applyVirtualNodeStatus:
// the node offers what is granted, and nothing else), 557c199cf.
func roomless(s *unstructured.Unstructured, n *corev1.Node) []string {
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

// answerFor returns how to change the answer for a resource.
func answerFor(name string) string {
	if usual := map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"}[name]; usual != "" {
		return name + " with " + usual
	}
	return "other without " + name
}
