package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Nothing in this file is tracked: every call is a request of its own, answered by the API server and not by what a
// watch keeps. Errors say what was being done, and wrap the API's own.

// ApplyOptions say how to apply.
type ApplyOptions struct {
	Manager string // field manager, at most 128 characters; required
	DryRun  bool   // the API server does everything but keep the result
	Force   bool   // takes fields over that another manager owns
}

// PatchOptions say how to patch.
type PatchOptions struct {
	Manager         string // field manager; required
	DryRun          bool
	UID             types.UID // the object must be this one
	ResourceVersion string    // and still be in this version
}

// Fetch returns the object that obj names by apiVersion, kind, namespace and name, whole and with its managedFields. An
// object that is not there is apierrors.IsNotFound, a kind that is not there failure.ErrNotServed.
func (c *Cluster) Fetch(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	doing := "read " + describeObject(obj)
	at, err := c.locate(ctx, obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	return c.send(ctx, doing, request{verb: http.MethodGet, at: at})
}

// Apply applies obj by server-side apply and returns what became of it. The API server refuses unknown and duplicate
// fields. Applying the same twice changes nothing. Fields that another manager owns are a conflict (see Conflicts),
// unless it is told to force. Values of a Secret must be text.
func (c *Cluster) Apply(
	ctx context.Context, obj *unstructured.Unstructured, o ApplyOptions,
) (*unstructured.Unstructured, error) {
	doing := "apply " + describeObject(obj)
	at, err := c.locate(ctx, obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	if at.name == "" {
		return nil, fmt.Errorf("%s: it has no name", doing)
	}
	body, err := encode(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	r := request{
		verb: http.MethodPatch, at: at, body: body, contentType: types.ApplyPatchType, manager: o.Manager, dryRun: o.DryRun,
	}
	if o.Force {
		r.params = map[string]string{"force": "true"}
	}
	return c.send(ctx, doing, r)
}

// Patch sends a JSON merge patch. A UID or version that is not the object's any more is apierrors.IsConflict.
func (c *Cluster) Patch(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, merge []byte, o PatchOptions,
) (*unstructured.Unstructured, error) {
	at := location{gvr: gvr, namespace: namespace, name: name}
	doing := "patch " + at.String()
	body, err := withPreconditions(merge, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	out, err := c.send(ctx, doing, request{
		verb: http.MethodPatch, at: at, body: body, contentType: types.MergePatchType, manager: o.Manager, dryRun: o.DryRun,
	})
	if o.UID != "" && changesUID(err) {
		return nil, failed(
			ctx, doing, apierrors.NewConflict(gvr.GroupResource(), name, errors.New("it is another object of the same name")),
		)
	}
	return out, err
}

// Create creates obj, which must not be there yet: apierrors.IsAlreadyExists. With metadata.generateName and no name,
// the name is in the answer. Values of a Secret must be text.
func (c *Cluster) Create(
	ctx context.Context, obj *unstructured.Unstructured, manager string,
) (*unstructured.Unstructured, error) {
	doing := "create " + describeObject(obj)
	at, err := c.locate(ctx, obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	at.name = ""
	body, err := encode(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return c.send(ctx, doing, request{verb: http.MethodPost, at: at, body: body, contentType: jsonType, manager: manager})
}

// Delete deletes the object with that UID, which is required; what it owns is deleted after it. It returns as soon as
// the API server has agreed: Gone waits. An object that is gone already is nil, another object of the same name is
// apierrors.IsConflict and stays.
func (c *Cluster) Delete(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID,
) error {
	return c.DeleteVersion(ctx, gvr, namespace, name, uid, "")
}

// DeleteVersion is Delete of an object that is still in that version, else it is apierrors.IsConflict; "": in any.
func (c *Cluster) DeleteVersion(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID, version string,
) error {
	at := location{gvr: gvr, namespace: namespace, name: name}
	doing := "delete " + at.String()
	if uid == "" || name == "" {
		return fmt.Errorf("%s: nothing is deleted without its name and UID", doing)
	}
	background, still := metav1.DeletePropagationBackground, &metav1.Preconditions{UID: &uid}
	if version != "" {
		still.ResourceVersion = &version
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: still, PropagationPolicy: &background,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err = c.raw(ctx, doing, request{verb: http.MethodDelete, at: at, body: body, contentType: jsonType})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// withPreconditions puts the preconditions into the patch's metadata, where the API server looks for them.
func withPreconditions(merge []byte, o PatchOptions) ([]byte, error) {
	var patch map[string]any
	if err := json.Unmarshal(merge, &patch); err != nil || patch == nil {
		return nil, errors.New("the patch is not a JSON object")
	}
	if o.UID == "" && o.ResourceVersion == "" {
		return merge, nil
	}
	meta, ok := patch["metadata"].(map[string]any)
	if !ok && patch["metadata"] != nil {
		return nil, errors.New("the patch's metadata is not a JSON object")
	}
	if meta == nil {
		meta = map[string]any{}
	}
	if o.UID != "" {
		meta["uid"] = string(o.UID)
	}
	if o.ResourceVersion != "" {
		meta["resourceVersion"] = o.ResourceVersion
	}
	patch["metadata"] = meta
	return json.Marshal(patch)
}

// changesUID tells whether the API server refused because the patch would have changed the UID.
func changesUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}
