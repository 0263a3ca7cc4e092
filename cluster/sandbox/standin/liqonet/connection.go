package liqonet

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// refreshed is the interval between two updates of a Connection's latency. Upstream's interval is 10 s
// (--ping-update-status-interval).
const refreshed = 5 * time.Second

// connection creates a gateway's Connection and updates its status.
//
// Source: liqotech/liqo v1.2.0, pkg/gateway/tunnel/wireguard/k8s.go (EnsureConnection) and
// pkg/gateway/connection/k8s.go (UpdateConnectionStatus).
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
	if state == connecting && was != "" {
		return nil // a new gateway keeps the status from the previous one
	}
	if was == state && (state != connected || time.Since(written) < refreshed) {
		return nil
	}
	if was != state {
		g.log.sayf("the connection is %s", state)
	}
	fields := map[string]any{"value": state}
	switch state {
	case connected:
		fields["latency"] = map[string]any{"value": latency(took), "timestamp": seen.UTC().Format(time.RFC3339)}
	case lost:
		fields["latency"] = map[string]any{"value": latency(0), "timestamp": nil}
	}
	return p.status(ctx, connections, g.namespace, name, fields)
}

// latency formats a duration for the status of a Connection (pkg/utils/time).
func latency(d time.Duration) string {
	switch {
	case d == 0:
		return "N/A"
	case d < time.Millisecond:
		return fmt.Sprintf("%dμs", d.Microseconds())
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// connection returns a gateway's Connection. The GatewayServer or GatewayClient owns it. gatewayRef refers to the
// child object.
func (g *gateway) connection(name string) *unstructured.Unstructured {
	of, kind := serverSide, "Server"
	if g.flag("mode") == client {
		of, kind = clientSide, "Client"
	}
	version := of.resource.GroupVersion().String()
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": "Connection",
		"spec": map[string]any{"type": kind, "gatewayRef": map[string]any{
			"apiVersion": version, "kind": of.child, "name": g.flag("name"), "namespace": g.namespace,
			"uid": g.flag("gateway-uid"),
		}},
	}}
	made.SetName(name)
	made.SetNamespace(g.namespace)
	made.SetLabels(map[string]string{remoteID: g.flag("remote-cluster-id")})
	made.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: version, Kind: of.kind, Name: g.flag("name"), UID: types.UID(g.flag("gateway-uid"))},
	})
	return made
}
