package inventory

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/failure"
	"carrick/steps"
)

// inventoryCache caches an inventory for the lifetime of an Env.
type inventoryCache struct {
	mu  sync.Mutex
	inv *Inventory
}

type cacheKey struct{}

func cacheOf(e steps.Env) *inventoryCache {
	if e.Runtime.Cache == nil {
		return nil
	}
	v, _ := e.Runtime.Cache.LoadOrStore(cacheKey{}, &inventoryCache{})
	return v.(*inventoryCache)
}

// Of returns the inventory of a link. If the inventory cannot be read, Of returns no error. Callers that depend on the
// content must check Unread.
func Of(ctx context.Context, e steps.Env) (*Inventory, error) {
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

// Start begins to read the inventory in advance, for a check that is about to use it.
func Start(e steps.Env) {
	if e.Runtime.Watched {
		e.Cluster.StartGet(ClusterRoles, "", Prefix+e.Link)
	}
}

// Readable is like Of, but returns an error if the inventory can't be read.
func Readable(ctx context.Context, e steps.Env) (*Inventory, error) {
	inv, err := Of(ctx, e)
	if err == nil {
		err = inv.Unread
	}
	return inv, err
}

// EnvOf returns e for another link and action, without a cached inventory.
func EnvOf(e steps.Env, link, action string) steps.Env {
	e.Link, e.Action, e.Runtime.Cache = link, action, nil
	return e
}

// forgetInventory drops the cached inventory after a failed write, because it can differ from the cluster.
func forgetInventory(e steps.Env) {
	if cache := cacheOf(e); cache != nil {
		cache.mu.Lock()
		defer cache.mu.Unlock()
		cache.inv = nil
	}
}

func inventoryObject(link string) *unstructured.Unstructured {
	return steps.EntryOf(clusterRoleKind, "", Prefix+link).Object()
}

// Name returns the name of a link's inventory as plans show it.
func Name(link string) string { return Describe(inventoryObject(link)) }

func readInventory(ctx context.Context, env steps.Env) (*Inventory, error) {
	if env.Runtime.Watched {
		live, err := env.Cluster.Get(ctx, ClusterRoles, "", Prefix+env.Link)
		return Parse(env, live, err)
	}
	live, err := env.Cluster.Fetch(ctx, inventoryObject(env.Link))
	return Parse(env, live, err)
}

// Parse converts the result of a read to the inventory. If the inventory could not be read, Unread contains the error.
func Parse(env steps.Env, live *unstructured.Unstructured, err error) (*Inventory, error) {
	inv := &Inventory{
		link: env.Link, Actions: map[string][]steps.Entry{}, was: map[string][]steps.Entry{}, Notes: map[string]string{},
	}
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, failure.ErrNotServed):
		return inv, nil
	case apierrors.IsForbidden(err):
		inv.Unread = err
		return inv, nil
	case err != nil:
		return nil, fmt.Errorf("read the inventory of this link: %w", err)
	}
	inv.UID, inv.Version = live.GetUID(), live.GetResourceVersion()
	for key, text := range live.GetAnnotations() {
		if action, ok := strings.CutPrefix(key, inventoryNote); ok {
			inv.Notes[action] = text
		}
		action, ok := strings.CutPrefix(key, inventoryKey)
		if !ok || env.Runtime.Guide != nil && slices.Contains(env.Runtime.Guide.Retired, action) {
			continue
		}
		var list []steps.Entry
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf(
				"the inventory of this link cannot be read: annotation %s of %s: %w", key, Name(env.Link), err,
			)
		}
		inv.Actions[action], inv.was[action] = list, slices.Clone(list)
	}
	return inv, nil
}

// Enter writes the entries of env's action. It must be called before the objects are written. It replaces existing
// entries of the same objects.
func (inv *Inventory) Enter(ctx context.Context, env steps.Env, say steps.Progress, list []steps.Entry) error {
	if inv.Unread != nil {
		return inv.Unread
	}
	if len(list) == 0 {
		return nil
	}
	inv.put(env.Action, list)
	return inv.Write(ctx, env, say, env.Action)
}

// EnterOne is like Enter for one object that was not in the action's plan. It skips Secrets in which Helm stores a
// release, because the release has its own entry.
func EnterOne(ctx context.Context, env steps.Env, say steps.Progress, verb steps.Verb, e *steps.Entry) error {
	if IsRecord(e.Kind, e.Name) {
		return nil
	}
	inv, err := Of(ctx, env)
	if err != nil {
		return err
	}
	return inv.Enter(ctx, env, say, inv.Lacks(env.Action, []steps.Item{{Verb: verb, Entry: e}}))
}

// otherRuns is the maximum number of retries of a write after a conflict with another run of the link.
const otherRuns = 10

// Write writes the entries of the given actions. It removes the annotation of an action without entries. It keeps
// changes that another run has written in the meantime.
func (inv *Inventory) Write(ctx context.Context, env steps.Env, say steps.Progress, actions ...string) error {
	err := inv.writeOnce(ctx, env, say, actions)
	for n := 0; n < otherRuns && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)); n++ {
		now, readErr := readInventory(ctx, env)
		if readErr != nil {
			return readErr
		}
		if now.Unread != nil {
			return now.Unread
		}
		for _, action := range actions {
			now.Actions[action] = merge(inv.was[action], inv.Actions[action], now.Actions[action])
		}
		*inv = *now
		err = inv.writeOnce(ctx, env, say, actions)
	}
	return err
}

func (inv *Inventory) writeOnce(ctx context.Context, env steps.Env, say steps.Progress, actions []string) error {
	notes := map[string]any{}
	for _, action := range actions {
		notes[inventoryKey+action] = nil
		if list := inv.Actions[action]; len(list) > 0 {
			b, err := json.Marshal(list)
			if err != nil {
				return fmt.Errorf("write the inventory of this link: %w", err)
			}
			notes[inventoryKey+action] = string(b)
		}
	}
	if err := inv.annotate(ctx, env, say, notes, inv.Version); err != nil {
		return err
	}
	for _, action := range actions {
		inv.was[action] = slices.Clone(inv.Actions[action])
	}
	return nil
}

// annotate writes annotations of the inventory. If the inventory does not exist, annotate creates it. A nil value
// removes an annotation. If the inventory no longer has the given resource version, annotate returns an error. If
// version is "", any version is accepted.
func (inv *Inventory) annotate(
	ctx context.Context, env steps.Env, say steps.Progress, notes map[string]any, version string,
) error {
	var live *unstructured.Unstructured
	var err error
	if inv.UID == "" {
		maps.DeleteFunc(notes, func(_ string, v any) bool { return v == nil })
		notes[CreatedByAnnotation] = env.Link
		o := inventoryObject(env.Link)
		o.Object["metadata"].(map[string]any)["annotations"] = notes
		o.Object["rules"] = []any{}
		o.SetLabels(map[string]string{steps.LinkLabel(env.Link): "inventory"})
		live, err = env.Cluster.Create(ctx, o, steps.FieldManager(env.Link, "inventory"))
	} else {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": notes}}); err != nil {
			return err
		}
		opts := cluster.PatchOptions{
			Manager: steps.FieldManager(env.Link, "inventory"), UID: inv.UID, ResourceVersion: version,
		}
		live, err = env.Cluster.Patch(ctx, ClusterRoles, "", Prefix+env.Link, patch, opts)
	}
	if err != nil {
		forgetInventory(env)
		return fmt.Errorf("write the inventory of this link: %w", err)
	}
	if inv.UID == "" {
		say.Did(steps.Create, Name(env.Link), "")
	}
	inv.UID, inv.Version = live.GetUID(), live.GetResourceVersion()
	return nil
}

// Settle completes the entries of an action. It adds the UIDs of objects that now exist, and removes entries of objects
// that were deleted or released, or that this link has not written. It does not read the objects of
// complete entries; if complete is nil, it reads all. It reports whether anything changed.
func (inv *Inventory) Settle(
	ctx context.Context, env steps.Env, action string, complete func(steps.Entry) bool,
) (bool, error) {
	list := inv.Actions[action]
	now := make([]*steps.Entry, len(list))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i, e := range list {
		if complete != nil && complete(e) {
			now[i] = &e
			continue
		}
		all.Go(func() (err error) {
			now[i], err = settled(each, env, action, e)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return false, fmt.Errorf("read the objects in the inventory of this link: %w", err)
	}
	changed := false
	var out []steps.Entry
	for i, e := range now {
		if e != nil {
			out = append(out, *e)
		}
		changed = changed || e == nil || !sameEntry(*e, list[i])
	}
	inv.Actions[action] = out
	return changed, nil
}

// settled returns the current entry. If the object was deleted, was replaced by another one, or does not belong to this
// link, it returns nil.
func settled(ctx context.Context, env steps.Env, action string, e steps.Entry) (*steps.Entry, error) {
	if e.GVK() == ReleaseKind {
		r, err := chart.Current(ctx, env.Cluster, e.Namespace, e.Name)
		switch {
		case errors.Is(err, chart.ErrNoRelease):
			return nil, nil
		case errors.As(err, new(*chart.UnreadableError)), errors.Is(err, chart.ErrName), apierrors.IsForbidden(err):
			return &e, nil // any tenant can write such a Secret, so an unreadable one must not stop a run
		case err != nil:
			return nil, err
		case r.Labels[steps.LinkLabel(env.Link)] != action:
			return nil, nil
		}
		e.UID = r.UID
		return &e, nil
	}
	live, err := env.Cluster.Fetch(ctx, e.Object())
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, failure.ErrNotServed):
		return nil, nil
	case apierrors.IsForbidden(err):
		return &e, nil
	case err != nil:
		return nil, err
	}
	marked := live.GetLabels()[steps.LinkLabel(env.Link)] == action
	switch {
	case live.GetUID() == e.UID && (e.Created || marked || Wrote(env.Link, live.GetManagedFields())):
	case !marked || live.GetUID() == e.UID:
		return nil, nil
	default:
		e.UID, e.Created = live.GetUID(), e.Created && CreatedBy(live.GetAnnotations()) == env.Link
	}
	return &e, nil
}

// OfLink returns the inventory of this link or of another one.
func OfLink(ctx context.Context, e steps.Env, link string) (*Inventory, error) {
	if link != e.Link {
		e = EnvOf(e, link, e.Action)
	}
	return Of(ctx, e)
}
