package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
)

// driftSuffix ends the name of a check that looks for drift; the step's name is before it.
const driftSuffix = "-unchanged"

// IsDrift reports whether a check is one of those that WithDrift adds.
func IsDrift(check string) bool { return strings.HasSuffix(check, driftSuffix) }

// WithDrift adds to each step of a guide a check that compares what exists with what carrick would write today: objects,
// files, releases, and rows of an API. No guide writes such a check itself. A difference is a warning: what it breaks is
// for the other checks to say. It returns g; a second time it changes nothing.
func WithDrift(g *Guide) *Guide {
	for i := range g.Steps {
		step := &g.Steps[i]
		on := driftSide(step)
		if on == "" || slices.ContainsFunc(step.Checks, func(c Check) bool { return IsDrift(c.Name) }) {
			continue
		}
		step.Checks = append(step.Checks, Check{
			Name: step.Name + driftSuffix, On: on, Needs: driftNeeds(g, on),
			Title: "what carrick wrote in this step is unchanged",
			Why: "what somebody has changed since is not what was shown and confirmed, and may fail when it is used; " +
				"the next apply changes it back",
			Run: func(ctx context.Context, env Env) Result { return lookForDrift(ctx, env, step) },
		})
	}
	return g
}

// signedIn is the check that a guide has of whether a side's API server takes its credentials.
const signedIn = "signed-in"

func driftNeeds(g *Guide, on Side) []string {
	if c, _ := g.Check(signedIn); c != nil && (c.On == Both || c.On == on) {
		return []string{signedIn}
	}
	return nil
}

// driftSide is where a step writes what can be compared; "": nowhere.
func driftSide(step *Step) Side {
	on := Side("")
	for _, a := range step.Actions {
		switch {
		case !canDrift(a.Doer):
		case on == "" || on == a.On:
			on = a.On
		default:
			return Both
		}
	}
	return on
}

// canDrift reports whether what a Doer writes can be compared with what exists.
func canDrift(d Doer) bool {
	switch d := d.(type) {
	case asset, filed, charted:
		return true
	case Call:
		return d.Revert != nil
	}
	return false
}

// asset is a Doer that writes objects.
type asset interface{ Asset() Manifest }

// charted is a Doer that installs a chart: a Chart, or what embeds one.
type charted interface{ theChart() Chart }

func (c Chart) theChart() Chart { return c }

// OthersStay is a Doer that may leave what somebody else wrote as it is: its objects are compared only where the link
// wrote them.
type OthersStay interface{ OthersStay() }

// filed is a Doer that writes a file: a File, or what embeds one.
type filed interface {
	look(ctx context.Context, env Env) (fileNow, error)
	mode() fileMode
}

// drift is what was found in one step on one side.
type drift struct {
	compared int      // things that were compared
	found    []string // what differs, each with its fields
	action   string   // the first action whose apply mends something
	flags    []string // what that apply has to be told
	first    []string // what has to be done before it
	unread   []string // what could not be compared, and why
}

func (d *drift) differs(action, text string, flags ...string) {
	d.found = append(d.found, text)
	if d.action == "" {
		d.action = action
	}
	for _, flag := range flags {
		if !contains(d.flags, flag) {
			d.flags = append(d.flags, flag)
		}
	}
}

// join adds what was found elsewhere, after what was found here.
func (d *drift) join(o drift) {
	d.compared += o.compared
	for _, text := range o.found {
		d.differs(o.action, text, o.flags...)
	}
	d.first = append(d.first, o.first...)
	for _, text := range o.unread {
		if !contains(d.unread, text) {
			d.unread = append(d.unread, text)
		}
	}
}

// eachAtOnce looks at n things at the same time, and joins what was found in their order.
func (d *drift) eachAtOnce(ctx context.Context, n int, look func(ctx context.Context, i int, part *drift) error) error {
	parts := make([]drift, n)
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i := range parts {
		all.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("carrick itself failed while it compared: %v", p)
				}
			}()
			return look(each, i, &parts[i])
		})
	}
	err := all.Wait()
	for _, part := range parts {
		d.join(part)
	}
	return err
}

// atOnce is how many actions of a step, and how many objects of an action, are looked at together.
const atOnce = 16

func lookForDrift(ctx context.Context, env Env, step *Step) Result {
	var d drift
	err := d.eachAtOnce(ctx, len(step.Actions), func(ctx context.Context, i int, part *drift) error {
		a, env := &step.Actions[i], env
		env.Action = a.Name
		if a.On != env.Side || !canDrift(a.Doer) || !(job{step, a, env.Side}).wanted(env) {
			return nil
		}
		err := part.compare(ctx, env, a)
		if absent := (*AbsentError)(nil); errors.As(err, &absent) {
			return part.absent(ctx, env, a, absent)
		}
		return err
	})
	if err := errors.Join(err, env.use.sound()); err != nil {
		return Unseen(err)
	}
	switch {
	case len(d.found) > 0:
		return d.result(env, step)
	case len(d.unread) > 0:
		return Skipped("can't be compared: %s", strings.Join(d.unread, "; "))
	case d.compared == 0:
		return Skipped("nothing that carrick writes in this step exists yet")
	case d.compared == 1:
		return Passed("it is as carrick writes it")
	}
	return Passed("all %d are as carrick writes them", d.compared)
}

// result is the warning. Where something has to be done by hand first, apply alone does not mend it.
func (d *drift) result(env Env, step *Step) Result {
	r := Warned("differs from what carrick writes: "+strings.Join(d.found, "; "), "").MendedBy(d.action)
	todo := d.first
	if d.action != "" {
		todo = append(todo, strings.Join(append([]string{"carrick apply", env.LinkFile(), "--step", step.Name}, d.flags...), " "))
	}
	r.Fix = strings.Join(todo, " && ")
	if len(d.first) > 0 {
		return r.WithoutAction()
	}
	return r
}

// absent is what was not compared, because what it takes to know what would be written is not there. It counts where
// the link has written something.
func (d *drift) absent(ctx context.Context, env Env, a *Action, why *AbsentError) error {
	wrote := false
	if env.Cluster != nil {
		inv, err := d.inventory(ctx, env)
		if err != nil {
			return err
		}
		wrote = inv.notes[a.Name] != "" || len(inv.actions[a.Name]) > 0
	} else if env.Host != nil {
		var err error
		if _, wrote, err = readRecord(ctx, env); err != nil {
			return err
		}
	}
	if wrote {
		d.unread = append(d.unread, a.Title+": "+why.Error())
	}
	return nil
}

// inventory is the link's, watched.
func (d *drift) inventory(ctx context.Context, env Env) (*inventory, error) {
	o, err := env.Cluster.Get(ctx, clusterRolesAt, "", inventoryPrefix+env.Link)
	inv, err := parseInventory(env, o, err)
	if err == nil && inv.unread != nil && !contains(d.unread, unreadInventory) {
		d.unread = append(d.unread, unreadInventory)
	}
	return inv, err
}

const unreadInventory = "the inventory of this link may not be read"

// compare looks at what one action writes.
func (d *drift) compare(ctx context.Context, env Env, a *Action) error {
	switch doer := a.Doer.(type) {
	case filed:
		return d.compareFile(ctx, env, a, doer)
	case charted:
		return d.compareChart(ctx, env, a, doer.theChart())
	case asset:
		objs, err := doer.Asset().objects(ctx, env)
		if err != nil {
			return err
		}
		return d.compareObjects(ctx, env, a, objs)
	case Call:
		return d.compareCall(ctx, env, a, doer)
	}
	return nil
}

// compareFile compares a file that this link has written.
func (d *drift) compareFile(ctx context.Context, env Env, a *Action, f filed) error {
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
		d.differs(a.Name, n.path+" is gone")
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
		d.first = append(d.first, "chown root: "+Quoted(n.path))
		d.differs("", fmt.Sprintf("%s belongs to user %d, not to root", n.path, info.UID))
	}
	return err
}

// compareCall compares what an action in Go has made, of which this link has noted that it made it.
func (d *drift) compareCall(ctx context.Context, env Env, a *Action, call Call) error {
	if env.Cluster == nil {
		return nil
	}
	inv, err := d.inventory(ctx, env)
	if err != nil || inv.notes[a.Name] == "" && len(inv.actions[a.Name]) == 0 {
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
		case it.Verb == Create:
			d.differs(a.Name, it.What+" is gone")
		case it.Verb == Update && it.Diff != "":
			d.differs(a.Name, it.What)
		case it.Verb != Run:
			d.compared++
		}
	}
	return nil
}

// compareChart compares the objects of a release that this link has installed with those that the release holds. Whoever
// can write the release's Secret could have written another one: it counts as what the inventory has of it.
func (d *drift) compareChart(ctx context.Context, env Env, a *Action, c Chart) error {
	inv, err := d.inventory(ctx, env)
	if err != nil {
		return err
	}
	name, namespace, err := c.at(ctx, env)
	if err != nil {
		return err
	}
	e := inv.find(a.Name, entryOf(releaseKind, namespace, name))
	if e == nil {
		return nil
	}
	d.compared++
	r, err := chart.Find(ctx, env.Cluster, namespace, name)
	switch {
	case errors.Is(err, chart.ErrNoRelease):
		d.differs(a.Name, releaseAt(namespace, name)+" is gone")
		return nil
	case apierrors.IsForbidden(err):
		d.unread = append(d.unread, releaseAt(namespace, name)+" may not be read")
		return nil
	case err != nil:
		return err
	case e.Content != "" && e.Content != r.Content():
		d.differs(a.Name, releaseAt(namespace, name)+" was installed or changed by somebody else", "--take-over")
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
	return d.compareObjects(ctx, env, a, objs)
}

// passing are kinds whose objects are made to run once: what became of the run is for the checks.
var passing = []string{"Job", "Pod", "CertificateSigningRequest"}

// compareObjects compares objects with what exists. Of objects that this link has not written, by its inventory, only
// values that differ count, and only once all of the action exist: what is missing is still to be written, and the checks
// say so.
func (d *drift) compareObjects(ctx context.Context, env Env, a *Action, objs []*unstructured.Unstructured) error {
	if env.Cluster == nil {
		return nil
	}
	inv, err := d.inventory(ctx, env)
	if err != nil {
		return err
	}
	wrote := func(o *unstructured.Unstructured) bool {
		return inv.find(a.Name, entryOf(o.GroupVersionKind(), o.GetNamespace(), o.GetName())) != nil
	}
	var kept []string
	if m, is := a.Doer.(minter); is {
		kept = m.minted()
	}
	lives, unread := make([]*unstructured.Unstructured, len(objs)), make([]bool, len(objs))
	err = d.eachAtOnce(ctx, len(objs), func(ctx context.Context, i int, part *drift) (err error) {
		lives[i], err = liveOf(ctx, env, objs[i], kept...)
		if unread[i] = apierrors.IsForbidden(err); unread[i] {
			part.unread, err = append(part.unread, describe(objs[i])+" may not be read"), nil
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
			part.differs(a.Name, describe(obj)+" is gone")
		case live.GetDeletionTimestamp() == nil:
			part.compared++
			return part.compareObject(ctx, env, a, obj, live, whole)
		}
		return nil
	})
}

// minter is a Doer that makes the values of a Secret once, and takes them as they are from then on.
type minter interface{ minted() []string }

// compareObject compares one object.
func (d *drift) compareObject(ctx context.Context, env Env, a *Action, obj, live *unstructured.Unstructured, whole bool) error {
	want := obj.DeepCopy()
	if m, is := a.Doer.(minter); is {
		keepData(want, live, m.minted())
	}
	if same(want, live) {
		return nil
	}
	if extra := additions(plain(want), plain(live)); len(extra) > 0 && whole {
		d.first = append(d.first, removeAdditions(env, live, extra))
		d.differs("", describe(obj)+": "+brief(additionNames(extra)))
	}
	at := fmt.Sprintf("drift/%s/%s/%s/%s/%t", env.Side, env.Manager(), describe(obj), hash(want, bare(live)), whole)
	try := func(ctx context.Context) (tried, error) { return tryApply(ctx, env, want, live, whole) }
	t, err := cluster.Look(ctx, at, driftAge, try)
	if err == nil && (t.refused != "" || t.replaced) { // that hangs on more than the object
		t, err = cluster.Look(ctx, at+"/again", refusedAge, try)
	}
	switch {
	case err != nil:
		return err
	case t.refused != "":
		d.unread = append(d.unread, describe(obj)+": what apply would change may not be asked: "+t.refused)
	case t.replaced:
		d.differs(a.Name, describe(obj)+" can't be changed back in place", "--replace")
	case len(t.fields) > 0:
		if t.first != "" {
			d.first = append(d.first, t.first)
		}
		d.differs(a.Name, describe(obj)+": "+brief(t.fields), t.flags()...)
	}
	return nil
}

// mostFields is how many fields of one object are named.
const mostFields = 4

func brief(fields []string) string {
	if n := len(fields) - mostFields; n > 0 {
		fields = append(slices.Clone(fields[:mostFields]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(fields, ", ")
}
