package chart

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

// Request describes a release to install, and the options of the installation.
type Request struct {
	Name, Namespace string // name and namespace of the release; the namespace must exist
	Source          Source
	Chart, Version  string         // Version "": the version in the chart directory or packed file
	Values          map[string]any // can contain secrets, so they are never printed

	Labels, Annotations map[string]string // set on every object, including the release's own Secret
	Manager             string            // field manager; required
	TakeOver            bool              // allows changes to another owner's release and another manager's fields
	Timeout             time.Duration     // limit for the wait until everything is ready, and for each hook; 0: 5 min

	// Believes reports whether Install can trust the Secret of a stored release when it keeps or resumes the release.
	// Anyone who can write Secrets in the namespace can change that Secret. If Believes returns false, Install renders
	// the release from the chart again. nil trusts every Secret.
	Believes func(context.Context, *Release) (bool, error)
	// Write writes one object to the cluster unchanged. nil means server-side apply with Labels, Annotations and Manager.
	Write func(context.Context, *unstructured.Unstructured) error
	// Remove deletes one object, or keeps the object and returns the reason in left. nil deletes every object, except a
	// CustomResourceDefinition that still has custom resources.
	Remove func(context.Context, *unstructured.Unstructured) (left string, err error)
}

// Kind is the kind of work that Install does for a request.
type Kind string

// The kinds of work.
const (
	Fresh   Kind = "install" // the release does not exist
	Upgrade Kind = "upgrade" // the release has another version or other values
	Renew   Kind = "renew"   // the release failed, or is stuck in a pending status
	Keep    Kind = "keep"    // the release is as requested; missing or changed objects are recreated
)

// Work is the plan for a request. Its objects do not have the request's Labels and Annotations yet.
type Work struct {
	Kind    Kind
	Old     *Release                     // the existing release; nil: none
	Version string                       // version of the chart
	CRDs    []*unstructured.Unstructured // from the chart's crds directory, created first
	Objects []*unstructured.Unstructured // in install order
	Hooks   []*unstructured.Unstructured // objects of hooks, which run before or after Objects are written
	Gone    []*unstructured.Unstructured // objects of the old revision to delete, because the new one does not have them
	Left    []string                     // descriptions of existing objects that stay unchanged
	Unknown []string                     // values that were set and that the chart does not use
	From    string                       // source of the chart, see Chart.From; "": not loaded
	Doubted bool                         // the stored release is as requested, but Believes returned false

	request  Request
	rendered *Rendered
	secret   *unstructured.Unstructured // Secret of the old release
	resumes  bool                       // the work resumes the old revision, which the same request started
	salt     string                     // salt of the revision to write
}

// Ours reports whether a release has all labels of the request.
func (r Request) Ours(old *Release) bool {
	for k, v := range r.Labels {
		if old.Labels[k] != v {
			return false
		}
	}
	return len(r.Labels) > 0
}

// wrote reports whether the request's manager owns fields of an object.
func (r Request) wrote(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f managed) bool { return f.Manager == r.Manager })
}

// Prepare returns the work that a request requires. It changes nothing. If the release is already as requested, Prepare
// does not fetch the chart.
func Prepare(ctx context.Context, c *cluster.Cluster, req Request) (*Work, error) {
	quiet()
	if err := checkName(req.Namespace, req.Name); err != nil {
		return nil, err
	}
	if req.Version == "" {
		ch, err := load(ctx, req)
		if err != nil {
			return nil, err
		}
		req.Version = ch.Version()
	}
	old, secret, err := current(ctx, c, req.Namespace, req.Name)
	if err != nil && !errors.Is(err, ErrNoRelease) {
		return nil, err
	}
	w := &Work{Old: old, Kind: Fresh, Version: req.Version, request: req, secret: secret, salt: rand.Text()}
	if old != nil && old.Status != Uninstalled {
		if old.Chart != req.Chart {
			return nil, fmt.Errorf(
				"release %s in namespace %s has chart %s, not %s: choose another name", req.Name, req.Namespace, old.Chart,
				req.Chart,
			)
		}
		w.Kind = Renew
		if old.Status == Deployed {
			w.Kind = Upgrade
		}
		want, err := plain(req.Values)
		if err != nil {
			return nil, err
		}
		begun := (old.Status == PendingInstall || old.Status == PendingUpgrade) && req.wrote(secret) && req.Ours(old)
		if (w.Kind == Upgrade || begun) && sameVersion(old.Version, req.Version) && equal(old.inner.given, want) {
			believed := true
			if req.Believes != nil {
				if believed, err = req.Believes(ctx, old); err != nil {
					return nil, err
				}
			}
			if believed && !begun {
				return w, w.keep(ctx, c)
			}
			w.resumes, w.Doubted = believed, !believed
		}
	}
	return w, w.render(ctx, c)
}

// Resumes reports whether the work resumes an unfinished revision that the same request started.
func (w *Work) Resumes() bool { return w.resumes }

func equal(a, b map[string]any) bool {
	return (len(a) == 0 && len(b) == 0) || reflect.DeepEqual(a, b)
}

// keep plans to write the objects of the existing release. It does not render the chart again, because that would
// change random values in templates.
func (w *Work) keep(ctx context.Context, c *cluster.Cluster) error {
	w.Kind = Keep
	objs, err := objects(w.Old.inner.manifest)
	if err != nil {
		return err
	}
	crds, err := w.Old.Definitions()
	if err != nil {
		return err
	}
	if w.Objects, err = placed(ctx, c, objs, crds, w.Old.Name, w.Old.Namespace); err != nil {
		return err
	}
	return w.definitions(ctx, c, crds)
}

// load fetches the chart and caches it for ten minutes, so that the plan and the installation share one download.
func load(ctx context.Context, req Request) (*Chart, error) {
	key := fmt.Sprintf("chart/%s %s %s", req.Source, req.Chart, req.Version)
	return tracked.Look(ctx, key, 10*time.Minute, func(ctx context.Context) (*Chart, error) {
		return Load(ctx, req.Source, req.Chart, req.Version)
	})
}

func (w *Work) render(ctx context.Context, c *cluster.Cluster) error {
	req := w.request
	ch, err := load(ctx, req)
	if err != nil {
		return err
	}
	w.From = ch.From()
	r, err := render(ctx, c, c, ch, options(req.Name, req.Namespace, w.revision()), req.Values)
	if err != nil {
		return err
	}
	if w.resumes { // use the stored objects, so that random values in templates do not change
		w.salt = w.Old.inner.salt
		r.manifest = w.Old.inner.manifest
		if r.Objects, err = objects(r.manifest); err != nil {
			return fmt.Errorf("cannot parse the objects of release %s: %w", w.Old.Name, err)
		}
	}
	w.rendered, w.Unknown = r, r.Unknown
	if w.Objects, err = placed(ctx, c, r.Objects, r.CRDs, req.Name, req.Namespace); err != nil {
		return err
	}
	for _, h := range r.hooks {
		made, err := objects(h.Manifest)
		if err != nil {
			return fmt.Errorf("chart %s: hook %s: %w", ch.Name(), clean.Text(h.Path), err)
		}
		if made, err = placed(ctx, c, made, r.CRDs, req.Name, req.Namespace); err != nil {
			return err
		}
		w.Hooks = append(w.Hooks, made...)
	}
	before, err := w.parts(ctx, c, r.CRDs)
	if err != nil {
		return err
	}
	if err := w.look(ctx, c, before); err != nil {
		return err
	}
	return w.definitions(ctx, c, r.CRDs)
}

// parts returns the descriptions of the old revision's objects as a set. It sets Gone to the objects that the new
// revision does not have.
func (w *Work) parts(
	ctx context.Context, c *cluster.Cluster, crds []*unstructured.Unstructured,
) (map[string]bool, error) {
	before := map[string]bool{}
	if w.Kind == Fresh {
		return before, nil
	}
	objs, err := objects(w.Old.inner.manifest)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the objects of release %s: %w", w.Old.Name, err)
	}
	was, err := placed(ctx, c, served(ctx, c, objs), crds, w.Old.Name, w.Old.Namespace)
	if err != nil {
		return nil, err
	}
	for _, o := range was {
		before[describe(o)] = true
		if !slices.ContainsFunc(w.Objects, func(n *unstructured.Unstructured) bool { return same(n, o) }) &&
			o.GetAnnotations()[resourcePolicy] != "keep" {
			w.Gone = append(w.Gone, o)
		}
	}
	return before, nil
}

// served removes objects whose kinds the API server no longer serves, because such objects no longer exist.
func served(ctx context.Context, c *cluster.Cluster, objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objs, func(o *unstructured.Unstructured) bool {
		_, _, err := c.Resource(ctx, o.GroupVersionKind())
		return errors.Is(err, failure.ErrNotServed)
	})
}

// look returns an error if a new object of the release already exists and belongs to no release or to another one.
func (w *Work) look(ctx context.Context, c *cluster.Cluster, before map[string]bool) error {
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for _, o := range w.Objects {
		if !before[describe(o)] {
			all.Go(func() error { return w.free(each, c, o) })
		}
	}
	return all.Wait()
}

// free returns an error if an object already exists and does not belong to this release.
func (w *Work) free(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured) error {
	live, err := c.Fetch(ctx, o)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, failure.ErrNotServed), apierrors.IsForbidden(err):
		return nil // missing permissions are reported together
	case err != nil:
		return err
	case owned(live, w.request.Name, w.request.Namespace):
		return nil
	}
	whose := "no Helm release"
	if other := live.GetAnnotations()[releaseName]; other != "" {
		whose = "release " + clean.Text(live.GetAnnotations()[releaseNamespace]+"/"+other)
	}
	return fmt.Errorf(
		"%s already exists and belongs to %s, not to release %s; delete it, or exclude it with the chart's values",
		describe(o), whose, w.request.Name,
	)
}

// definitions adds the CustomResourceDefinitions from the chart's crds directory to CRDs. If a CustomResourceDefinition
// already exists and another manager wrote it, definitions adds its description to Left instead. Helm does not change
// existing CustomResourceDefinitions either.
func (w *Work) definitions(ctx context.Context, c *cluster.Cluster, crds []*unstructured.Unstructured) error {
	for _, o := range crds {
		live, err := c.Fetch(ctx, o)
		switch {
		case err == nil && !w.request.wrote(live):
			w.Left = append(w.Left, describe(o)+" already exists and is kept unchanged, in its current version")
		case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			w.CRDs = append(w.CRDs, o)
		default:
			return err
		}
	}
	return nil
}

// revision returns the number of the revision to write.
func (w *Work) revision() int {
	switch {
	case w.Old == nil:
		return 1
	case w.resumes:
		return w.Old.Revision
	}
	return w.Old.Revision + 1
}
