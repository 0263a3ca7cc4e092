package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/chart"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/inventory"
)

func (d *drift) compare(ctx context.Context, env steps.Env, a *steps.Action) error {
	switch doer := a.Doer.(type) {
	case filed:
		return d.compareFile(ctx, env, a, doer)
	case charted:
		return d.compareChart(ctx, env, a, doer.theChart())
	case Asset:
		objs, err := doer.Asset().Objects(ctx, env)
		if err != nil {
			return err
		}
		return d.compareObjects(ctx, env, a, objs)
	case Call:
		return d.compareCall(ctx, env, a, doer)
	}
	return nil
}

// compareFile compares a file only if this link has written it.
func (d *drift) compareFile(ctx context.Context, env steps.Env, a *steps.Action, f filed) error {
	n, err := f.look(ctx, env)
	if err != nil || !n.recorded {
		return err
	}
	d.compared++
	var flags []string
	if n.changed() {
		flags = []string{"--take-over"}
	}
	switch mode := f.mode(); {
	case !n.there:
		d.gone(a.Name, n.path+" is gone")
	case !n.fits:
		d.differs(a.Name, n.path+" was changed", flags...)
	case n.mode != mode:
		d.differs(a.Name, fmt.Sprintf("%s has mode %#o instead of %#o", n.path, n.mode, mode))
	}
	if !n.there || env.Host.IsFolder() {
		return nil
	}
	info, err := env.Host.Stat(ctx, n.path)
	if err == nil && info.UID > 0 {
		d.first = append(d.first, "chown root: "+steps.Quoted(n.path))
		d.differs("", fmt.Sprintf("%s is owned by user %d, not by root", n.path, info.UID))
	}
	return err
}

// compareCall compares the result of a Call only if the link's notes record that the Call created something.
func (d *drift) compareCall(ctx context.Context, env steps.Env, a *steps.Action, call Call) error {
	if env.Cluster == nil {
		return nil
	}
	inv, err := d.inventory(ctx, env)
	if err != nil || inv.Notes[a.Name] == "" && len(inv.Actions[a.Name]) == 0 {
		return err
	}
	c, err := call.Preview(ctx, env)
	if err != nil {
		return err
	}
	for _, it := range c.Items {
		switch {
		case it.Refused:
			d.unread = append(d.unread, it.What+": "+it.Note)
		case it.Verb == steps.Create:
			d.gone(a.Name, it.What+" is gone")
		case it.Verb == steps.Update && it.Diff != "":
			d.differs(a.Name, it.What)
		case it.Verb != steps.Run:
			d.compared++
		}
	}
	return nil
}

// compareChart compares the objects of an installed release with the release's record. Any user who can write the
// release's Secret can replace the record, so the record must match the inventory.
func (d *drift) compareChart(ctx context.Context, env steps.Env, a *steps.Action, c Chart) error {
	inv, err := d.inventory(ctx, env)
	if err != nil {
		return err
	}
	name, namespace, err := c.at(ctx, env)
	if err != nil {
		return err
	}
	e := inv.Find(a.Name, steps.EntryOf(inventory.ReleaseKind, namespace, name))
	if e == nil {
		return nil
	}
	d.compared++
	r, err := chart.Find(ctx, env.Cluster, namespace, name)
	switch {
	case errors.Is(err, chart.ErrNoRelease):
		d.gone(a.Name, releaseAt(namespace, name)+" is gone")
		return nil
	case apierrors.IsForbidden(err):
		d.unread = append(d.unread, releaseAt(namespace, name)+" cannot be read")
		return nil
	case err != nil:
		return err
	case e.Content != "" && e.Content != r.Content():
		d.differs(a.Name, releaseAt(namespace, name)+" was installed or changed by another user", "--take-over")
		return nil
	}
	if version, err := c.Version(ctx, env); err != nil {
		return err
	} else if !r.SameVersion(version) {
		d.differs(a.Name, fmt.Sprintf("%s has version %s instead of %s", releaseAt(namespace, name), r.Version, version))
		return nil
	}
	objs, err := r.Parts(ctx, env.Cluster)
	if err != nil {
		return err
	}
	definitions, err := r.Definitions()
	if err != nil {
		return err
	}
	for _, o := range definitions { // a CRD that another user created is left unchanged
		if inv.Find(a.Name, steps.EntryOf(o.GroupVersionKind(), "", o.GetName())) != nil {
			objs = append(objs, o)
		}
	}
	return d.compareObjects(ctx, env, a, objs)
}

// passing lists the kinds that run once. They are not compared, because other checks report their results.
var passing = []string{"Job", "Pod", "CertificateSigningRequest"}

// compareObjects compares the expected objects with the existing ones. An object that is not in this link's inventory
// is compared only if all objects of the action exist, and only its differing values are reported. Until then, other
// checks report the missing objects.
func (d *drift) compareObjects(
	ctx context.Context, env steps.Env, a *steps.Action, objs []*unstructured.Unstructured,
) error {
	if env.Cluster == nil {
		return nil
	}
	inv, err := d.inventory(ctx, env)
	if err != nil {
		return err
	}
	wrote := func(o *unstructured.Unstructured) bool {
		return inv.Find(a.Name, steps.EntryOf(o.GroupVersionKind(), o.GetNamespace(), o.GetName())) != nil
	}
	var kept []string
	if m, is := a.Doer.(minter); is {
		kept = m.minted()
	}
	lives, unread := make([]*unstructured.Unstructured, len(objs)), make([]bool, len(objs))
	err = d.eachAtOnce(ctx, len(objs), func(ctx context.Context, i int, part *drift) (err error) {
		lives[i], err = liveOf(ctx, env, objs[i], kept...)
		if unread[i] = apierrors.IsForbidden(err); unread[i] {
			part.unread, err = append(part.unread, inventory.Describe(objs[i])+" cannot be read"), nil
		}
		return err
	})
	if err != nil {
		return err
	}
	_, stay := a.Doer.(OthersStay)
	byHand := !stay && !slices.Contains(lives, nil)
	return d.eachAtOnce(ctx, len(objs), func(ctx context.Context, i int, part *drift) error {
		obj, live, whole := objs[i], lives[i], wrote(objs[i])
		switch {
		case unread[i], slices.Contains(passing, obj.GetKind()), !whole && !byHand:
		case live == nil:
			part.compared++
			part.gone(a.Name, inventory.Describe(obj)+" is gone")
		case live.GetDeletionTimestamp() == nil:
			part.compared++
			return part.compareObject(ctx, env, a, obj, live, whole)
		case whole:
			part.compared++
			part.gone(a.Name, inventory.Describe(obj)+" is being deleted")
		}
		return nil
	})
}

// minter is a Doer that generates the values of a Secret once and accepts existing values afterwards.
type minter interface{ minted() []string }

func (d *drift) compareObject(
	ctx context.Context, env steps.Env, a *steps.Action, obj, live *unstructured.Unstructured, whole bool,
) error {
	want := obj.DeepCopy()
	if m, is := a.Doer.(minter); is {
		keepData(want, live, m.minted())
	}
	if same(want, live) {
		return nil
	}
	if extra := additions(plain(want), plain(live)); len(extra) > 0 && whole {
		d.first = append(d.first, removeAdditions(env, live, extra))
		d.differs("", inventory.Describe(obj)+": "+brief(additionNames(extra)))
	}
	at := fmt.Sprintf(
		"drift/%s/%s/%s/%s/%t", env.Side, env.Manager(), inventory.Describe(obj), steps.Fingerprint(want, bare(live)), whole,
	)
	try := func(ctx context.Context) (dryRunResult, error) { return tryApply(ctx, env, want, live, whole) }
	t, err := tracked.Look(ctx, at, driftAge, try)
	if err == nil && (t.refused != "" || t.replaced) { // the result also depends on other objects
		t, err = tracked.Look(ctx, at+"/again", refusedAge, try)
	}
	switch {
	case err != nil:
		return err
	case t.refused != "":
		d.unread = append(d.unread, inventory.Describe(obj)+": the dry run was rejected: "+t.refused)
	case t.replaced:
		text := inventory.Describe(obj) + " cannot be changed back in place"
		if len(t.fields) > 0 {
			text = inventory.Describe(obj) + ": " + brief(t.fields) + ", which cannot be changed back in place"
		}
		d.differs(a.Name, text, append(t.flags(), "--replace")...)
	case len(t.fields) > 0:
		if t.first != "" {
			d.first = append(d.first, t.first)
		}
		d.differs(a.Name, inventory.Describe(obj)+": "+brief(t.fields), t.flags()...)
	}
	return nil
}

// mostFields is the maximum number of fields that a finding lists per object.
const mostFields = 4

func brief(fields []string) string {
	if n := len(fields) - mostFields; n > 0 {
		fields = append(slices.Clone(fields[:mostFields]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(fields, ", ")
}
