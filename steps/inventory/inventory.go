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

// The inventory is what undo goes by: which objects a link has created or written into, by UID, and which values it
// took over. Marks on objects can be forged by whoever can write the objects.
//
// It is kept in annotations, one an action, of a ClusterRole without rules, one a link. No tenant can write
// ClusterRoles, not even one who may create namespaces; every cluster has them; and one comes and goes in a single
// write, where a namespace takes its controller 5 s to delete (k8s.io/kubernetes pkg/controller/namespace,
// namespaceDeletionGracePeriod).
const (
	Prefix        = "carrick:"           // + link: the name of the ClusterRole
	inventoryKey  = "carrick/inventory." // + action: the entries, as JSON
	inventoryNote = "carrick/note."      // + action: what it created in another system, such as an id
)

var (
	clusterRoleKind = schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	ClusterRoles    = schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles"}
)

// ReleaseKind is the kind of the entry of a Helm release. Its UID is that of the Secret with the newest revision.
var ReleaseKind = schema.GroupVersionKind{Group: "helm.sh", Version: "v1", Kind: "Release"}

// IsRecord reports whether an object is a Secret that Helm keeps a release in.
func IsRecord(kind, name string) bool {
	return kind == "Secret" && strings.HasPrefix(name, "sh.helm.release.v1.")
}

// Inventory is that of one link on one cluster.
type Inventory struct {
	link    string
	UID     types.UID                // of the ClusterRole; "": it does not exist
	Version string                   // of the ClusterRole, as it was read or written last
	Actions map[string][]steps.Entry // by action
	was     map[string][]steps.Entry // by action, as of that version
	Notes   map[string]string        // by action
	Unread  error                    // why it may not be read; nil: it was
}

// Find is the entry of an object under an action; nil: there is none.
func (inv *Inventory) Find(action string, of steps.Entry) *steps.Entry {
	for i, e := range inv.Actions[action] {
		if e.Is(of) {
			return &inv.Actions[action][i]
		}
	}
	return nil
}

// Created reports whether this link created an object, by any of its actions.
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

// Next is the entry of an object that is about to be applied; live is nil where it does not exist. What an earlier
// version of carrick has written has marks and no entry: the marks are taken for it, and the plan says so.
func (inv *Inventory) Next(env steps.Env, obj, live *unstructured.Unstructured) *steps.Entry {
	if live == nil {
		return steps.NewEntry(obj)
	}
	e := steps.EntryOf(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	old := inv.Find(env.Action, e)
	marked := CreatedBy(live.GetAnnotations()) == env.Link
	switch {
	case old != nil && old.UID == live.GetUID():
		e.Created, e.Before = old.Created, maps.Clone(old.Before)
	case old != nil && old.UID == "":
		e.Created, e.Before = old.Created && marked, maps.Clone(old.Before)
	case live.GetLabels()[steps.LinkLabel(env.Link)] == env.Action && Wrote(env.Link, live.GetManagedFields()):
		e.Created, e.Adopted = marked, true
		if values, err := kept(live.GetAnnotations()); err == nil {
			e.Before = within(values, obj.Object)
		}
	}
	e.UID = live.GetUID()
	return &e
}

// within are the values for fields that an object has: a link takes over no others. nil: there are none.
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

// Lacks are the entries of a plan's items that the inventory does not have yet. Of what is left as it is, those of
// objects that exist. An entry that lacks its UID alone is completed when a run ends.
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

// put puts entries of an action in, in place of those of the same objects.
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

// merge brings what this run has changed since it read an action's entries into those that another run has written
// meanwhile.
func merge(was, ours, theirs []steps.Entry) []steps.Entry {
	in := func(list []steps.Entry, e steps.Entry) *steps.Entry {
		if i := slices.IndexFunc(list, e.Is); i >= 0 {
			return &list[i]
		}
		return nil
	}
	out := &Inventory{Actions: map[string][]steps.Entry{}}
	for _, e := range theirs {
		if old := in(was, e); old == nil || in(ours, e) != nil || !sameEntry(*old, e) { // else this run found it gone
			out.put("", []steps.Entry{e})
		}
	}
	for _, e := range ours {
		if old := in(was, e); old != nil && sameEntry(*old, e) {
			continue
		}
		if other := in(theirs, e); other != nil && (other.UID == e.UID || other.UID == "" || e.UID == "") {
			if other.UID != e.UID {
				e.UID = "" // whichever run ends last completes it
			}
			e.Created = e.Created || other.Created // each run plans before the other creates
			if other.Before != nil {
				e.Before = other.Before
			}
		}
		out.put("", []steps.Entry{e})
	}
	return out.Actions[""]
}

// Rest are the actions that the inventory has entries of, but for some.
func (inv *Inventory) Rest(but []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(inv.Actions)), func(action string) bool {
		return len(inv.Actions[action]) == 0 || slices.Contains(but, action)
	})
}
