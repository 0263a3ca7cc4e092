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

// unprovedSpace is a tenant namespace that is the peer's only according to the other admin's
// file: this link has neither created it nor taken it over. It may belong to another peer,
// whose cluster id that file claims.
type unprovedSpace struct {
	name, id string
	by       string // the link that created it; "": no link
}

// unproved returns the tenant namespace of the env's side if it is unproved, or nil if it is
// proved or does not exist. If the admin has access to both clusters, the peer's own cluster
// reports its id.
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
	// An inventory entry of an existing object may come from a run that stopped before it took the
	// object over: then the mark is missing.
	key, value, _ := strings.Cut(e.OwnedBy(action).Labels, "=")
	if slices.ContainsFunc(entered, func(m inventory.Made) bool {
		return m.UID == ns.GetUID() && (m.Created || m.Labels[key] == value)
	}) {
		return nil, nil
	}
	by, err := inventory.Creator(ctx, e, ns)
	return &unprovedSpace{name, id, by}, err
}

// found describes the existing namespace.
func (u *unprovedSpace) found(e steps.Env) string {
	whose := "this link did not create it"
	if u.by != "" {
		whose = "link " + u.by + " created it"
	}
	return fmt.Sprintf("namespace %s exists, %s, and only the %s's file says that %s is the %s's cluster id",
		u.name, whose, e.PeerName(), u.id, e.PeerName())
}

// fix returns the command with which an admin confirms that the namespace is the peer's.
func (u *unprovedSpace) fix(e steps.Env) string {
	return e.ApplyStep("tenant-namespaces") + " --take-over    # once the " + e.PeerName() +
		"'s admin has confirmed that their cluster id is " + u.id
}

// claim returns the conflict that a takeover resolves.
func (u *unprovedSpace) claim() failure.Conflict {
	manager := "another user"
	if u.by != "" {
		manager = "link " + u.by
	}
	return failure.Conflict{Field: "metadata.labels." + remoteIDLabel, Manager: manager}
}

// proved returns an error if the tenant namespace is unproved, so that carrick does not give the
// peer data from it.
func proved(ctx context.Context, e steps.Env) error {
	ns, err := unproved(ctx, e)
	if err != nil || ns == nil {
		return err
	}
	return errors.New(ns.found(e) + "; " + ns.fix(e))
}

// oneOfPeer returns an error if another namespace already has the cluster id that the peer's file
// claims. Liqo stops working if two namespaces have the same id, and the other namespace may belong
// to another peer.
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
			return fmt.Errorf(
				"namespace %s is labelled with the %s's cluster id %s, and Liqo accepts only one such namespace; if it belongs "+
					"to this %s, answer %s.tenant-namespace with %s",
				ns.GetName(), e.PeerName(),
				clean.Text(ns.GetLabels()[remoteIDLabel]), e.PeerName(), e.SideName(), ns.GetName(),
			)
		}
	}
	return nil
}
