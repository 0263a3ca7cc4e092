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

// Nothing in this file is tracked. Every call sends its own request to the API server, and none is answered from a
// watch's store. Errors name the operation that failed, and wrap the API's error.

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	Manager string // field manager, at most 128 characters; required
	DryRun  bool   // the API server does everything except persist the result
	Force   bool   // takes over fields that another manager owns
}

// PatchOptions are the options of Patch.
type PatchOptions struct {
	Manager         string // field manager; required
	DryRun          bool
	UID             types.UID // the object must have this UID
	ResourceVersion string    // and this version
}

// Fetch returns the complete object, including its managedFields, that obj names by apiVersion, kind, namespace and
// name. An object that does not exist returns an error that satisfies apierrors.IsNotFound, and a kind that does not
// exist failure.ErrNotServed.
func (c *Cluster) Fetch(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	doing := "read " + describeObject(obj)
	at, err := c.locate(ctx, obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	return c.send(ctx, doing, request{verb: http.MethodGet, at: at})
}

// Apply applies obj by server-side apply and returns the result. The API server refuses unknown and duplicate fields.
// Apply is idempotent. Fields that another manager owns cause a conflict (see failure.Conflicts), unless Force is set.
// Values of a Secret must be strings.
func (c *Cluster) Apply(
	ctx context.Context, obj *unstructured.Unstructured, o ApplyOptions,
) (*unstructured.Unstructured, error) {
	doing := "apply " + describeObject(obj)
	at, err := c.locate(ctx, obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	if at.name == "" {
		return nil, fmt.Errorf("%s: has no name", doing)
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

// Patch sends a JSON merge patch. If the object no longer has the given UID or version, Patch returns an error that
// satisfies apierrors.IsConflict.
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

// Create creates obj. If the object already exists, Create returns an error that satisfies apierrors.IsAlreadyExists.
// With metadata.generateName and no name, the result has the generated name. Values of a Secret must be strings.
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

// Delete deletes the object with that UID, which is required. Its dependents are deleted in the background. Delete
// returns as soon as the API server has accepted the request; Gone waits until the object is gone. If the object does
// not exist, Delete returns nil. It keeps an object of the same name with another UID, and returns an error that
// satisfies apierrors.IsConflict.
func (c *Cluster) Delete(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID,
) error {
	return c.DeleteVersion(ctx, gvr, namespace, name, uid, "")
}

// DeleteVersion is like Delete, but also returns an error that satisfies apierrors.IsConflict if the object has another
// resource version; "" accepts any version.
func (c *Cluster) DeleteVersion(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID, version string,
) error {
	at := location{gvr: gvr, namespace: namespace, name: name}
	doing := "delete " + at.String()
	if uid == "" || name == "" {
		return fmt.Errorf("%s: an object is deleted only by name and UID", doing)
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

// withPreconditions adds the preconditions to the patch's metadata, where the API server checks them.
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

// changesUID reports whether the API server refused the patch because it would have changed the UID.
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
