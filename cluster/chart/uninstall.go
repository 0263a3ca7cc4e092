package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
)

// Uninstall removes all revisions of a release. It returns the objects that it keeps, with the reasons. It uses only
// the fields Name, Namespace, Labels, Annotations, Manager and Remove of req. Like Helm, it keeps
// CustomResourceDefinitions from the crds directory. If Remove is nil, it also keeps objects that hooks created.
// Otherwise it calls Remove for each of these objects. It runs no hooks (see DeleteHooks). If the release does not
// exist, the error is ErrNoRelease.
func Uninstall(ctx context.Context, c *cluster.Cluster, req Request) (left []string, err error) {
	quiet()
	r, _, err := current(ctx, c, req.Namespace, req.Name)
	if err != nil {
		return nil, err
	}
	objs, err := r.Parts(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		why, err := req.remove(ctx, c, o)
		if err != nil {
			return left, err
		}
		if why != "" {
			left = append(left, describe(o)+": "+why)
		}
	}
	if req.Remove != nil {
		if err := r.sweep(ctx, c, req); err != nil {
			return left, err
		}
	}
	return left, forget(ctx, c, req)
}

// DeleteHooks returns the hooks that helm uninstall would run, each as "pre-delete hook Job NAME". Uninstall does not
// run them. They come from a Secret in the release's namespace. Anyone who can write that Secret could run programs
// with the permissions of the user who uninstalls.
func (r *Release) DeleteHooks() []string {
	var out []string
	for _, h := range r.inner.hooks {
		for _, event := range []release.HookEvent{release.HookPreDelete, release.HookPostDelete} {
			if slices.Contains(h.Events, event) {
				out = append(out, fmt.Sprintf("%s hook %s %s", event, clean.Text(h.Kind), clean.Text(h.Name)))
			}
		}
	}
	return out
}

// sweep calls Remove for each object that hooks of the release created.
func (r *Release) sweep(ctx context.Context, c *cluster.Cluster, req Request) error {
	objs, err := r.Traces(ctx, c)
	if err != nil {
		return err
	}
	for _, o := range objs {
		live, err := c.Fetch(ctx, o)
		if apierrors.IsNotFound(err) || errors.Is(err, failure.ErrNotServed) {
			continue
		}
		if err == nil {
			_, err = req.Remove(ctx, live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Parts returns the objects of a release in uninstall order, without hooks. It omits kinds that the API server no
// longer serves.
func (r *Release) Parts(ctx context.Context, c *cluster.Cluster) ([]*unstructured.Unstructured, error) {
	_, manifests, err := releaseutil.SortManifests(
		releaseutil.SplitManifests(r.inner.manifest), nil, releaseutil.UninstallOrder,
	)
	if err != nil {
		return nil, r.unreadable("its objects", err)
	}
	var objs []*unstructured.Unstructured
	for _, m := range manifests {
		made, err := objects(m.Content)
		if err != nil {
			return nil, r.unreadable("its objects", err)
		}
		objs = append(objs, made...)
	}
	// Delete custom resources first, while their controller still runs.
	slices.SortStableFunc(objs, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return placed(ctx, c, served(ctx, c, objs), nil, r.Name, r.Namespace)
}

// unreadable returns the error for a part of the release that cannot be parsed. Helm cannot have written such a part.
func (r *Release) unreadable(what string, err error) error {
	return &UnreadableError{
		r.Namespace, secretName(r.Name, r.Revision), fmt.Errorf("%s: %s", what, clean.Text(err.Error())),
	}
}

// rank returns the sort key of an object: 0 for custom resources, which come first, and 1 for the kinds that Helm
// sorts.
func rank(o *unstructured.Unstructured) int {
	if slices.Contains(releaseutil.UninstallOrder, o.GetKind()) {
		return 1
	}
	return 0
}

// Traces returns the objects of a release's hooks. They can still exist after the installation. Helm does not count
// them as part of the release.
func (r *Release) Traces(ctx context.Context, c *cluster.Cluster) ([]*unstructured.Unstructured, error) {
	var objs []*unstructured.Unstructured
	for _, h := range r.inner.hooks {
		made, err := objects(h.Manifest)
		if err != nil {
			return nil, r.unreadable("its hooks", err)
		}
		objs = append(objs, made...)
	}
	return placed(ctx, c, served(ctx, c, objs), nil, r.Name, r.Namespace)
}

// forget deletes the Secrets of all revisions, the newest last, so that an interrupted uninstall can be repeated.
func forget(ctx context.Context, c *cluster.Cluster, req Request) error {
	list, err := Revisions(ctx, c, req.Namespace, req.Name)
	if err != nil {
		return err
	}
	var faults []error
	for _, m := range sortedRevisions(list) {
		o := secretOf(m.Namespace, m.Name)
		o.SetUID(m.UID)
		if err := erase(ctx, c, o); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
