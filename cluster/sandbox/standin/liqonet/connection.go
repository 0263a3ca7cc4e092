package liqonet

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// refreshed is how often the latency of a connection is written.
const refreshed = 5 * time.Second

// connection makes the Connection of a gateway and says there how it fares.
func (p *Player) connection(ctx context.Context, g *gateway, all []unstructured.Unstructured) error {
	name := "gw-" + g.flag("name")
	found := find(all, g.namespace, name)
	if found == nil {
		_, err := p.dynamic.Resource(connections).Namespace(g.namespace).
			Create(ctx, g.connection(name), metav1.CreateOptions{FieldManager: manager})
		return err
	}
	state, took, seen := g.wire.fares()
	was, _, _ := unstructured.NestedString(found.Object, "status", "value")
	stamp, _, _ := unstructured.NestedString(found.Object, "status", "latency", "timestamp")
	written, _ := time.Parse(time.RFC3339, stamp)
	if was == state && (state != connected || time.Since(written) < refreshed) {
		return nil
	}
	if was != state {
		g.log.sayf("the connection is %s", state)
	}
	fields := map[string]any{"value": state}
	if state == connected {
		fields["latency"] = map[string]any{"value": took.String(), "timestamp": seen.UTC().Format(time.RFC3339)}
	}
	return p.status(ctx, connections, g.namespace, name, fields)
}

func (g *gateway) connection(name string) *unstructured.Unstructured {
	of, kind := serverSide, "Server"
	if g.flag("mode") == client {
		of, kind = clientSide, "Client"
	}
	version := of.resource.GroupVersion().String()
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": "Connection",
		"spec": map[string]any{"type": kind, "gatewayRef": map[string]any{
			"apiVersion": version, "kind": of.kind, "name": g.flag("name"), "namespace": g.namespace, "uid": g.flag("gateway-uid"),
		}},
	}}
	made.SetName(name)
	made.SetNamespace(g.namespace)
	made.SetLabels(map[string]string{remoteID: g.flag("remote-cluster-id")})
	made.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: version, Kind: of.kind, Name: g.flag("name"), UID: types.UID(g.flag("gateway-uid"))}})
	return made
}
