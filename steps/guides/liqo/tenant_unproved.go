package liqo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// unprovedSpace is a tenant namespace of which the other admin's file alone says that it is the peer's: this link has
// neither created it nor taken it over. It may be another peer's, whose cluster id that file claims.
type unprovedSpace struct {
	name, id string
	by       string // the link that created it; "": none did
}

// unproved is the tenant namespace of the env's side where it is not proved; nil: it is, or does not exist. Where the
// admin has both clusters the peer's own cluster says its id.
func unproved(ctx context.Context, e steps.Env) (*unprovedSpace, error) {
	if !e.PeerFromFile() {
		return nil, nil
	}
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	name := tenantNamespace(e)
	ns, err := present(ctx, e, check.Namespaces, "", name)
	if err != nil || ns == nil {
		return nil, err
	}
	action := e.SideName() + "-namespace"
	entered, err := inventory.MadeBy(ctx, e, check.Namespaces, action)
	if err != nil {
		return nil, err
	}
	// An entry of what existed before may be of a run that was to take it over, and stopped: then it lacks the mark.
	key, value, _ := strings.Cut(e.OwnedBy(action).Labels, "=")
	if slices.ContainsFunc(entered, func(m inventory.Made) bool {
		return m.UID == ns.GetUID() && (m.Created || m.Labels[key] == value)
	}) {
		return nil, nil
	}
	by, err := inventory.Creator(ctx, e, ns)
	return &unprovedSpace{name, id, by}, err
}

// found says what is there.
func (u *unprovedSpace) found(e steps.Env) string {
	whose := "this link has not created it"
	if u.by != "" {
		whose = "link " + u.by + " has created it"
	}
	return fmt.Sprintf("namespace %s exists, %s, and the %s's file alone says that %s is the %s's cluster id",
		u.name, whose, e.PeerName(), u.id, e.PeerName())
}

// fix is how an admin says that it is the peer's all the same.
func (u *unprovedSpace) fix(e steps.Env) string {
	return e.ApplyStep("tenant-namespaces") + " --take-over    # once the " + e.PeerName() +
		"'s admin has confirmed that their cluster id is " + u.id
}

// claim is what would be taken over.
func (u *unprovedSpace) claim() failure.Conflict {
	manager := "somebody else"
	if u.by != "" {
		manager = "link " + u.by
	}
	return failure.Conflict{Field: "metadata.labels." + remoteIDLabel, Manager: manager}
}

// proved is the error of what is not handed over from an unproved namespace.
func proved(ctx context.Context, e steps.Env) error {
	ns, err := unproved(ctx, e)
	if err != nil || ns == nil {
		return err
	}
	return errors.New(ns.found(e) + "; " + ns.fix(e))
}

// oneOfPeer refuses to give the id that a file claims to a second namespace: Liqo stops where it finds two, and the
// first one may be another peer's.
func oneOfPeer(ctx context.Context, e steps.Env) error {
	if !e.PeerFromFile() {
		return nil
	}
	spaces, err := tenantSpaces(ctx, e)
	if err != nil {
		return err
	}
	name := tenantNamespace(e)
	for _, ns := range spaces {
		if ns.GetName() != name {
			return fmt.Errorf("namespace %s carries the %s's cluster id %s, and Liqo takes one such namespace; "+
				"if it is this %s's, answer %s.tenant-namespace with %s", ns.GetName(), e.PeerName(),
				clean.Text(ns.GetLabels()[remoteIDLabel]), e.PeerName(), e.SideName(), ns.GetName())
		}
	}
	return nil
}
