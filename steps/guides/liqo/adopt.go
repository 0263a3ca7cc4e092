package liqo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/check"
)

// The adopters read which objects an existing peering uses. The defaults already read most answers
// from the objects. The adopters cover the rest.

// adoptFacts returns the facts about the consumer's existing credential.
func adoptFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "credential-server", Title: "the server in the consumer's credential", On: steps.Local,
			Learn: credentialServer,
		},
	}
}

// credentialServer returns the server of the consumer's kubeconfig ("server") and the CA that
// it trusts ("ca").
func credentialServer(ctx context.Context, e steps.Env) (any, error) {
	s, err := controlPlane(ctx, e)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, steps.Absent("the consumer has no credential for the provider yet")
	}
	stored, err := storedKubeconfig(ctx, e, s.GetName())
	if err != nil {
		return nil, err
	}
	k, err := kubeconfig.Parse([]byte(stored.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("read the consumer's credential: %w", err)
	}
	return map[string]any{"server": k.Server, "ca": string(k.CA), "secret": s.GetNamespace() + "/" + s.GetName()}, nil
}

func adoptServer(_ context.Context, e steps.Env) (any, string, error) {
	m, err := e.Peer.Map("credential-server")
	if err != nil {
		return nil, "", err
	}
	return m["server"], fmt.Sprintf("from the kubeconfig in Secret %s of the %s", m["secret"], e.PeerName()), nil
}

func adoptCA(ctx context.Context, e steps.Env) (any, string, error) {
	m, err := e.Peer.Map("credential-server")
	if err != nil {
		return nil, "", err
	}
	from := fmt.Sprintf("the CA in Secret %s of the %s", m["secret"], e.PeerName())
	root, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "kube-system", "kube-root-ca.crt")
	ca := fmt.Sprint(m["ca"])
	switch {
	case err == nil && check.SamePEM(ca, root.Data["ca.crt"]):
		return "cluster", from, nil
	case check.SamePEM(ca, string(e.Cluster.CA())):
		return "context", from, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, "", err
	}
	return nil, "", errors.New(from + " is neither the cluster CA nor the CA of your context")
}

// adoptJoin returns false if the consumer requests resources and neither side has any network
// objects: then the peering intentionally has no tunnel.
func adoptJoin(ctx context.Context, e steps.Env) (any, string, error) {
	if _, err := e.Own.Value("slice"); err != nil {
		return nil, "", err
	}
	for _, f := range []steps.Facts{e.Own, e.Peer} {
		for _, name := range []string{"gateway-server", "gateway-client"} {
			_, err := f.Value(name)
			if err == nil {
				return true, "a gateway exists", nil
			}
			if !steps.IsAbsent(err) {
				return nil, "", err
			}
		}
	}
	found, err := living(ctx, e, configurations, tenantNamespace(e), "")
	if err != nil {
		return nil, "", err
	}
	if len(found) > 0 {
		return true, "a Configuration exists", nil
	}
	return false, "a ResourceSlice exists, and neither side has a gateway or a Configuration", nil
}

// overridden adopts a value of the gateway that connects, if it differs from the address or
// port that the listening gateway reports and the tunnel is up with it. A value that does not
// work is left for a check to report.
func overridden(client, server string) func(context.Context, steps.Env) (any, string, error) {
	return func(_ context.Context, e steps.Env) (any, string, error) {
		listening, connecting := e.Own, e.Peer
		if e.Answers.Text("network.server") != e.SideName() {
			listening, connecting = e.Peer, e.Own
		}
		told, reported := connecting.Field("gateway-client", client), listening.Field("gateway-server", server)
		if told == nil || told == reported {
			return nil, "", nil
		}
		if state, err := connecting.Text("connection"); err != nil || state != "Connected" {
			return nil, "", fmt.Errorf(
				"the GatewayClient connects to %v, the GatewayServer reports %v, and the tunnel is not up", told, reported,
			)
		}
		return told, "from the GatewayClient, whose tunnel is up", nil
	}
}

// adoptOffloaded returns the only namespace that is offloaded to the provider.
func adoptOffloaded(ctx context.Context, e steps.Env) (any, string, error) {
	found, err := living(ctx, e, namespaceOffloadings, "", "")
	if err != nil {
		return nil, "", err
	}
	id, err := peerID(e)
	if err != nil {
		return nil, "", err
	}
	var here []string
	for _, o := range found {
		byCluster, _, _ := unstructured.NestedMap(o.Object, "status", "remoteNamespacesConditions")
		if _, is := byCluster[id]; is || len(byCluster) == 0 {
			here = append(here, o.GetNamespace())
		}
	}
	switch len(here) {
	case 0:
		return nil, "", steps.Absent("no namespace is offloaded")
	case 1:
		return here[0], "from its NamespaceOffloading", nil
	}
	return nil, "", fmt.Errorf("several namespaces are offloaded (%s): answer with one of them",
		check.OrNone(here))
}

// adoptClusterSelector converts the selector of a NamespaceOffloading to labels, if possible.
func adoptClusterSelector(ctx context.Context, e steps.Env) (any, string, error) {
	name := e.Answers.Text("offloading.namespace")
	o, err := present(ctx, e, namespaceOffloadings, name, offloadingName)
	if err != nil || o == nil {
		return nil, "", err
	}
	terms, _, _ := unstructured.NestedSlice(o.Object, "spec", "clusterSelector", "nodeSelectorTerms")
	if len(terms) == 0 {
		return nil, "", nil
	}
	labels, ok := asLabels(terms)
	if !ok {
		return nil, "", fmt.Errorf(
			"the clusterSelector of NamespaceOffloading %s/%s cannot be expressed as labels that must all match", name,
			offloadingName,
		)
	}
	return labels, "from the clusterSelector of NamespaceOffloading " + name + "/" + offloadingName, nil
}

// asLabels converts a single term that requires one value per key to labels.
func asLabels(terms []any) (out []string, ok bool) {
	term, _ := terms[0].(map[string]any)
	list, _ := term["matchExpressions"].([]any)
	if len(terms) != 1 || len(list) == 0 || term["matchFields"] != nil {
		return nil, false
	}
	for _, each := range list {
		m, _ := each.(map[string]any)
		values, _ := m["values"].([]any)
		if m["operator"] != "In" || len(values) != 1 {
			return nil, false
		}
		out = append(out, strings.TrimSpace(fmt.Sprint(m["key"], "=", values[0])))
	}
	return out, true
}
