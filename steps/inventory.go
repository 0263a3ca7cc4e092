package steps

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/chart"
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

// entry is one object of the inventory.
type entry struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	UID        types.UID      `json:"uid,omitempty"`     // "": carrick is about to create it
	Created    bool           `json:"created,omitempty"` // this link created it: undo deletes it
	Before     map[string]any `json:"before,omitempty"`  // another manager's values that this link took over

	adopted bool // it is taken from the object's marks, because an earlier version wrote the object
}

// releaseKind is the kind of the entry of a Helm release. Its UID is that of the Secret with the newest revision.
var releaseKind = schema.GroupVersionKind{Group: "helm.sh", Version: "v1", Kind: "Release"}

// releaseSecret begins the name of a Secret that Helm keeps a release in.
const releaseSecret = "sh.helm.release.v1."

func entryOf(gvk schema.GroupVersionKind, namespace, name string) entry {
	return entry{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
}

func (e entry) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

// is reports whether two entries are of one object, in whatever version of its API.
func (e entry) is(o entry) bool {
	return e.gvk().GroupKind() == o.gvk().GroupKind() && e.Namespace == o.Namespace && e.Name == o.Name
}

func (e entry) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.gvk())
	o.SetNamespace(e.Namespace)
	o.SetName(e.Name)
	o.SetUID(e.UID)
	return o
}

// inventory is that of one link on one cluster.
type inventory struct {
	link    string
	uid     types.UID          // of the ClusterRole; "": it does not exist
	actions map[string][]entry // by action
	notes   map[string]string  // by action
	unread  error              // why it may not be read; nil: it was
}

// inventoryCache keeps an inventory for as long as an Env is in use.
type inventoryCache struct {
	mu  sync.Mutex
	inv *inventory
}

// inventory reads the link's inventory. One that may not be read is no error: whoever goes by it has to look at unread.
func (e Env) inventory(ctx context.Context) (*inventory, error) {
	if e.inv == nil {
		return readInventory(ctx, e)
	}
	e.inv.mu.Lock()
	defer e.inv.mu.Unlock()
	if e.inv.inv == nil {
		inv, err := readInventory(ctx, e)
		if err != nil {
			return nil, err
		}
		e.inv.inv = inv
	}
	return e.inv.inv, nil
}

// forgetInventory has the inventory read anew, where writing it failed: what is in memory may not be in the cluster.
func (e Env) forgetInventory() {
	if e.inv != nil {
		e.inv.mu.Lock()
		defer e.inv.mu.Unlock()
		e.inv.inv = nil
	}
}

func inventoryObject(link string) *unstructured.Unstructured {
	return entryOf(clusterRoleKind, "", inventoryPrefix+link).object()
}

func inventoryName(link string) string { return describe(inventoryObject(link)) }

func readInventory(ctx context.Context, env Env) (*inventory, error) {
	inv := &inventory{link: env.Link, actions: map[string][]entry{}, notes: map[string]string{}}
	live, err := env.Cluster.Fetch(ctx, inventoryObject(env.Link))
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, cluster.ErrNotServed):
		return inv, nil
	case apierrors.IsForbidden(err):
		inv.unread = err
		return inv, nil
	case err != nil:
		return nil, fmt.Errorf("read the inventory of this link: %w", err)
	}
	inv.uid = live.GetUID()
	for key, text := range live.GetAnnotations() {
		if action, ok := strings.CutPrefix(key, inventoryNote); ok {
			inv.notes[action] = text
		}
		action, ok := strings.CutPrefix(key, inventoryKey)
		if !ok {
			continue
		}
		var list []entry
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("the inventory of this link can't be read: annotation %s of %s: %w", key, inventoryName(env.Link), err)
		}
		inv.actions[action] = list
	}
	return inv, nil
}

// whyUnread is why it may not be read; nil: it was, or it is nil itself.
func (inv *inventory) whyUnread() error {
	if inv == nil {
		return nil
	}
	return inv.unread
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
	e := entryOf(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	if live == nil {
		e.Created = true
		return &e
	}
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

// enter writes entries of an action, before the objects are written. Entries of the same objects are replaced.
func (inv *inventory) enter(ctx context.Context, env Env, say Progress, list []entry) error {
	if inv.unread != nil {
		return inv.unread
	}
	if len(list) == 0 {
		return nil
	}
	inv.put(env.Action, list)
	return inv.write(ctx, env, say, env.Action)
}

// put is enter without the write.
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

// enterOne is enter for an object that the plan of the action did not name. The Secrets of a release are not entered: the
// release is.
func enterOne(ctx context.Context, env Env, say Progress, verb Verb, e *entry) error {
	if e.Kind == secretKind.Kind && strings.HasPrefix(e.Name, releaseSecret) {
		return nil
	}
	inv, err := env.inventory(ctx)
	if err != nil {
		return err
	}
	return inv.enter(ctx, env, say, inv.lacks(env.Action, []Item{{Verb: verb, entry: e}}))
}

// write writes what the inventory has of some actions. What has no entries goes.
func (inv *inventory) write(ctx context.Context, env Env, say Progress, actions ...string) error {
	notes := map[string]any{}
	for _, action := range actions {
		notes[inventoryKey+action] = nil
		if list := inv.actions[action]; len(list) > 0 {
			b, err := json.Marshal(list)
			if err != nil {
				return fmt.Errorf("write the inventory of this link: %w", err)
			}
			notes[inventoryKey+action] = string(b)
		}
	}
	return inv.annotate(ctx, env, say, notes)
}

// annotate writes annotations of the inventory, and creates it where it does not exist; nil removes one.
func (inv *inventory) annotate(ctx context.Context, env Env, say Progress, notes map[string]any) error {
	var live *unstructured.Unstructured
	var err error
	if inv.uid == "" {
		maps.DeleteFunc(notes, func(_ string, v any) bool { return v == nil })
		notes[createdBy] = env.Link
		o := inventoryObject(env.Link)
		o.Object["metadata"].(map[string]any)["annotations"] = notes
		o.Object["rules"] = []any{}
		o.SetLabels(map[string]string{mark(env.Link): "inventory"})
		live, err = env.Cluster.Create(ctx, o, managerOf(env.Link, "inventory"))
	} else {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": notes}}); err != nil {
			return err
		}
		opts := cluster.PatchOptions{Manager: managerOf(env.Link, "inventory"), UID: inv.uid}
		live, err = env.Cluster.Patch(ctx, clusterRolesAt, "", inventoryPrefix+env.Link, patch, opts)
	}
	if apierrors.IsAlreadyExists(err) { // another run of this link was quicker
		if live, err = env.Cluster.Fetch(ctx, inventoryObject(env.Link)); err == nil {
			inv.uid = live.GetUID()
			delete(notes, createdBy)
			return inv.annotate(ctx, env, say, notes)
		}
	}
	if err != nil {
		env.forgetInventory()
		return fmt.Errorf("write the inventory of this link: %w", err)
	}
	if inv.uid == "" {
		say.Did(Create, inventoryName(env.Link), "")
	}
	inv.uid = live.GetUID()
	return nil
}

// settle completes what the inventory says of an action: the UIDs of what is there by now, and nothing of what is gone
// or has been released. It reports whether that changed anything.
func (inv *inventory) settle(ctx context.Context, env Env, action string, pending bool) (bool, error) {
	list := inv.actions[action]
	now := make([]*entry, len(list))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i, e := range list {
		if pending && e.UID != "" {
			now[i] = &e
			continue
		}
		all.Go(func() (err error) {
			now[i], err = settled(each, env, action, e)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return false, fmt.Errorf("look what the inventory of this link names: %w", err)
	}
	changed := false
	var out []entry
	for i, e := range now {
		if e != nil {
			out = append(out, *e)
		}
		changed = changed || e == nil || !sameEntry(*e, list[i])
	}
	inv.actions[action] = out
	return changed, nil
}

// settled is an entry as it is by now; nil: its object is gone, another one, or nothing of this link's.
func settled(ctx context.Context, env Env, action string, e entry) (*entry, error) {
	if e.gvk() == releaseKind {
		r, err := chart.Current(ctx, env.Cluster, e.Namespace, e.Name)
		switch {
		case errors.Is(err, chart.ErrNoRelease):
			return nil, nil
		case errors.As(err, new(*chart.UnreadableError)), errors.Is(err, chart.ErrName), apierrors.IsForbidden(err):
			return &e, nil // one such Secret, which any tenant of the namespace can write, must not stop a run
		case err != nil:
			return nil, err
		case r.Labels[mark(env.Link)] != action:
			return nil, nil
		}
		e.UID = r.UID
		return &e, nil
	}
	live, err := env.Cluster.Fetch(ctx, e.object())
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, cluster.ErrNotServed):
		return nil, nil
	case apierrors.IsForbidden(err):
		return &e, nil
	case err != nil:
		return nil, err
	}
	marked := live.GetLabels()[mark(env.Link)] == action
	switch {
	case live.GetUID() == e.UID && (e.Created || marked || wrote(env.Link, live.GetManagedFields())):
	case !marked || live.GetUID() == e.UID:
		return nil, nil
	default:
		e.UID, e.Created = live.GetUID(), e.Created && CreatedBy(live.GetAnnotations()) == env.Link
	}
	return &e, nil
}

// Made finds what an action of this link has written, by its mark, as far as the inventory has it.
func (e Env) Made(ctx context.Context, gvr schema.GroupVersionResource, action string) ([]metav1.PartialObjectMetadata, error) {
	inv, err := e.inventory(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.Cluster.Find(ctx, gvr, "", e.Marked(action))
	return slices.DeleteFunc(list, func(o metav1.PartialObjectMetadata) bool {
		return !slices.ContainsFunc(inv.actions[action], func(in entry) bool {
			return in.UID == o.UID || in.UID == "" && in.Namespace == o.Namespace && in.Name == o.Name
		})
	}), err
}

// Note is what an action has noted in the inventory of its link, such as the id of what it created in another system; "":
// nothing. It is read anew each time.
func (e Env) Note(ctx context.Context, action string) (string, error) {
	inv, err := readInventory(ctx, e)
	if err != nil {
		return "", err
	}
	return inv.notes[action], inv.unread
}

// SetNote notes something for an action; "" removes the note.
func (e Env) SetNote(ctx context.Context, action, text string, say Progress) error {
	inv, err := readInventory(ctx, e)
	if err == nil {
		err = inv.unread
	}
	if err != nil || (text == "" && inv.uid == "") {
		return err
	}
	var value any = text
	if text == "" {
		value = nil
	}
	return inv.annotate(ctx, e, say, map[string]any{inventoryNote + action: value})
}
