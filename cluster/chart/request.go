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

// Request says which release is wanted.
type Request struct {
	Name, Namespace string // of the release; the namespace must be there
	Source          Source
	Chart, Version  string         // Version "" is what a folder or a file has
	Values          map[string]any // may hold secrets: never printed

	Labels, Annotations map[string]string // on everything that is made, the release's own Secret included
	Manager             string            // field manager; required
	TakeOver            bool              // change a release of somebody else's, and fields that another manager owns
	Timeout             time.Duration     // until all is ready, and of each hook; 0: 5 min

	// Believes reports whether a stored release may be kept, or resumed, as its Secret has it; nil: any may.
	// Whoever can write Secrets in its namespace can write that. What is not believed is rendered from the chart.
	Believes func(context.Context, *Release) (bool, error)
	// Write puts one object into the cluster as it is given; nil: server-side
	// apply with Labels, Annotations and Manager.
	Write func(context.Context, *unstructured.Unstructured) error
	// Remove takes one object out again, and may say why it stays; nil: it is
	// deleted, but for a definition whose objects are still there.
	Remove func(context.Context, *unstructured.Unstructured) (left string, err error)
}

// Kind says what it takes to have a release as it is wanted.
type Kind string

// The kinds of work.
const (
	Fresh   Kind = "install" // there is none
	Upgrade Kind = "upgrade" // it stands in another version, or with other values
	Renew   Kind = "renew"   // it failed, or is stuck half-way
	Keep    Kind = "keep"    // it stands as it should; its objects are made anew where they are not
)

// Work is what it takes to have a release as it is wanted. Objects are as they
// would be written, without Labels and Annotations.
type Work struct {
	Kind    Kind
	Old     *Release                     // nil: there is none
	Version string                       // of the chart
	CRDs    []*unstructured.Unstructured // of the crds folder, to be made first
	Objects []*unstructured.Unstructured // in their order
	Hooks   []*unstructured.Unstructured // what runs before or after
	Gone    []*unstructured.Unstructured // those of the old revision that the new one has no more
	Left    []string                     // what is there already and is left as it is
	Unknown []string                     // given values that the chart does not know
	From    string                       // where the chart was loaded from, as Chart.From; "": it was not
	Doubted bool                         // what is stored would do, and is not believed

	request  Request
	rendered *Rendered
	secret   *unstructured.Unstructured // of the old release
	resumes  bool                       // what the request itself began and did not finish: the old revision goes on
	salt     string                     // of the revision that is written
}

// Ours tells whether a release carries all labels of the request.
func (r Request) Ours(old *Release) bool {
	for k, v := range r.Labels {
		if old.Labels[k] != v {
			return false
		}
	}
	return len(r.Labels) > 0
}

// wrote tells whether the request's manager has written into an object.
func (r Request) wrote(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f managed) bool { return f.Manager == r.Manager })
}

// Prepare says what it takes, and touches nothing. Nothing is fetched where
// the release stands as it should.
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
				"release %s in namespace %s is of chart %s, not %s: choose another name", req.Name, req.Namespace, old.Chart,
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

// Resumes tells whether the work goes on with a revision that the request itself
// began and did not finish.
func (w *Work) Resumes() bool { return w.resumes }

func equal(a, b map[string]any) bool {
	return (len(a) == 0 && len(b) == 0) || reflect.DeepEqual(a, b)
}

// keep takes the objects from the release as it stands: what a template makes
// at random is not made a second time.
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

// load fetches the chart once for a plan and what comes of it.
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
	if w.resumes { // what a template makes at random is not made a second time
		w.salt = w.Old.inner.salt
		r.manifest = w.Old.inner.manifest
		if r.Objects, err = objects(r.manifest); err != nil {
			return fmt.Errorf("what release %s consists of can't be read: %w", w.Old.Name, err)
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

// parts names what the old revision has, and notes what the new one has not.
func (w *Work) parts(
	ctx context.Context, c *cluster.Cluster, crds []*unstructured.Unstructured,
) (map[string]bool, error) {
	before := map[string]bool{}
	if w.Kind == Fresh {
		return before, nil
	}
	objs, err := objects(w.Old.inner.manifest)
	if err != nil {
		return nil, fmt.Errorf("what release %s consists of can't be read: %w", w.Old.Name, err)
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

// served leaves out objects of kinds that are gone, with all their objects.
func served(ctx context.Context, c *cluster.Cluster, objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objs, func(o *unstructured.Unstructured) bool {
		_, _, err := c.Resource(ctx, o.GroupVersionKind())
		return errors.Is(err, failure.ErrNotServed)
	})
}

// look refuses objects that are there already and are no part of the release.
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

// free refuses an object that is there already and belongs to nobody, or to
// another release.
func (w *Work) free(ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured) error {
	live, err := c.Fetch(ctx, o)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, failure.ErrNotServed), apierrors.IsForbidden(err):
		return nil // a right that is missing is told with all others
	case err != nil:
		return err
	case owned(live, w.request.Name, w.request.Namespace):
		return nil
	}
	whose := "no release of Helm"
	if other := live.GetAnnotations()[releaseName]; other != "" {
		whose = "release " + clean.Text(live.GetAnnotations()[releaseNamespace]+"/"+other)
	}
	return fmt.Errorf(
		"%s is there already and belongs to %s: release %s can't have it; delete it, or leave that part of the chart out "+
			"by its values",
		describe(o), whose, w.request.Name,
	)
}

// definitions parts those of the crds folder into what is to be made and what
// is there already. As Helm does, one that somebody else made is left alone.
func (w *Work) definitions(ctx context.Context, c *cluster.Cluster, crds []*unstructured.Unstructured) error {
	for _, o := range crds {
		live, err := c.Fetch(ctx, o)
		switch {
		case err == nil && !w.request.wrote(live):
			w.Left = append(w.Left, describe(o)+" is there already; it is left as it is, in whatever version")
		case err == nil, apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			w.CRDs = append(w.CRDs, o)
		default:
			return err
		}
	}
	return nil
}

// revision is the number of the revision that would be written.
func (w *Work) revision() int {
	switch {
	case w.Old == nil:
		return 1
	case w.resumes:
		return w.Old.Revision
	}
	return w.Old.Revision + 1
}
