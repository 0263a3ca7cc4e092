package vsphere

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// apiServerPorts lists the usual ports on which pods reach the API server. The Service kubernetes uses 443, and its
// endpoints use 6443.
var apiServerPorts = []int32{443, 6443}

// apiServer returns the addresses and ports through which pods reach the API server: those of the Service kubernetes
// and of its endpoints. ports always includes apiServerPorts.
func apiServer(ctx context.Context, e steps.Env) (addresses []string, ports []int32, err error) {
	e.Cluster.StartGet(check.Services, "default", "kubernetes")
	of := cluster.Selector{Labels: discoveryv1.LabelServiceName + "=kubernetes"}
	behind, err := check.List[discoveryv1.EndpointSlice](ctx, e.Cluster, check.EndpointSlices, "default", of)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, nil, err
	}
	ports = slices.Clone(apiServerPorts)
	for _, s := range behind {
		for _, at := range s.Endpoints {
			addresses = append(addresses, at.Addresses...)
		}
		for _, p := range s.Ports {
			if p.Port != nil {
				ports = append(ports, *p.Port)
			}
		}
	}
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, "default", "kubernetes")
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return addresses, ports, nil
	case err != nil:
		return nil, nil, err
	}
	for _, p := range s.Spec.Ports {
		ports = append(ports, p.Port)
	}
	return append(addresses, s.Spec.ClusterIPs...), ports, nil
}

// egressDenied finds NetworkPolicies that prevent the provisioner's pods from reaching the API
// server. found is "" if there are none. NetworkPolicies do not affect NFS, because the kubelet
// mounts the export.
func egressDenied(ctx context.Context, e steps.Env, p *provisioner) (found, fix string, err error) {
	addresses, ports, err := apiServer(ctx, e)
	if err != nil {
		return "", "", err
	}
	pod := p.Spec.Template.Labels
	by, err := check.EgressDeniedBy(ctx, e.Cluster, p.Namespace, pod, addresses, ports...)
	if apierrors.IsForbidden(err) {
		return "", "", nil
	}
	if err != nil || len(by) == 0 {
		return "", "", err
	}
	found = fmt.Sprintf(
		"NetworkPolicy %s in namespace %s does not allow pods of %s to reach the API server. If the network plugin "+
			"enforces the policy, claims get no volume",
		check.Some(by), p.Namespace, p.Name,
	)
	return found, check.AllowEgress(e.Kubectl(), p.Deployment), nil
}
