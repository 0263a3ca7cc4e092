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

// The functions in this file are not tracked. Every call sends its own request to the API server and uses no cached
// object. Errors name the operation that failed, and wrap the API's error.

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	Manager string // field manager, at most 128 characters; required
	DryRun  bool   // the API server does everything except persist the result
	Force   bool   // take over fields that another manager owns
}

// PatchOptions are the options of Patch.
type PatchOptions struct {
	Manager         string // field manager; required
	DryRun          bool
	UID             types.UID // precondition: the object has this UID; "": any
	ResourceVersion string    // precondition: the object has this version; "": any
}

// Fetch reads the object that obj identifies by apiVersion, kind, namespace and name. The result includes
// managedFields. If the object does not exist, the error satisfies apierrors.IsNotFound. If the API server does not
// serve the kind, the error is failure.ErrNotServed.
func (c *Cluster) Fetch(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	doing := "read " + describeObject(obj)
	at, err := c.locate(ctx, obj)
	if err != nil {
		return nil, failed(ctx, doing, err)
	}
	return c.send(ctx, doing, request{verb: http.MethodGet, at: at})
}

// Apply applies obj by server-side apply and returns the result. The API server rejects unknown and duplicate fields.
// Apply is idempotent. Fields that another manager owns cause a conflict (see failure.Conflicts), unless Force is set.
// The values in a Secret must be strings.
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

// Patch sends a JSON merge patch. If the object does not have the UID or version in o, Patch returns an error that
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
			ctx, doing,
			apierrors.NewConflict(
				gvr.GroupResource(), name, errors.New("the object was replaced by another one of the same name"),
			),
		)
	}
	return out, err
}

// Create creates obj. If the object already exists, the error satisfies apierrors.IsAlreadyExists. If obj has
// metadata.generateName and no name, the result has the generated name. The values in a Secret must be strings.
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

// Delete deletes an object if it has the given UID. uid is required. The API server deletes the object's dependents in
// the background. Delete returns as soon as the API server has accepted the request. Use Gone to wait until the object
// no longer exists. If the object does not exist, Delete returns nil. If the object has another UID, Delete keeps it,
// and the error satisfies apierrors.IsConflict.
func (c *Cluster) Delete(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, uid types.UID,
) error {
	return c.DeleteVersion(ctx, gvr, namespace, name, uid, "")
}

// DeleteVersion is like Delete, but the object must also have the given resource version. If it has another version,
// the error satisfies apierrors.IsConflict. version "" accepts any version.
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

// withPreconditions adds the UID and the resource version to the metadata of the patch. The API server then rejects the
// patch if the object differs in either of them.
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

// changesUID reports whether the API server rejected a patch because the UID in it differs from the object's.
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
