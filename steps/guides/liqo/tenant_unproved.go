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

// unprovedSpace is an existing tenant namespace that this link has neither created nor taken over. Only the peer's file
// indicates that the namespace belongs to the peer, and the file could contain another peer's cluster id.
type unprovedSpace struct {
	name, id string
	by       string // the link that created it, or "" if no link did
}

// unproved returns this side's tenant namespace if it is unproved, or nil if it is proved or does not exist. If the
// admin has access to both clusters, every namespace is proved, because carrick reads the peer's cluster id from the
// peer's cluster.
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
	// carrick records an existing object in the inventory before it takes over the object. If a run stopped in between,
	// the inventory has an entry, but the namespace does not have the link's label.
	key, value, _ := strings.Cut(e.OwnedBy(action).Labels, "=")
	if slices.ContainsFunc(entered, func(m inventory.Made) bool {
		return m.UID == ns.GetUID() && (m.Created || m.Labels[key] == value)
	}) {
		return nil, nil
	}
	by, err := inventory.Creator(ctx, e, ns)
	return &unprovedSpace{name, id, by}, err
}

func (u *unprovedSpace) found(e steps.Env) string {
	whose := "this link did not create it"
	if u.by != "" {
		whose = "link " + u.by + " created it"
	}
	return fmt.Sprintf("namespace %s exists, %s, and only the %s's file claims that %s is the %s's cluster id",
		u.name, whose, e.PeerName(), u.id, e.PeerName())
}

func (u *unprovedSpace) fix(e steps.Env) string {
	return e.ApplyStep("tenant-namespaces") + " --take-over    # once the " + e.PeerName() +
		"'s admin has confirmed that their cluster id is " + u.id
}

// claim returns the conflict that the flag --take-over resolves.
func (u *unprovedSpace) claim() failure.Conflict {
	manager := "another user"
	if u.by != "" {
		manager = "link " + u.by
	}
	return failure.Conflict{Field: "metadata.labels." + remoteIDLabel, Manager: manager}
}

// proved returns an error if the tenant namespace is unproved. In this case, carrick must not give the peer data from
// the namespace.
func proved(ctx context.Context, e steps.Env) error {
	ns, err := unproved(ctx, e)
	if err != nil || ns == nil {
		return err
	}
	return errors.New(ns.found(e) + "; " + ns.fix(e))
}

// oneOfPeer returns an error if a namespace other than the tenant namespace is labelled with the cluster id in the
// peer's file. The other namespace might belong to another peer, and Liqo stops working if two namespaces are labelled
// with the same cluster id.
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
					"to this %s, set %s.tenant-namespace to %s",
				ns.GetName(), e.PeerName(),
				clean.Text(ns.GetLabels()[remoteIDLabel]), e.PeerName(), e.SideName(), ns.GetName(),
			)
		}
	}
	return nil
}
