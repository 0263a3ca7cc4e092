package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
)

const (
	readyWithin       = 5 * time.Minute
	establishedWithin = time.Minute
	recordedWithin    = 10 * time.Second
)

// Install installs or upgrades a release and waits until it is ready. It is idempotent. Without TakeOver, it does not
// change a release that lacks the request's Labels. If such a release failed or is pending, it returns the error from
// Stuck. If Install itself fails, it sets the status of the release to failed. The next Install then repairs the
// release, or Uninstall removes it. If the process is killed, the next Install resumes the same revision.
func Install(ctx context.Context, c *cluster.Cluster, req Request, say func(string)) error {
	if say == nil {
		say = func(string) {}
	}
	w, err := Prepare(ctx, c, req)
	if err != nil {
		return err
	}
	if err := w.allowed(); err != nil {
		return err
	}
	if w.Kind == Keep {
		return w.again(ctx, c, say)
	}
	for _, left := range w.Left {
		say(left)
	}
	if !w.resumes {
		if err := w.record(ctx, c, w.pending(), "carrick is installing the release"); err != nil {
			return err
		}
	}
	err = w.run(ctx, c, say)
	if err == nil {
		if err = w.record(ctx, c, Deployed, "installed by carrick"); err == nil {
			return w.supersede(ctx, c)
		}
	}
	// Record the failure even if ctx has ended, because a release with a pending status blocks every Helm client.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordedWithin)
	defer cancel()
	if fault := w.record(last, c, Failed, clean.Text(err.Error())); fault != nil {
		err = errors.Join(err, fmt.Errorf("cannot record the release as failed: %w", fault))
	}
	return err
}

// allowed returns an error if the existing release must not be changed.
func (w *Work) allowed() error {
	switch {
	case w.Old == nil, w.Kind == Fresh, w.request.Ours(w.Old), w.request.TakeOver:
		return nil
	case w.Kind == Renew:
		return w.Stuck("kubectl")
	case w.Kind == Upgrade:
		return fmt.Errorf(
			"release %s in namespace %s belongs to another user and has version %s: carrick changes it to %s only with "+
				"--take-over",
			w.Old.Name, w.Old.Namespace, w.Old.Version, w.Version,
		)
	}
	return nil
}

// Stuck returns the error for a pending or failed release of another tool that blocks the work. The error contains a
// command that deletes the release's Secret. kubectl is the start of the command, including the flags for the cluster.
// The error does not suggest helm uninstall or helm rollback. These would run the hooks in the Secret and delete the
// objects in its manifest. Anyone who can write Secrets in the namespace can change the hooks and the manifest.
func (w *Work) Stuck(kubectl string) error {
	o := w.Old
	since, why := "", ""
	if !o.Changed.IsZero() {
		since = " since " + o.Changed.Local().Format(time.DateTime)
	}
	if o.Description != "" {
		why = fmt.Sprintf(" (its description: %q)", clean.Text(o.Description))
	}
	return fmt.Errorf(
		"release %s in namespace %s does not belong to this link and has status %s%s%s: if no one is working on the "+
			"release, delete its record, then apply again: %s -n %s delete secret %s",
		o.Name, o.Namespace, o.Status, since, why, kubectl, o.Namespace, secretName(o.Name, o.Revision),
	)
}

// upgrades reports whether the work upgrades a deployed revision, or resumes an interrupted upgrade.
func (w *Work) upgrades() bool {
	return w.Kind == Upgrade || (w.resumes && w.Old.Status == PendingUpgrade)
}

func (w *Work) pending() string {
	if w.upgrades() {
		return PendingUpgrade
	}
	return PendingInstall
}

func (w *Work) timeout() time.Duration {
	if w.request.Timeout > 0 {
		return w.request.Timeout
	}
	return readyWithin
}

func (w *Work) record(ctx context.Context, c *cluster.Cluster, status, words string) error {
	o, err := encode(w.release(status, words), w.salt)
	if err != nil {
		return err
	}
	if err := w.request.write(ctx, c, o); err != nil {
		return fmt.Errorf("record release %s: %w", w.request.Name, err)
	}
	return nil
}

// again reapplies the objects of an unchanged release.
func (w *Work) again(ctx context.Context, c *cluster.Cluster, say func(string)) error {
	o, err := w.Record()
	if err != nil {
		return err
	}
	for _, o := range slices.Concat([]*unstructured.Unstructured{o}, w.CRDs, w.Objects) {
		if err := w.request.write(ctx, c, o); err != nil {
			return err
		}
	}
	return ready(ctx, c, w.Objects, w.timeout(), say)
}

// run writes all objects of the new revision, runs its hooks, and deletes the objects of the old revision that the new
// one does not contain.
func (w *Work) run(ctx context.Context, c *cluster.Cluster, say func(string)) error {
	before, after := release.HookPreInstall, release.HookPostInstall
	if w.upgrades() {
		before, after = release.HookPreUpgrade, release.HookPostUpgrade
	}
	for _, o := range w.CRDs {
		if err := w.request.write(ctx, c, o); err != nil {
			return err
		}
	}
	if err := ready(ctx, c, w.CRDs, establishedWithin, say); err != nil {
		return err
	}
	hooks := runner{c: c, req: w.request, hooks: w.rendered.hooks, timeout: w.timeout(), say: say}
	if err := hooks.run(ctx, before); err != nil {
		return err
	}
	for _, o := range w.Objects {
		if err := w.request.write(ctx, c, o); err != nil {
			return err
		}
		if o.GroupVersionKind().GroupKind() == crdKind { // wait, because its custom resources can be among the next objects
			if err := ready(ctx, c, []*unstructured.Unstructured{o}, establishedWithin, say); err != nil {
				return err
			}
		}
	}
	for _, o := range w.Gone {
		left, err := w.request.remove(ctx, c, o)
		if err != nil {
			return err
		}
		if left != "" {
			say(describe(o) + " is kept: " + left)
		}
	}
	if err := ready(ctx, c, w.Objects, w.timeout(), say); err != nil {
		return err
	}
	return hooks.run(ctx, after)
}

// remove deletes o if o still belongs to the release. If remove keeps o, left is the reason.
func (r Request) remove(
	ctx context.Context, c *cluster.Cluster, o *unstructured.Unstructured,
) (left string, err error) {
	live, err := c.Fetch(ctx, o)
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, failure.ErrNotServed):
		return "", nil
	case err != nil:
		return "", err
	case !owned(live, r.Name, r.Namespace):
		return "it is not marked as part of the release", nil
	case live.GetAnnotations()[resourcePolicy] == "keep":
		return "the chart sets helm.sh/resource-policy: keep", nil
	}
	if r.Remove != nil {
		return r.Remove(ctx, live)
	}
	if live.GroupVersionKind().GroupKind() == crdKind {
		if left, err := instances(ctx, c, live.GetName()); left != "" || err != nil {
			return left, err
		}
	}
	return "", erase(ctx, c, live)
}
