package liqo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// usualPorts is the default range of node ports in Kubernetes.
var usualPorts = portRange{30000, 32767}

type portRange struct{ first, last int }

func (r portRange) String() string { return fmt.Sprintf("%d-%d", r.first, r.last) }

// nodePortFree verifies that no Service uses the node port, that the port is in the cluster's range, and that the API
// server accepts it in a dry run. The dry run finds conflicts that the list of Services does not show, but does not
// check the range (kubernetes/kubernetes: pkg/registry/core/service/portallocator/operation.go).
func nodePortFree(ctx context.Context, e steps.Env) steps.Result {
	port := e.Answers.Int("network.node-port")
	if port == 0 {
		return steps.Passed("the cluster chooses a free port")
	}
	all, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, "", cluster.Selector{})
	listed := err == nil
	if apierrors.IsForbidden(err) {
		all, err = check.List[corev1.Service](ctx, e.Cluster, check.Services, tenantNamespace(e), cluster.Selector{})
	}
	if err != nil {
		return steps.Errored(err)
	}
	for _, s := range all {
		if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.NodePort) == port }) {
			continue
		}
		if s.Namespace == tenantNamespace(e) && strings.HasPrefix(s.Name, "gw-") {
			return steps.Passed("port %d belongs to Service %s/%s of the gateway", port, s.Namespace, s.Name)
		}
		return steps.Failed(
			fmt.Sprintf("port %d is in use by Service %s/%s", port, s.Namespace, s.Name),
			"set network.node-port to another port, or leave it empty so that the cluster chooses a port",
		)
	}
	if r := inRange(ctx, e, port); r.Status != steps.Pass {
		return r
	}
	return tryNodePort(ctx, e, port, listed)
}

// inRange verifies that the port is in the cluster's node port range. If that range cannot be read, inRange uses the
// default range.
func inRange(ctx context.Context, e steps.Env, port int) steps.Result {
	of, known, err := nodePorts(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if port >= of.first && port <= of.last {
		return steps.Passed("port %d is in %s", port, of)
	}
	fix := "set network.node-port to a port in " + of.String() + ", or leave it empty so that the cluster chooses a port"
	if known {
		return steps.Failed(fmt.Sprintf("port %d is not in %s, the node port range of this cluster", port, of), fix)
	}
	return steps.Warned(
		fmt.Sprintf(
			"port %d is not in %s, the default node port range. The range of this cluster cannot be read",
			port, of,
		),
		fix,
	)
}

// nodePorts returns the cluster's range of node ports. If the API server's pod cannot be read, known is false and r is
// the default range.
func nodePorts(ctx context.Context, e steps.Env) (r portRange, known bool, err error) {
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, "kube-system", cluster.Selector{Labels: "component=kube-apiserver"},
	)
	if apierrors.IsForbidden(err) {
		return usualPorts, false, nil
	}
	if err != nil || len(pods) == 0 {
		return usualPorts, false, err
	}
	for _, c := range pods[0].Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			value, ok := strings.CutPrefix(arg, "--service-node-port-range=")
			first, last, cut := strings.Cut(value, "-")
			from, errFirst := strconv.Atoi(first)
			to, errLast := strconv.Atoi(last)
			if ok && cut && errFirst == nil && errLast == nil {
				return portRange{from, to}, true, nil
			}
		}
	}
	return usualPorts, true, nil
}

// tryNodePort checks in a dry run whether the API server accepts a Service with the given node port. seen reports
// whether the Services of all namespaces were listed.
func tryNodePort(ctx context.Context, e steps.Env, port int, seen bool) steps.Result {
	taken, err := tracked.Look(
		ctx, fmt.Sprintf("node-port/%s/%s/%d", e.Side, tenantNamespace(e), port), 30*time.Second,
		func(ctx context.Context) (string, error) {
			return refusedPort(ctx, e.Cluster, tenantNamespace(e), port)
		},
	)
	switch {
	case apierrors.IsForbidden(err) && seen:
		return steps.Passed("no Service uses port %d. A dry run is not allowed", port)
	case err != nil:
		return steps.Errored(err)
	case taken != "":
		return steps.Failed(
			fmt.Sprintf("the API server rejects port %d: %s", port, taken),
			"set network.node-port to another port, or leave it empty so that the cluster chooses a port",
		)
	}
	return steps.Passed("the API server accepts port %d", port)
}

// refusedPort returns the reason why the API server would not assign port to a Service in namespace, or "" if it would.
// It uses a dry run and creates nothing.
func refusedPort(ctx context.Context, c *cluster.Cluster, namespace string, port int) (string, error) {
	trial := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "carrick-node-port", "namespace": namespace},
		"spec": map[string]any{
			"type":  "NodePort",
			"ports": []any{map[string]any{"port": int64(usualPort), "nodePort": int64(port), "protocol": "UDP"}},
		},
	}}
	_, err := c.Apply(ctx, trial, cluster.ApplyOptions{Manager: "carrick.node-port", DryRun: true})
	if apierrors.IsInvalid(err) {
		return failure.Explain(err), nil
	}
	return "", err
}
