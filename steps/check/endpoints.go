package check

import (
	"context"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"carrick/cluster"
)

// ReadyEndpoints returns the ready endpoints of a Service. If port is not 0, it returns only endpoints with that pod
// port.
func ReadyEndpoints(
	ctx context.Context, c *cluster.Cluster, namespace, service string, port int32,
) ([]discoveryv1.Endpoint, error) {
	of := cluster.Selector{Labels: discoveryv1.LabelServiceName + "=" + service}
	all, err := List[discoveryv1.EndpointSlice](ctx, c, EndpointSlices, namespace, of)
	if err != nil {
		return nil, err
	}
	var out []discoveryv1.Endpoint
	for _, s := range all {
		is := func(p discoveryv1.EndpointPort) bool { return p.Port != nil && *p.Port == port }
		if port != 0 && !slices.ContainsFunc(s.Ports, is) {
			continue
		}
		for _, at := range s.Endpoints {
			if at.Conditions.Ready == nil || *at.Conditions.Ready {
				out = append(out, at)
			}
		}
	}
	return out, nil
}

// ReadyAddresses returns the number of ready addresses among a Service's endpoints.
func ReadyAddresses(ctx context.Context, c *cluster.Cluster, namespace, service string) (int, error) {
	all, err := ReadyEndpoints(ctx, c, namespace, service, 0)
	ready := 0
	for _, at := range all {
		ready += len(at.Addresses)
	}
	return ready, err
}
