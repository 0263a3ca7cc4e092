package liqo

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/steps"
)

// tenantNamespace returns the namespace of the peering on the env's side.
func tenantNamespace(e steps.Env) string { return e.Answers.Text(e.SideName() + ".tenant-namespace") }

// peerNamespace returns the namespace of the peering on the other side.
func peerNamespace(e steps.Env) string { return e.Answers.Text(e.PeerName() + ".tenant-namespace") }

// joins reports whether the answers connect the two clusters' networks with a tunnel.
func joins(e steps.Env) bool { return e.Answers.Bool("network.enabled") }

// listens reports whether the gateway of the env's side is the server.
func listens(e steps.Env) bool { return e.Answers.Text("network.server") == e.SideName() }

// connects reports whether the gateway of the env's side is the client.
func connects(e steps.Env) bool { return !listens(e) }

// peerID returns the cluster id of the other side, which is a label on all objects of the
// peering on this side.
func peerID(e steps.Env) (string, error) { return e.Peer.Text("cluster-id") }

// ofPeer returns the label selector for the objects of the peering.
func ofPeer(e steps.Env) (string, error) {
	id, err := peerID(e)
	return remoteIDLabel + "=" + id, err
}

// peeringObjects lists the objects of the peering in its namespace.
func peeringObjects(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource,
) ([]*unstructured.Unstructured, error) {
	sel, err := ofPeer(e)
	if err != nil {
		return nil, err
	}
	return living(ctx, e, gvr, tenantNamespace(e), sel)
}

// existingName returns the name of the existing object, so that carrick does not create a
// second one. If there is none, or several, it returns liqoctl's name.
func existingName(found []*unstructured.Unstructured, usual string) string {
	if len(found) == 0 || slices.Contains(names(found), usual) {
		return usual
	}
	return names(found)[0]
}

// value is a computed value of a manifest.
type value = func(context.Context, steps.Env) (any, error)

func tenantSpace(_ context.Context, e steps.Env) (any, error) { return tenantNamespace(e), nil }

// namedAfterPeer returns a value that is the name of the existing object of that resource in the
// namespace of the peering, or else the peer's cluster id.
func namedAfterPeer(gvr schema.GroupVersionResource) value {
	return func(ctx context.Context, e steps.Env) (any, error) {
		id, err := peerID(e)
		if err != nil {
			return nil, err
		}
		found, err := living(ctx, e, gvr, tenantNamespace(e), "")
		return existingName(found, id), err
	}
}

// asItExists returns a default that is the value in the existing object, or else the given value
// and its origin.
func asItExists(fact, key string, value any, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if v := e.Own.Field(fact, key); v != nil && v != "" && v != 0 {
			return v, "from the existing object"
		}
		return value, from
	}
}

// twice returns the same action for both sides.
func twice(name, consumersTitle, providersTitle string, a steps.Action) []steps.Action {
	ours, theirs := a, a
	ours.Name, ours.Title, ours.On = consumer+"-"+name, consumersTitle, steps.Local
	theirs.Name, theirs.Title, theirs.On = provider+"-"+name, providersTitle, steps.Remote
	return []steps.Action{ours, theirs}
}

// counted returns a number with a noun: "1 pod", "2 pods".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
