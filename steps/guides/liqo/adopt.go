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

// The adopt functions derive answers from the objects of an existing peering, for questions whose Default functions do
// not read these objects.

func adoptFacts() []steps.Fact {
	return []steps.Fact{
		{
			Name: "credential-server", Title: "the server address in the consumer's kubeconfig", On: steps.Local,
			Learn: credentialServer,
		},
	}
}

// credentialServer describes the consumer's kubeconfig:
//
//   - server: the server address
//   - ca: the CA in PEM
//   - secret: the NAMESPACE/NAME of the kubeconfig's Secret
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
		return nil, fmt.Errorf("read the consumer's kubeconfig: %w", err)
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

// adoptJoin returns true if the existing peering has a gateway or a Configuration, and false if it has only a
// ResourceSlice. If no ResourceSlice exists, adoptJoin returns an error.
func adoptJoin(ctx context.Context, e steps.Env) (any, string, error) {
	if _, err := e.Own.Value("slice"); err != nil {
		return nil, "", err
	}
	for _, f := range []steps.Facts{e.Own, e.Peer} {
		for _, name := range []string{"gateway-server", "gateway-client"} {
			_, err := f.Value(name)
			if err == nil {
				return true, "an existing gateway", nil
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
		return true, "an existing Configuration", nil
	}
	return false, "a ResourceSlice, without a gateway or a Configuration on either side", nil
}

// overridden returns an Adopt function for the address or the port that the GatewayClient connects to. If the
// GatewayServer reports the same value, the function adopts nothing. If the tunnel is not up, the function returns an
// error. client and server are the value's keys in the facts gateway-client and gateway-server.
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

// adoptOffloaded returns the namespace that is offloaded to the provider. It returns an error unless exactly one
// namespace is offloaded.
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
		return here[0], "from the NamespaceOffloading", nil
	}
	return nil, "", fmt.Errorf("several namespaces are offloaded (%s): set offloading.namespace to one of them",
		check.OrNone(here))
}

// adoptClusterSelector converts the clusterSelector of the existing NamespaceOffloading to labels. It returns an error
// if the selector cannot be expressed as labels that must all match.
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

// asLabels converts node selector terms to labels in the format KEY=VALUE. ok is true only if there is exactly one term
// and each of its expressions requires one value.
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
