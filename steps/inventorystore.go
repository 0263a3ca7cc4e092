package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/chart"
)

// inventoryCache keeps an inventory for as long as an Env is in use.
type inventoryCache struct {
	mu  sync.Mutex
	inv *inventory
}

type cacheKey struct{}

func cacheOf(e Env) *inventoryCache {
	if e.Runtime.Cache == nil {
		return nil
	}
	v, _ := e.Runtime.Cache.LoadOrStore(cacheKey{}, &inventoryCache{})
	return v.(*inventoryCache)
}

// inventory reads the link's inventory. One that may not be read is no error: whoever goes by it has to look at unread.
func inventoryIn(ctx context.Context, e Env) (*inventory, error) {
	cache := cacheOf(e)
	if cache == nil {
		return readInventory(ctx, e)
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if cache.inv == nil {
		inv, err := readInventory(ctx, e)
		if err != nil {
			return nil, err
		}
		cache.inv = inv
	}
	return cache.inv, nil
}

// readableInventory is inventory for whoever can't go on without it.
func readableInventory(ctx context.Context, e Env) (*inventory, error) {
	inv, err := inventoryIn(ctx, e)
	if err == nil {
		err = inv.unread
	}
	return inv, err
}

// of is the Env of a link and an action, with an inventory that is read anew each time.
func envOf(e Env, link, action string) Env {
	e.Link, e.Action, e.Runtime.Cache = link, action, nil
	return e
}

// forgetInventory has the inventory read anew, where writing it failed: what is in memory may not be in the cluster.
func forgetInventory(e Env) {
	if cache := cacheOf(e); cache != nil {
		cache.mu.Lock()
		defer cache.mu.Unlock()
		cache.inv = nil
	}
}

func inventoryObject(link string) *unstructured.Unstructured {
	return entryOf(clusterRoleKind, "", inventoryPrefix+link).object()
}

func inventoryName(link string) string { return describe(inventoryObject(link)) }

func readInventory(ctx context.Context, env Env) (*inventory, error) {
	live, err := env.Cluster.Fetch(ctx, inventoryObject(env.Link))
	return parseInventory(env, live, err)
}

// parseInventory is what was read of the inventory, or why nothing was.
func parseInventory(env Env, live *unstructured.Unstructured, err error) (*inventory, error) {
	inv := &inventory{link: env.Link, actions: map[string][]entry{}, was: map[string][]entry{}, notes: map[string]string{}}
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, cluster.ErrNotServed):
		return inv, nil
	case apierrors.IsForbidden(err):
		inv.unread = err
		return inv, nil
	case err != nil:
		return nil, fmt.Errorf("read the inventory of this link: %w", err)
	}
	inv.uid, inv.version = live.GetUID(), live.GetResourceVersion()
	for key, text := range live.GetAnnotations() {
		if action, ok := strings.CutPrefix(key, inventoryNote); ok {
			inv.notes[action] = text
		}
		action, ok := strings.CutPrefix(key, inventoryKey)
		if !ok || env.Runtime.Guide != nil && slices.Contains(env.Runtime.Guide.Retired, action) {
			continue
		}
		var list []entry
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("the inventory of this link can't be read: annotation %s of %s: %w", key, inventoryName(env.Link), err)
		}
		inv.actions[action], inv.was[action] = list, slices.Clone(list)
	}
	return inv, nil
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

// enterOne is enter for an object that the plan of the action did not name. The Secrets of a release are not entered: the
// release is.
func enterOne(ctx context.Context, env Env, say Progress, verb Verb, e *entry) error {
	if isRecord(e.Kind, e.Name) {
		return nil
	}
	inv, err := inventoryIn(ctx, env)
	if err != nil {
		return err
	}
	return inv.enter(ctx, env, say, inv.lacks(env.Action, []Item{{Verb: verb, entry: e}}))
}

// otherRuns is how often a write is retried because another run of the link has written meanwhile.
const otherRuns = 10

// write writes what the inventory has of some actions. What has no entries goes. What another run has written meanwhile
// stays.
func (inv *inventory) write(ctx context.Context, env Env, say Progress, actions ...string) error {
	err := inv.writeOnce(ctx, env, say, actions)
	for n := 0; n < otherRuns && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)); n++ {
		now, readErr := readInventory(ctx, env)
		if readErr != nil {
			return readErr
		}
		if now.unread != nil {
			return now.unread
		}
		for _, action := range actions {
			now.actions[action] = merge(inv.was[action], inv.actions[action], now.actions[action])
		}
		*inv = *now
		err = inv.writeOnce(ctx, env, say, actions)
	}
	return err
}

func (inv *inventory) writeOnce(ctx context.Context, env Env, say Progress, actions []string) error {
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
	if err := inv.annotate(ctx, env, say, notes, inv.version); err != nil {
		return err
	}
	for _, action := range actions {
		inv.was[action] = slices.Clone(inv.actions[action])
	}
	return nil
}

// annotate writes annotations of the inventory, and creates it where it does not exist; nil removes one. It has to be in
// that version still; "": in any.
func (inv *inventory) annotate(ctx context.Context, env Env, say Progress, notes map[string]any, version string) error {
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
		opts := cluster.PatchOptions{Manager: managerOf(env.Link, "inventory"), UID: inv.uid, ResourceVersion: version}
		live, err = env.Cluster.Patch(ctx, clusterRolesAt, "", inventoryPrefix+env.Link, patch, opts)
	}
	if err != nil {
		forgetInventory(env)
		return fmt.Errorf("write the inventory of this link: %w", err)
	}
	if inv.uid == "" {
		say.Did(Create, inventoryName(env.Link), "")
	}
	inv.uid, inv.version = live.GetUID(), live.GetResourceVersion()
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

// Creator is the link that created an object, by the inventory of that link; "": none did. The object's own word names the
// link, and is not believed without it.
func Creator(ctx context.Context, e Env, o *unstructured.Unstructured) (string, error) {
	meta := metadataOf(o)
	return linkWith(ctx, e, CreatedBy(o.GetAnnotations()), func(inv *inventory) (bool, error) {
		return inv.created(o.GetKind(), &meta), nil
	})
}

// Installer is the link that has a Helm release in its inventory; "": none has. What a release consists of has no
// entries of its own. said is the link that an object of the release names, and is not believed without its inventory.
func Installer(ctx context.Context, e Env, namespace, release, said string) (string, error) {
	of := entryOf(releaseKind, namespace, release)
	return linkWith(ctx, e, said, func(inv *inventory) (bool, error) {
		for action := range inv.actions {
			if inv.find(action, of) != nil {
				return true, nil
			}
		}
		return false, inv.unread
	})
}

// linkWith is this link or the one that is said, whichever has an inventory that fits; "": neither.
func linkWith(ctx context.Context, e Env, said string, fits func(*inventory) (bool, error)) (string, error) {
	for _, link := range []string{e.Link, said} {
		if CheckLinkName(link) != nil {
			continue
		}
		inv, err := inventoryOf(ctx, e, link)
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
	Created bool // it was not there before
}

// Made finds what an action of this link has written, by the inventory: whoever may write an object can take its marks off,
// or copy them. The mark decides where the inventory has no UID yet, and with what undo is told to take for this link's.
func MadeBy(ctx context.Context, e Env, gvr schema.GroupVersionResource, action string) ([]Made, error) {
	inv, err := inventoryIn(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []Made
	for _, o := range inv.actions[action] {
		if o.gvk() == releaseKind {
			continue
		}
		kind, _, err := e.Cluster.Resource(ctx, o.gvk())
		if errors.Is(err, cluster.ErrNotServed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if kind.GroupResource() != gvr.GroupResource() {
			continue
		}
		live, err := e.Cluster.Fetch(ctx, o.object())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		marked := live.GetLabels()[mark(e.Link)] == action
		if o.UID == live.GetUID() || o.UID == "" && marked {
			created := o.Created && (o.UID != "" || CreatedBy(live.GetAnnotations()) == e.Link)
			out = append(out, Made{metadataOf(live), created})
		}
	}
	if len(e.Runtime.Found) == 0 {
		return out, nil
	}
	marked, err := e.Cluster.Find(ctx, gvr, "", e.Marked(action))
	for _, o := range marked {
		known := slices.ContainsFunc(out, func(m Made) bool { return m.UID == o.UID })
		named := describe(entry{Namespace: o.Namespace, Name: o.Name}.object())
		if !known && slices.ContainsFunc(e.Runtime.Found, func(f string) bool { return strings.HasSuffix(f, named) }) {
			out = append(out, Made{o, CreatedBy(o.Annotations) == e.Link})
		}
	}
	return out, err
}

// inventoryOf is the inventory of this link, or of another one.
func inventoryOf(ctx context.Context, e Env, link string) (*inventory, error) {
	if link != e.Link {
		e = envOf(e, link, e.Action)
	}
	return inventoryIn(ctx, e)
}

func metadataOf(o *unstructured.Unstructured) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(), ResourceVersion: o.GetResourceVersion(),
		ManagedFields: o.GetManagedFields(),
	}}
}
