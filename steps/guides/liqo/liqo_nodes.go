package liqo

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// virtualSelector excludes the nodes that Liqo creates.
const virtualSelector = "liqo.io/type!=virtual-node"

func physicalNodes(ctx context.Context, e steps.Env) ([]*corev1.Node, error) {
	return check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{Labels: virtualSelector})
}

// leastKernel is upstream's minimum kernel version (liqotech/liqo:
// docs/installation/requirements.md).
const leastKernel = "5.10"

var kernelNumber = regexp.MustCompile(`^\d+\.\d+`)

func kernels(ctx context.Context, e steps.Env) steps.Result {
	nodes, err := physicalNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var old, untold, seen []string
	for _, n := range nodes {
		if n.Status.NodeInfo.OperatingSystem == "windows" {
			continue
		}
		kernel := clean.Text(n.Status.NodeInfo.KernelVersion)
		have, err := version.ParseGeneric(kernelNumber.FindString(kernel))
		switch {
		case err != nil:
			untold = append(untold, n.Name)
		case !have.AtLeast(version.MustParseGeneric(leastKernel)):
			old = append(old, n.Name+" runs "+kernel)
		case !slices.Contains(seen, kernel):
			seen = append(seen, kernel)
		}
	}
	switch {
	case len(old) > 0:
		return steps.Warned(some(old)+". Liqo's network requires Linux "+leastKernel+" or later",
			e.Kubectl()+
				" get nodes -o custom-columns=NAME:.metadata.name,KERNEL:.status.nodeInfo.kernelVersion    # upgrade the old "+
				"nodes, or keep Liqo's pods off them")
	case len(seen) == 0:
		return steps.Skipped("%s without a kernel version in the status", steps.Plural(len(nodes), "node"))
	case len(untold) > 0:
		return steps.Warned("node "+some(untold)+" does not report its kernel version", e.Kubectl()+" get nodes -o wide")
	}
	return steps.Passed("%s with %s", steps.Plural(len(nodes), "node"), strings.Join(seen, ", "))
}

func platform(ctx context.Context, e steps.Env) steps.Result {
	nodes, err := physicalNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, n := range nodes {
		if _, openshift := n.Labels["node.openshift.io/os_id"]; openshift {
			return steps.Warned("this cluster runs OpenShift, on which Liqo's networking module is unfinished",
				"offload without connecting the networks: set network.enabled: false under answers in "+e.LinkFile()+
					", and install Liqo with networking.enabled=false    # "+matrixPage)
		}
	}
	cilium, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "kube-system", "cilium-config")
	switch {
	case apierrors.IsNotFound(err):
		return steps.Passed("%s; no OpenShift, no Cilium", steps.Plural(len(nodes), "node"))
	case err != nil:
		return steps.Errored(err)
	}
	if mode := cilium.Data["kube-proxy-replacement"]; mode == "true" || mode == "strict" {
		return steps.Warned(
			fmt.Sprintf(
				"Cilium replaces kube-proxy (kube-proxy-replacement: %s). A NodePort or LoadBalancer of this side cannot reach "+
					"pods on the other side",
				mode,
			),
			"expose the pods through an Ingress or a Service of this cluster's own pods    # "+matrixPage,
		)
	}
	return steps.Passed("Cilium with kube-proxy")
}
