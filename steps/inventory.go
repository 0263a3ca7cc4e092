package steps

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
)

// The inventory is what undo goes by: which objects a link has created or written into, by UID, and which values it took
// over. Marks on objects can be forged by whoever can write the objects.
//
// It is kept in annotations, one an action, of a ClusterRole without rules, one a link. No tenant can write ClusterRoles,
// not even one who may create namespaces; every cluster has them; and one comes and goes in a single write, where a
// namespace takes its controller 5 s to delete (k8s.io/kubernetes pkg/controller/namespace, namespaceDeletionGracePeriod).
const (
	inventoryPrefix = "carrick:"           // + link: the name of the ClusterRole
	inventoryKey    = "carrick/inventory." // + action: the entries, as JSON
	inventoryNote   = "carrick/note."      // + action: what it created in another system, such as an id
)

var (
	clusterRoleKind = schema.GroupVersionKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	clusterRolesAt  = schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles"}
)

// releaseKind is the kind of the entry of a Helm release. Its UID is that of the Secret with the newest revision.
var releaseKind = schema.GroupVersionKind{Group: "helm.sh", Version: "v1", Kind: "Release"}

// isRecord reports whether an object is a Secret that Helm keeps a release in.
func isRecord(kind, name string) bool {
	return kind == "Secret" && strings.HasPrefix(name, "sh.helm.release.v1.")
}

// inventory is that of one link on one cluster.
type inventory struct {
	link    string
	uid     types.UID          // of the ClusterRole; "": it does not exist
	version string             // of the ClusterRole, as it was read or written last
	actions map[string][]entry // by action
	was     map[string][]entry // by action, as of that version
	notes   map[string]string  // by action
	unread  error              // why it may not be read; nil: it was
}

// find is the entry of an object under an action; nil: there is none.
func (inv *inventory) find(action string, of entry) *entry {
	for i, e := range inv.actions[action] {
		if e.is(of) {
			return &inv.actions[action][i]
		}
	}
	return nil
}

// created reports whether this link created an object, by any of its actions.
func (inv *inventory) created(kind string, o *metav1.PartialObjectMetadata) bool {
	for _, list := range inv.actions {
		for _, e := range list {
			pending := e.UID == "" && e.Kind == kind && e.Namespace == o.Namespace && e.Name == o.Name
			if e.Created && (e.UID == o.UID || pending && CreatedBy(o.Annotations) == inv.link) {
				return true
			}
		}
	}
	return false
}

// next is the entry of an object that is about to be applied; live is nil where it does not exist. What an earlier version
// of carrick has written has marks and no entry: the marks are taken for it, and the plan says so.
func (inv *inventory) next(env Env, obj, live *unstructured.Unstructured) *entry {
	if live == nil {
		return newEntry(obj)
	}
	e := entryOf(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	old := inv.find(env.Action, e)
	marked := CreatedBy(live.GetAnnotations()) == env.Link
	switch {
	case old != nil && old.UID == live.GetUID():
		e.Created, e.Before = old.Created, maps.Clone(old.Before)
	case old != nil && old.UID == "":
		e.Created, e.Before = old.Created && marked, maps.Clone(old.Before)
	case live.GetLabels()[mark(env.Link)] == env.Action && wrote(env.Link, live.GetManagedFields()):
		e.Created, e.adopted = marked, true
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

// lacks are the entries of a plan's items that the inventory does not have yet. Of what is left as it is, those of
// objects that exist. An entry that lacks its UID alone is completed when a run ends.
func (inv *inventory) lacks(action string, items []Item) []entry {
	var out []entry
	for _, it := range items {
		if it.entry == nil || (!it.Verb.Changes() && it.entry.UID == "") {
			continue
		}
		old, e := inv.find(action, *it.entry), *it.entry
		if old != nil && old.UID == "" {
			e.UID = ""
		}
		if old == nil || !sameEntry(*old, e) {
			out = append(out, *it.entry)
		}
	}
	return out
}

// incomplete reports whether one of a plan's items exists and has an entry without a UID.
func (inv *inventory) incomplete(action string, items []Item) bool {
	return slices.ContainsFunc(items, func(it Item) bool {
		if it.entry == nil || it.entry.UID == "" {
			return false
		}
		old := inv.find(action, *it.entry)
		return old != nil && old.UID == ""
	})
}

func sameEntry(a, b entry) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// put puts entries of an action in, in place of those of the same objects.
func (inv *inventory) put(action string, list []entry) {
	all := slices.Clone(inv.actions[action])
	for _, e := range list {
		if i := slices.IndexFunc(all, e.is); i >= 0 {
			all[i] = e
		} else {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	inv.actions[action] = all
}

// merge brings what this run has changed since it read an action's entries into those that another run has written
// meanwhile.
func merge(was, ours, theirs []entry) []entry {
	in := func(list []entry, e entry) *entry {
		if i := slices.IndexFunc(list, e.is); i >= 0 {
			return &list[i]
		}
		return nil
	}
	out := &inventory{actions: map[string][]entry{}}
	for _, e := range theirs {
		if old := in(was, e); old == nil || in(ours, e) != nil || !sameEntry(*old, e) { // else this run found it gone
			out.put("", []entry{e})
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
		out.put("", []entry{e})
	}
	return out.actions[""]
}

// rest are the actions that the inventory has entries of, but for some.
func (inv *inventory) rest(but []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(inv.actions)), func(action string) bool {
		return len(inv.actions[action]) == 0 || slices.Contains(but, action)
	})
}
