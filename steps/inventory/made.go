package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// Creator returns the link that created an object, or "" if none did. The object's annotation names the link, but only
// the link's inventory confirms it.
func Creator(ctx context.Context, e steps.Env, o *unstructured.Unstructured) (string, error) {
	meta := MetadataOf(o)
	return linkWith(ctx, e, CreatedBy(o.GetAnnotations()), func(inv *Inventory) (bool, error) {
		return inv.Created(o.GetKind(), &meta), nil
	})
}

// Installer returns the link that has a Helm release in its inventory, or "" if none has. The objects of a release have
// no entries of their own. said is the link that an object of the release names. It is trusted only if that link's
// inventory confirms it.
func Installer(ctx context.Context, e steps.Env, namespace, release, said string) (string, error) {
	of := steps.EntryOf(ReleaseKind, namespace, release)
	return linkWith(ctx, e, said, func(inv *Inventory) (bool, error) {
		for action := range inv.Actions {
			if inv.Find(action, of) != nil {
				return true, nil
			}
		}
		return false, inv.Unread
	})
}

// linkWith returns e.Link if the callback (fits) accepts the inventory of that link. Otherwise it tries the link in
// said. If neither is accepted, it returns "".
func linkWith(ctx context.Context, e steps.Env, said string, fits func(*Inventory) (bool, error)) (string, error) {
	for _, link := range []string{e.Link, said} {
		if linkfile.CheckName(link) != nil {
			continue
		}
		inv, err := OfLink(ctx, e, link)
		if err != nil {
			return "", err
		}
		if ok, err := fits(inv); ok || err != nil {
			return link, err
		}
	}
	return "", nil
}

// Made is an object that an action of a link has written.
type Made struct {
	metav1.PartialObjectMetadata
	Created bool
}

// MadeBy returns the objects that an action of this link has written, according to the inventory. Ownership labels are
// not enough, because any user who can write an object can remove or copy them. A label counts only if the inventory
// has no UID for the object yet, or if Runtime.Found names the object.
func MadeBy(ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, action string) ([]Made, error) {
	inv, err := Of(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []Made
	for _, o := range inv.Actions[action] {
		if o.GVK() == ReleaseKind {
			continue
		}
		kind, _, err := e.Cluster.Resource(ctx, o.GVK())
		if errors.Is(err, failure.ErrNotServed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if kind.GroupResource() != gvr.GroupResource() {
			continue
		}
		live, err := e.Cluster.Fetch(ctx, o.Object())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		marked := live.GetLabels()[steps.LinkLabel(e.Link)] == action
		if o.UID == live.GetUID() || o.UID == "" && marked {
			created := o.Created && (o.UID != "" || CreatedBy(live.GetAnnotations()) == e.Link)
			out = append(out, Made{MetadataOf(live), created})
		}
	}
	if len(e.Runtime.Found) == 0 {
		return out, nil
	}
	marked, err := e.Cluster.Find(ctx, gvr, "", e.OwnedBy(action))
	for _, o := range marked {
		known := slices.ContainsFunc(out, func(m Made) bool { return m.UID == o.UID })
		named := Describe(steps.Entry{Namespace: o.Namespace, Name: o.Name}.Object())
		if !known && slices.ContainsFunc(e.Runtime.Found, func(f string) bool { return strings.HasSuffix(f, named) }) {
			out = append(out, Made{o, CreatedBy(o.Annotations) == e.Link})
		}
	}
	return out, err
}
