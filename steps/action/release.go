package action

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/diff"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/inventory"
)

// undoManager is the field manager of the values that an undo restores.
const undoManager = "carrick.undo"

// release reverts what this action wrote into an object that is kept. It restores values that it took over and removes
// its own fields by applying an empty object. Parts that another link uses are handed over to that link. It deletes the
// inventory entry last, so that the next run finds an interrupted release.
func release(ctx context.Context, env steps.Env, f found) error {
	heir, action, err := heirOf(ctx, env, f)
	if err != nil {
		return err
	}
	if heir == "" {
		err = putBack(ctx, env, f)
	} else {
		err = handOn(ctx, env, f, heir, action)
	}
	if err != nil {
		return err
	}
	obj := f.object() // the UID prevents recreating a deleted object
	if _, err := env.Cluster.Apply(ctx, obj, cluster.ApplyOptions{Manager: env.Manager()}); err != nil {
		if apierrors.IsNotFound(err) || gone(err) {
			return nil
		}
		return fmt.Errorf("release %s: %w", inventory.Describe(obj), err)
	}
	return inventory.Released(ctx, env, f.UID)
}

// before returns the values that the link took over in an object. It does not trust the annotation that also contains
// them.
func (f found) before() map[string]any {
	if f.entry == nil {
		return nil
	}
	return runtime.DeepCopyJSON(f.entry.Before)
}

// gone reports whether an apply was rejected because no object with that UID exists.
func gone(err error) bool {
	return apierrors.IsConflict(err) && len(failure.Conflicts(err)) == 0
}

// heirOf returns another link that uses the object, and that link's action. It returns "" if there is none.
func heirOf(ctx context.Context, env steps.Env, f found) (heir, action string, err error) {
	others, _, err := inventory.UsersOf(ctx, env, &f.PartialObjectMetadata)
	if err != nil || len(others) == 0 {
		return "", "", err
	}
	heir = slices.Sorted(maps.Keys(others))[0]
	return heir, others[heir], nil
}

// handOn makes another link, the heir, the creator of the object. The heir's inventory entry then records whether an
// undo of the heir deletes the object, and which values that undo restores. The annotation CreatedByAnnotation names
// the heir, too.
func handOn(ctx context.Context, env steps.Env, f found, heir, action string) error {
	as := inventory.EnvOf(env, heir, action)
	if f.entry != nil {
		inv, err := inventory.Readable(ctx, as)
		if err != nil {
			return err
		}
		e := *f.entry
		if old := inv.Find(action, e); old != nil {
			e.Created = e.Created || old.Created
			if len(old.Before) > 0 {
				e.Before = old.Before
			}
		}
		if err := inv.Enter(ctx, as, nil, []steps.Entry{e}); err != nil {
			return err
		}
	}
	if f.Annotations[inventory.CreatedByAnnotation] != env.Link {
		return nil
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{inventory.CreatedByAnnotation: heir}}},
	)
	if err != nil {
		return err
	}
	opts := cluster.PatchOptions{Manager: as.Manager(), UID: f.UID}
	if _, err := env.Cluster.Patch(ctx, f.gvr, f.Namespace, f.Name, patch, opts); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("hand over %s to link %s: %w", inventory.Describe(f.object()), heir, err)
	}
	return nil
}

func putBack(ctx context.Context, env steps.Env, f found) error {
	if _, err := patchBack(ctx, env, f, false); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("restore the old values of %s: %w", inventory.Describe(f.object()), err)
	}
	return nil
}

// patchBack restores the values and returns the resulting object. If there are no values, it returns nil.
func patchBack(ctx context.Context, env steps.Env, f found, dry bool) (*unstructured.Unstructured, error) {
	old := f.before()
	for _, m := range f.ManagedFields {
		if m.Manager != env.Manager() || m.Operation != metav1.ManagedFieldsOperationApply {
			leaveOut(old, setOf(m))
		}
	}
	withhold(f.gvk.GroupKind(), old)
	if len(old) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	opts := cluster.PatchOptions{Manager: undoManager, UID: f.UID, DryRun: dry}
	return env.Cluster.Patch(ctx, f.gvr, f.Namespace, f.Name, patch, opts)
}

func showBack(ctx context.Context, env steps.Env, f found) (string, error) {
	after, err := patchBack(ctx, env, f, true)
	if after == nil || err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			err = nil
		}
		return "", err
	}
	live, err := env.Cluster.Fetch(ctx, f.object())
	if err != nil {
		return "", err
	}
	return diff.Objects(live, after), nil
}

// neverPutBack lists fields that an undo never restores. They grant permissions or run code, and restoring them would
// bypass the API server's check for privilege escalation.
var neverPutBack = map[string][]string{
	"rbac.authorization.k8s.io":    {"rules", "subjects", "roleRef", "aggregationRule"},
	"admissionregistration.k8s.io": {"webhooks"},
}

// withhold removes the fields in neverPutBack from old and returns their names.
func withhold(kind schema.GroupKind, old map[string]any) (fields []string) {
	for _, field := range neverPutBack[kind.Group] {
		if _, ok := old[field]; ok {
			fields = append(fields, field)
			delete(old, field)
		}
	}
	return fields
}

// returns lists the names of the fields that a release restores.
func returns(f found) string {
	old := f.before()
	fields := withhold(f.gvk.GroupKind(), old)
	note := ""
	if paths := inventory.FieldPaths("", old); len(paths) > 0 {
		note = "; restores " + strings.Join(paths, ", ")
	}
	if len(fields) > 0 {
		note += fmt.Sprintf(
			"; does not restore %s: the old value is in the inventory of this link (annotations of its ClusterRole %sLINK). "+
				"The inventory is deleted with the last object of this link, so copy the value first if you need it",
			strings.Join(fields, ", "), inventory.Prefix,
		)
	}
	return note
}

// leaveOut removes from old the values of the fields in owned, which another manager owns. When this link took over a
// value, it became the only owner. Another owner has therefore written the value since, and an undo keeps it.
func leaveOut(old, owned map[string]any) {
	for key, v := range old {
		set, ok := owned["f:"+key].(map[string]any)
		if !ok {
			continue
		}
		inner, isMap := v.(map[string]any)
		if !isMap || len(set) == 0 { // a value, or a map that a manager owns as a whole
			delete(old, key)
			continue
		}
		if leaveOut(inner, set); len(inner) == 0 {
			delete(old, key)
		}
	}
}

func setOf(m metav1.ManagedFieldsEntry) map[string]any {
	var set map[string]any
	if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &set) != nil {
		return nil
	}
	return set
}
