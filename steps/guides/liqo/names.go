package liqo

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/steps"
)

// tenantNamespace is the namespace of the peering on the env's side.
func tenantNamespace(e steps.Env) string { return e.Answers.Text(e.SideName() + ".tenant-namespace") }

// peerNamespace is that of the other side.
func peerNamespace(e steps.Env) string { return e.Answers.Text(e.PeerName() + ".tenant-namespace") }

// joins tells whether the networks are to be joined.
func joins(e steps.Env) bool { return e.Answers.Bool("network.join") }

// listens tells whether the gateway of the env's side is the server.
func listens(e steps.Env) bool { return e.Answers.Text("network.server") == e.SideName() }

// connects tells whether the gateway of the env's side is the client.
func connects(e steps.Env) bool { return !listens(e) }

// peerID is the cluster id of the other side, which labels everything of the
// peering on this one.
func peerID(e steps.Env) (string, error) { return e.Peer.Text("cluster-id") }

// ofPeer selects what belongs to the peering.
func ofPeer(e steps.Env) (string, error) {
	id, err := peerID(e)
	return remoteIDLabel + "=" + id, err
}

// peeringObjects lists what belongs to the peering in its namespace.
func peeringObjects(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource,
) ([]*unstructured.Unstructured, error) {
	sel, err := ofPeer(e)
	if err != nil {
		return nil, err
	}
	return living(ctx, e, gvr, tenantNamespace(e), sel)
}

// existingName is the name of the object that is there already, so that no second
// one is made beside it; where there is none, or several, it is the one that
// liqoctl would give.
func existingName(found []*unstructured.Unstructured, usual string) string {
	if len(found) == 0 || slices.Contains(names(found), usual) {
		return usual
	}
	return names(found)[0]
}

// value is a computed value of a manifest.
type value = func(context.Context, steps.Env) (any, error)

func tenantSpace(_ context.Context, e steps.Env) (any, error) { return tenantNamespace(e), nil }

// namedAfterPeer is a value: the name of the object of that resource in the
// namespace of the peering, the peer's id where there is none.
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

// asItStands is a default: what stands there, else a value and why it is that.
func asItExists(fact, key string, value any, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if v := e.Own.Field(fact, key); v != nil && v != "" && v != 0 {
			return v, "as it stands"
		}
		return value, from
	}
}

// twice are the same action on both sides.
func twice(name, consumersTitle, providersTitle string, a steps.Action) []steps.Action {
	ours, theirs := a, a
	ours.Name, ours.Title, ours.On = consumer+"-"+name, consumersTitle, steps.Local
	theirs.Name, theirs.Title, theirs.On = provider+"-"+name, providersTitle, steps.Remote
	return []steps.Action{ours, theirs}
}

// counted is a number of things: "1 pod", "2 pods".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
