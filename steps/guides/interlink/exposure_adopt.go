package interlink

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// adoptedConfig returns the endpoint's address and port from the virtual kubelet's current configuration. Both are ""
// if there is no valid configuration.
func adoptedConfig(e steps.Env) (address, port string, err error) {
	config, err := e.Own.Map("vk-config")
	if steps.IsAbsent(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	address, _ = config["KubernetesApiAddr"].(string)
	port, _ = config["KubernetesApiPort"].(string)
	return strings.TrimSpace(address), strings.TrimSpace(port), nil
}

const inConfig = "the virtual kubelet's configuration"

func adoptAddress(_ context.Context, e steps.Env) (any, string, error) {
	address, _, err := adoptedConfig(e)
	if err != nil || address == "" {
		return nil, "", err
	}
	return address, inConfig, nil
}

func adoptPort(_ context.Context, e steps.Env) (any, string, error) {
	_, port, err := adoptedConfig(e)
	if err != nil || port == "" {
		return nil, "", err
	}
	return port, inConfig, nil
}

func adoptMode(ctx context.Context, e steps.Env) (any, string, error) {
	proxies, err := theProxies(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if found := proxies.best(); len(found) > 0 {
		return byProxy, namesOf(found), nil
	}
	chains, err := theChains(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if found := chains.best(); len(found) > 0 {
		return byIngress, namesOf(found), nil
	}
	address, port, err := adoptedConfig(e)
	if err != nil {
		return nil, "", err
	}
	if host, p, err := splitURL(e.Cluster.Server()); err == nil &&
		net.JoinHostPort(host, p) == net.JoinHostPort(address, port) {
		return byServer, inConfig + ", which has the API server's own address", nil
	}
	if unsure := slices.Concat(proxies.unsure, chains.unsure); len(unsure) > 0 {
		return nil, "", whichNamespace(notCarricks, unsure)
	}
	return nil, "", nil
}

func adoptEndpointNamespace(ctx context.Context, e steps.Env) (any, string, error) {
	look := theProxies
	if mode(e) == byIngress {
		look = theChains
	}
	c, err := look(ctx, e)
	if err != nil {
		return nil, "", err
	}
	found := c.best()
	switch {
	case len(found) > 0 && onlyIn(found) != "":
		return onlyIn(found), namesOf(found), nil
	case len(found) > 0:
		return nil, "", whichNamespace("are several candidates", found)
	case len(c.unsure) > 0:
		return nil, "", whichNamespace(notCarricks, c.unsure)
	}
	return nil, "", nil
}

// onlyIn returns the namespace that all objects are in, or "" if they are in different namespaces. all must not be
// empty.
func onlyIn(all []*unstructured.Unstructured) string {
	for _, o := range all[1:] {
		if o.GetNamespace() != all[0].GetNamespace() {
			return ""
		}
	}
	return all[0].GetNamespace()
}

// proxyService returns the proxy's Service in the endpoint's namespace, or nil if it does not exist.
func proxyService(ctx context.Context, e steps.Env) (*corev1.Service, error) {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, space(e), proxyName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

func adoptType(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := proxyService(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		return asBalancer, "Service " + proxyName, nil
	case corev1.ServiceTypeNodePort:
		return asNodePort, "Service " + proxyName, nil
	}
	// carrick does not adopt hostPort, because that would allow privileged pods in the namespace, and any user who can
	// write the Service could cause it.
	return nil, "", fmt.Errorf(
		"the Service %s/%s opens no port outside the cluster: if its pods use a hostPort, set exposure.type to %s",
		s.Namespace, proxyName, asHostPort,
	)
}

func adoptSources(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := proxyService(ctx, e)
	if err != nil || s == nil {
		return nil, "", err
	}
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		return s.Spec.LoadBalancerSourceRanges, "Service " + proxyName, nil
	}
	p, err := check.Get[networkingv1.NetworkPolicy](ctx, e.Cluster, check.NetworkPolicies, s.Namespace, proxyName)
	if apierrors.IsNotFound(err) {
		return steps.LeftEmpty, "the Service and NetworkPolicies, which restrict no networks", nil
	}
	if err != nil {
		return nil, "", err
	}
	return allowedNetworks(p), "NetworkPolicy " + proxyName, nil
}

// allowedNetworks returns the CIDRs from which p allows ingress.
func allowedNetworks(p *networkingv1.NetworkPolicy) []string {
	var out []string
	for _, rule := range p.Spec.Ingress {
		for _, from := range rule.From {
			if from.IPBlock != nil {
				out = append(out, from.IPBlock.CIDR)
			}
		}
	}
	return out
}

// adoptImage adopts the proxy's image only if it comes from the repository of proxyImage. Jobs' tokens pass through
// this image, and any user who can write the Deployment can replace it.
func adoptImage(ctx context.Context, e steps.Env) (any, string, error) {
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, space(e), proxyName)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, "", err
	}
	image := d.Spec.Template.Spec.Containers[0].Image
	usual, _ := check.SplitImage(proxyImage)
	if from, _ := check.SplitImage(image); from != usual {
		return nil, "", fmt.Errorf(
			"image %s of Deployment %s/%s is not carrick's default: set exposure.image to this image if you trust it with the "+
				"jobs' tokens",
			clean.Text(image), d.Namespace, proxyName,
		)
	}
	return image, "Deployment " + proxyName, nil
}
