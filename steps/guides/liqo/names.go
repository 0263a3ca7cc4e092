package liqo

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/steps"
)

func tenantNamespace(e steps.Env) string { return e.Answers.Text(e.SideName() + ".tenant-namespace") }

func peerNamespace(e steps.Env) string { return e.Answers.Text(e.PeerName() + ".tenant-namespace") }

// joins reports whether the peering connects the networks of the two clusters with a tunnel.
func joins(e steps.Env) bool { return e.Answers.Bool("network.enabled") }

// listens reports whether this side's gateway is the server.
func listens(e steps.Env) bool { return e.Answers.Text("network.server") == e.SideName() }

// connects reports whether this side's gateway is the client.
func connects(e steps.Env) bool { return !listens(e) }

// peerID returns the cluster id of the other side. On this side, all objects of the peering are labelled with this id.
func peerID(e steps.Env) (string, error) { return e.Peer.Text("cluster-id") }

// ofPeer returns the label selector for this side's objects of the peering.
func ofPeer(e steps.Env) (string, error) {
	id, err := peerID(e)
	return remoteIDLabel + "=" + id, err
}

// peeringObjects lists the objects of the peering in the tenant namespace.
func peeringObjects(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource,
) ([]*unstructured.Unstructured, error) {
	sel, err := ofPeer(e)
	if err != nil {
		return nil, err
	}
	return living(ctx, e, gvr, tenantNamespace(e), sel)
}

// existingName returns the name of the object to apply, so that carrick does not create a second object. If found is
// empty or contains an object with the name usual, existingName returns usual. Otherwise it returns the alphabetically
// first name in found.
func existingName(found []*unstructured.Unstructured, usual string) string {
	if len(found) == 0 || slices.Contains(names(found), usual) {
		return usual
	}
	return names(found)[0]
}

// value is a function that computes one of the values in a manifest.
type value = func(context.Context, steps.Env) (any, error)

func tenantSpace(_ context.Context, e steps.Env) (any, error) { return tenantNamespace(e), nil }

// namedAfterPeer returns a function that computes an object's name. If the tenant namespace has an object of resource
// gvr, this is the name of that object. Otherwise it is the peer's cluster id.
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

// asItExists returns a Default function for a question. The default is the field named key in the fact about the
// existing object. If that field is empty, the default is value, and from is shown as its source.
func asItExists(fact, key string, value any, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		if v := e.Own.Field(fact, key); v != nil && v != "" && v != 0 {
			return v, "from the existing object"
		}
		return value, from
	}
}

// onBothSides returns two copies of action a, one for each side. Each copy's name begins with the side.
func onBothSides(name, consumersTitle, providersTitle string, a steps.Action) []steps.Action {
	ours, theirs := a, a
	ours.Name, ours.Title, ours.On = consumer+"-"+name, consumersTitle, steps.Local
	theirs.Name, theirs.Title, theirs.On = provider+"-"+name, providersTitle, steps.Remote
	return []steps.Action{ours, theirs}
}
