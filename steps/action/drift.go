package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"carrick/steps"
	"carrick/steps/inventory"
)

const driftSuffix = "-unchanged"

// IsDrift reports whether WithDrift added the named check.
func IsDrift(check string) bool { return strings.HasSuffix(check, driftSuffix) }

// WithDrift adds a drift check to each step of a guide. The check compares existing objects, files, releases and API
// entries with what carrick would write today. Guides don't write such checks themselves. A difference is only a
// warning, because other checks report what it breaks. Something that is gone is a failure, which the Board shows as a
// warning while another check fails that the same action fixes. WithDrift changes and returns g, and is idempotent.
func WithDrift(g *steps.Guide) *steps.Guide {
	for i := range g.Steps {
		step := &g.Steps[i]
		on := driftSide(step)
		if on == "" || slices.ContainsFunc(step.Checks, func(c steps.Check) bool { return IsDrift(c.Name) }) {
			continue
		}
		step.Checks = append(step.Checks, steps.Check{
			Name: step.Name + driftSuffix, On: on, Needs: driftNeeds(g, on),
			Title: "Everything that this step wrote is unchanged",
			Why:   "If an object, a file or an answer was changed, the next apply overwrites the change.",
			Run:   func(ctx context.Context, env steps.Env) steps.Result { return lookForDrift(ctx, env, step) },
		})
	}
	return g
}

// signedIn is the name of a check that most guides have. The check verifies that a side's API server accepts the
// credentials.
const signedIn = "signed-in"

func driftNeeds(g *steps.Guide, on steps.Side) []string {
	if c, _ := g.Check(signedIn); c != nil && (c.On == steps.Both || c.On == on) {
		return []string{signedIn}
	}
	return nil
}

func driftSide(step *steps.Step) steps.Side {
	on := steps.Side("")
	for _, a := range step.Actions {
		switch {
		case !canDrift(a.Doer):
		case on == "" || on == a.On:
			on = a.On
		default:
			return steps.Both
		}
	}
	return on
}

func canDrift(d steps.Doer) bool {
	switch d := d.(type) {
	case Asset, filed, charted:
		return true
	case Call:
		return d.Revert != nil
	}
	return false
}

// Asset is a Doer that writes objects.
type Asset interface{ Asset() Manifest }

// charted is implemented by Chart and by the types that embed it.
type charted interface{ theChart() Chart }

func (c Chart) theChart() Chart { return c }

// OthersStay is a Doer that can leave another user's content unchanged. Drift checks compare its objects only if the
// link wrote them.
type OthersStay interface{ OthersStay() }

// filed is implemented by File and by the types that embed it.
type filed interface {
	look(ctx context.Context, env steps.Env) (fileNow, error)
	mode() fs.FileMode
}

type drift struct {
	compared int      // number of compared objects, files and API entries
	found    []string // what differs, with the fields
	lost     bool     // something is gone or is being deleted
	action   string   // the first action that fixes a difference
	flags    []string // flags that apply requires to fix it
	first    []string // manual steps that must precede apply
	unread   []string // what could not be compared, and why
}

func (d *drift) differs(action, text string, flags ...string) {
	d.found = append(d.found, text)
	if d.action == "" {
		d.action = action
	}
	for _, flag := range flags {
		if !slices.Contains(d.flags, flag) {
			d.flags = append(d.flags, flag)
		}
	}
}

// gone records that something does not exist any more, or is being deleted.
func (d *drift) gone(action, text string) {
	d.differs(action, text)
	d.lost = true
}

func (d *drift) join(o drift) {
	d.compared += o.compared
	d.lost = d.lost || o.lost
	for _, text := range o.found {
		d.differs(o.action, text, o.flags...)
	}
	d.first = append(d.first, o.first...)
	for _, text := range o.unread {
		if !slices.Contains(d.unread, text) {
			d.unread = append(d.unread, text)
		}
	}
}

// eachAtOnce calls look concurrently for each i from 0 to n-1. It joins the findings in the order of i.
func (d *drift) eachAtOnce(ctx context.Context, n int, look func(ctx context.Context, i int, part *drift) error) error {
	parts := make([]drift, n)
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i := range parts {
		all.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("internal error in this comparison (please report): %v", p)
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

// atOnce limits how many actions of a step, and how many objects of an action, are compared concurrently.
const atOnce = 16

func lookForDrift(ctx context.Context, env steps.Env, step *steps.Step) steps.Result {
	if env.Cluster != nil {
		env.Cluster.StartServed()
		inventory.Start(env)
	}
	var d drift
	err := d.eachAtOnce(ctx, len(step.Actions), func(ctx context.Context, i int, part *drift) error {
		a, env := &step.Actions[i], env
		env.Action = a.Name
		if a.On != env.Side || !canDrift(a.Doer) || !a.Wanted(step, env) {
			return nil
		}
		err := part.compare(ctx, env, a)
		if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
			return part.absent(ctx, env, a, absent)
		}
		return err
	})
	if err := errors.Join(err, env.Sound()); err != nil {
		return steps.Errored(err)
	}
	switch {
	case len(d.found) > 0:
		return d.result(env, step)
	case len(d.unread) > 0:
		return steps.Skipped("cannot be compared: %s", strings.Join(d.unread, "; "))
	case d.compared == 0:
		return steps.Skipped("nothing from this step exists yet")
	case d.compared == 1:
		return steps.Passed("the only item is unchanged")
	}
	return steps.Passed("all %d items are unchanged", d.compared)
}

// result lists the differences and the commands that fix them. It is a failure if something is gone, and otherwise a
// warning. If a manual step must come first, apply alone is not offered as the fix.
func (d *drift) result(env steps.Env, step *steps.Step) steps.Result {
	r := steps.Warned("differs from the desired state: "+strings.Join(d.found, "; "), "")
	if d.lost {
		r = steps.Failed(r.Found, "")
		r.Made = true
	}
	r = r.FixedBy(d.action)
	todo := d.first
	if d.action != "" {
		todo = append(
			todo, strings.Join(append([]string{"carrick apply", env.LinkFile(), "--step", step.Name}, d.flags...), " "),
		)
	}
	r.Fix = strings.Join(todo, " && ")
	if len(d.first) > 0 {
		return r.WithoutAction()
	}
	return r
}

// absent records an action that could not be compared because its content requires a fact that does not exist. The
// action is recorded only if the link has written something.
func (d *drift) absent(ctx context.Context, env steps.Env, a *steps.Action, why *steps.AbsentError) error {
	wrote := false
	if env.Cluster != nil {
		inv, err := d.inventory(ctx, env)
		if err != nil {
			return err
		}
		wrote = inv.Notes[a.Name] != "" || len(inv.Actions[a.Name]) > 0
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

// inventory returns the link's inventory. It bypasses the cache of package inventory.
func (d *drift) inventory(ctx context.Context, env steps.Env) (*inventory.Inventory, error) {
	o, err := env.Cluster.Get(ctx, inventory.ClusterRoles, "", inventory.Prefix+env.Link)
	inv, err := inventory.Parse(env, o, err)
	if err == nil && inv.Unread != nil && !slices.Contains(d.unread, unreadInventory) {
		d.unread = append(d.unread, unreadInventory)
	}
	return inv, err
}

const unreadInventory = "the inventory of this link cannot be read"
