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

// Uninstall removes the release that req names, with its whole history, and
// returns what is left and why. Of req only Name, Namespace, Labels,
// Annotations, Manager and Remove count. Definitions of the
// crds folder are left, as Helm does; so is what hooks have left, unless there
// is a Remove, which is asked for each of it. It runs no hooks: see DeleteHooks.
// A release that does not exist is ErrNoRelease.
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

// DeleteHooks returns the hooks that Helm would run when it uninstalls the release, each as "pre-delete hook Job NAME".
// Uninstall does not run them. They come from a Secret of the release's namespace, and whoever can write that could
// have anything done with the rights of the one who uninstalls.
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

// sweep offers what the hooks have left to Remove.
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

// Parts are the objects of a release in the order of taking them away, without
// hooks. Those of kinds that are not served any more are gone.
func (r *Release) Parts(ctx context.Context, c *cluster.Cluster) ([]*unstructured.Unstructured, error) {
	_, manifests, err := releaseutil.SortManifests(
		releaseutil.SplitManifests(r.inner.manifest), nil, releaseutil.UninstallOrder,
	)
	if err != nil {
		return nil, r.unreadable("what it consists of", err)
	}
	var objs []*unstructured.Unstructured
	for _, m := range manifests {
		made, err := objects(m.Content)
		if err != nil {
			return nil, r.unreadable("what it consists of", err)
		}
		objs = append(objs, made...)
	}
	// Kinds that Helm does not know come first, while what serves them still runs.
	slices.SortStableFunc(objs, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return placed(ctx, c, served(ctx, c, objs), nil, r.Name, r.Namespace)
}

// unreadable is the error of a part of the release that is not what Helm writes.
func (r *Release) unreadable(what string, err error) error {
	return &UnreadableError{
		r.Namespace, secretName(r.Name, r.Revision), fmt.Errorf("%s: %s", what, clean.Text(err.Error())),
	}
}

// rank puts custom objects before everything else.
func rank(o *unstructured.Unstructured) int {
	if slices.Contains(releaseutil.UninstallOrder, o.GetKind()) {
		return 1
	}
	return 0
}

// Traces are the objects of a release's hooks: they may be left from its
// installation, and Helm does not count them among its parts.
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

// forget deletes the Secrets of all revisions, the newest last: what was cut
// short is found again.
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
