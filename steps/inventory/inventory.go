package inventory

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/steps"
)

// The inventory is the basis of undo. It records the UIDs of the objects that a link has created or changed, and the
// values that the link took over. Ownership labels are not enough, because any user who can write an object can forge
// them.
//
// Each link has one ClusterRole without rules. Its annotations contain the inventory, one annotation per action.
// Tenants cannot write ClusterRoles, not even those that can create namespaces. Every cluster serves ClusterRoles. A
// single request creates or deletes a ClusterRole, whereas the namespace controller takes 5 s to delete a namespace
// (k8s.io/kubernetes pkg/controller/namespace, namespaceDeletionGracePeriod).
const (
	Prefix        = "carrick:"           // followed by the link: the name of the ClusterRole
	inventoryKey  = "carrick/inventory." // followed by the action: its entries as JSON
	inventoryNote = "carrick/note."      // followed by the action: what it created in another system, such as an ID
)

var (
	clusterRoleKind = schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	ClusterRoles    = schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles"}
)

// ReleaseKind is the kind of an entry for a Helm release. The UID in the entry belongs to the Secret with the newest
// revision.
var ReleaseKind = schema.GroupVersionKind{Group: "helm.sh", Version: "v1", Kind: "Release"}

// IsRecord reports whether an object is a Secret in which Helm stores a release.
func IsRecord(kind, name string) bool {
	return kind == "Secret" && strings.HasPrefix(name, "sh.helm.release.v1.")
}

// Inventory is the inventory of one link on one cluster.
type Inventory struct {
	link    string
	UID     types.UID                // UID of the ClusterRole; "" if it does not exist
	Version string                   // resourceVersion of the ClusterRole when last read or written
	Actions map[string][]steps.Entry // by action
	was     map[string][]steps.Entry // by action, as of Version
	Notes   map[string]string        // by action
	Unread  error                    // why the inventory could not be read, or nil
}

// Find returns the entry of an object under an action, or nil if there is none.
func (inv *Inventory) Find(action string, of steps.Entry) *steps.Entry {
	for i, e := range inv.Actions[action] {
		if e.Is(of) {
			return &inv.Actions[action][i]
		}
	}
	return nil
}

// Created reports whether any action of this link created the object.
func (inv *Inventory) Created(kind string, o *metav1.PartialObjectMetadata) bool {
	for _, list := range inv.Actions {
		for _, e := range list {
			pending := e.UID == "" && e.Kind == kind && e.Namespace == o.Namespace && e.Name == o.Name
			if e.Created && (e.UID == o.UID || pending && CreatedBy(o.Annotations) == inv.link) {
				return true
			}
		}
	}
	return false
}

// Next returns the entry of an object that is about to be applied. If the object does not exist, live is nil. Earlier
// versions of carrick wrote objects with an ownership label but no entry. For such an object, Next derives the entry
// from the label, and the plan mentions it.
func (inv *Inventory) Next(env steps.Env, obj, live *unstructured.Unstructured) *steps.Entry {
	if live == nil {
		return steps.NewEntry(obj)
	}
	e := steps.EntryOf(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	old := inv.Find(env.Action, e)
	marked := CreatedBy(live.GetAnnotations()) == env.Link
	switch {
	case old != nil && old.UID == live.GetUID():
		e.Created, e.Before, e.Wrote = old.Created, maps.Clone(old.Before), slices.Clone(old.Wrote)
	case old != nil && old.UID == "":
		e.Created, e.Before, e.Wrote = old.Created && marked, maps.Clone(old.Before), slices.Clone(old.Wrote)
	case live.GetLabels()[steps.LinkLabel(env.Link)] == env.Action && Wrote(env.Link, live.GetManagedFields()):
		e.Created, e.Adopted = marked, true
		if values, err := kept(live.GetAnnotations()); err == nil {
			e.Before = within(values, obj.Object)
		}
	}
	e.UID = live.GetUID()
	return &e
}

// within returns the values whose fields object also has. A link takes over only fields that it sets. If there are
// none, within returns nil.
func within(values, object map[string]any) map[string]any {
	var out map[string]any
	for key, v := range values {
		has, ok := object[key]
		if !ok {
			continue
		}
		inner, isMap := v.(map[string]any)
		hasInner, both := has.(map[string]any)
		if isMap != both {
			continue
		}
		if both {
			if inner = within(inner, hasInner); inner == nil {
				continue
			}
			v = inner
		}
		if out == nil {
			out = map[string]any{}
		}
		out[key] = v
	}
	return out
}

// Lacks returns the entries of a plan's items that the inventory does not have yet. It omits entries whose object does
// not exist and would not be created. It also omits entries that differ only in a missing UID, because a run completes
// them at its end.
func (inv *Inventory) Lacks(action string, items []steps.Item) []steps.Entry {
	var out []steps.Entry
	for _, it := range items {
		if it.Entry == nil || (!it.Verb.Changes() && it.Entry.UID == "") {
			continue
		}
		old, e := inv.Find(action, *it.Entry), *it.Entry
		if old != nil && old.UID == "" {
			e.UID = ""
		}
		if old == nil || !sameEntry(*old, e) {
			out = append(out, *it.Entry)
		}
	}
	return out
}

// Incomplete reports whether one of a plan's items exists and has an entry without a UID.
func (inv *Inventory) Incomplete(action string, items []steps.Item) bool {
	return slices.ContainsFunc(items, func(it steps.Item) bool {
		if it.Entry == nil || it.Entry.UID == "" {
			return false
		}
		old := inv.Find(action, *it.Entry)
		return old != nil && old.UID == ""
	})
}

func sameEntry(a, b steps.Entry) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// put adds entries to an action. It replaces existing entries of the same objects.
func (inv *Inventory) put(action string, list []steps.Entry) {
	all := slices.Clone(inv.Actions[action])
	for _, e := range list {
		if i := slices.IndexFunc(all, e.Is); i >= 0 {
			all[i] = e
		} else {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b steps.Entry) int {
		return cmp.Or(
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.APIVersion, b.APIVersion),
		)
	})
	inv.Actions[action] = all
}

// merge combines the entries of two concurrent runs. was is what this run read, ours is what it has now, and theirs is
// what the other run has written in the meantime.
func merge(was, ours, theirs []steps.Entry) []steps.Entry {
	in := func(list []steps.Entry, e steps.Entry) *steps.Entry {
		if i := slices.IndexFunc(list, e.Is); i >= 0 {
			return &list[i]
		}
		return nil
	}
	out := &Inventory{Actions: map[string][]steps.Entry{}}
	for _, e := range theirs {
		if old := in(was, e); old == nil || in(ours, e) != nil || !sameEntry(*old, e) { // else this run found it deleted
			out.put("", []steps.Entry{e})
		}
	}
	for _, e := range ours {
		if old := in(was, e); old != nil && sameEntry(*old, e) {
			continue
		}
		if other := in(theirs, e); other != nil && (other.UID == e.UID || other.UID == "" || e.UID == "") {
			if other.UID != e.UID {
				e.UID = "" // the run that ends last adds the UID
			}
			e.Created = e.Created || other.Created // each run plans before the other run creates the object
			if other.Before != nil {
				e.Before = other.Before
			}
			for _, w := range other.Wrote {
				if !slices.Contains(e.Wrote, w) {
					e.Wrote = append(slices.Clone(e.Wrote), w)
				}
			}
		}
		out.put("", []steps.Entry{e})
	}
	return out.Actions[""]
}

// Rest returns the actions that have entries in the inventory, except for the given actions.
func (inv *Inventory) Rest(but []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(inv.Actions)), func(action string) bool {
		return len(inv.Actions[action]) == 0 || slices.Contains(but, action)
	})
}
