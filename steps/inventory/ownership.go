package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"carrick/cluster/failure"
	"carrick/steps"
)

// These annotations identify objects that carrick creates or changes. In addition, each object has an ownership label
// whose value is the action. Undo uses the label to find an action's objects without rendering manifests.
const (
	CreatedByAnnotation = "carrick/created-by" // the link that created the object
	BeforeAnnotation    = "carrick/before"     // JSON with the values that a version without an inventory took over
)

// CreatedBy returns the link that created an object, according to its annotations, or "".
func CreatedBy(annotations map[string]string) string { return annotations[CreatedByAnnotation] }

// SetOwnership adds the ownership label to an object that is about to be applied. If this link creates or has created
// the object, SetOwnership also adds CreatedByAnnotation.
func SetOwnership(env steps.Env, obj, live *unstructured.Unstructured) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[steps.LinkLabel(env.Link)] = env.Action
	obj.SetLabels(labels)
	notes := obj.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	delete(notes, CreatedByAnnotation)
	if live == nil || live.GetAnnotations()[CreatedByAnnotation] == env.Link {
		notes[CreatedByAnnotation] = env.Link
	}
	if len(notes) > 0 {
		obj.SetAnnotations(notes)
	} else {
		obj.SetAnnotations(nil)
	}
}

// OtherLinks returns the links other than link that have an ownership label on the object, with their actions.
func OtherLinks(labels map[string]string, link string) map[string]string {
	out := map[string]string{}
	for k, action := range labels {
		if name, ok := strings.CutPrefix(k, steps.LinkLabelPrefix); ok && name != link {
			out[name] = action
		}
	}
	return out
}

// KeepValues adds the values that are taken over to e.Before as a merge patch, so that undo can restore them. It does
// not replace values that e.Before already has. It returns an error for a value of a Secret, which is never stored, and
// for a part of a list, which cannot be stored. After an error the caller must not take over anything. If this link
// created the object, parts of lists are ignored, because undo deletes the object.
func KeepValues(e *steps.Entry, live *unstructured.Unstructured, conflicts []failure.Conflict) error {
	old := runtime.DeepCopyJSON(e.Before)
	if old == nil {
		old = map[string]any{}
	}
	for _, c := range conflicts {
		path, v := locateField(live.Object, strings.TrimPrefix(c.Field, "."))
		switch {
		case path == nil && e.Created:
			continue
		case path == nil:
			return fmt.Errorf(
				"%s: field %s belongs to %q and is part of a list, whose old value cannot be saved for undo; set it manually to "+
					"the value in the diff, then apply again",
				Describe(live), c.Field, c.Manager,
			)
		case IsSecret(live) && path[0] != "metadata":
			return fmt.Errorf(
				"%s: its old value is secret and belongs to another user; save it first (kubectl get secret -n %s %s -o yaml > "+
					"FILE) and delete the key, then apply again",
				Describe(live), live.GetNamespace(), live.GetName(),
			)
		}
		if _, has, _ := unstructured.NestedFieldNoCopy(old, path...); has {
			continue
		}
		if err := unstructured.SetNestedField(old, runtime.DeepCopyJSONValue(v), path...); err != nil {
			return fmt.Errorf("save the old values of %s: %w", Describe(live), err)
		}
	}
	e.Before = old
	return nil
}

// kept returns the merge patch that restores the values that a version without an inventory took over. If that version
// took over nothing, the patch is empty.
func kept(annotations map[string]string) (map[string]any, error) {
	old := map[string]any{}
	if annotations[BeforeAnnotation] == "" {
		return old, nil
	}
	if err := json.Unmarshal([]byte(annotations[BeforeAnnotation]), &old); err != nil {
		return nil, fmt.Errorf("annotation %s cannot be read: %w", BeforeAnnotation, err)
	}
	return old, nil
}

// locateField finds a field by its path in a conflict, such as "metadata.labels.app.kubernetes.io/name". Keys in the
// path can contain dots. If the field does not exist or is part of a list, locateField returns no path.
func locateField(obj map[string]any, field string) (path []string, value any) {
	if v, ok := obj[field]; ok {
		return []string{field}, v
	}
	for key, v := range obj {
		rest, ok := strings.CutPrefix(field, key+".")
		inner, isMap := v.(map[string]any)
		if !ok || !isMap {
			continue
		}
		if deeper, v := locateField(inner, rest); deeper != nil {
			return append([]string{key}, deeper...), v
		}
	}
	return nil, nil
}

// Wrote reports whether this link has applied an object. If another user copies an object, the copy has the ownership
// label but no field manager of the link.
func Wrote(link string, fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Operation == metav1.ManagedFieldsOperationApply && strings.HasPrefix(f.Manager, steps.FieldManager(link, ""))
	})
}
