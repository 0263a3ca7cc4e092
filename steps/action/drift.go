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

// driftSuffix is the suffix of the names of checks for drift, after the step's name.
const driftSuffix = "-unchanged"

// IsDrift reports whether a check is one of those that WithDrift adds.
func IsDrift(check string) bool { return strings.HasSuffix(check, driftSuffix) }

// WithDrift adds to each step of a guide a check that compares what exists with what carrick would write today:
// objects, files, releases, and rows of an API. Guides don't write such checks themselves. A difference is a warning:
// other checks report what it breaks. It returns g, and is idempotent.
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
			Why:   "Someone changed it, or an answer changed, and the next apply overwrites it.",
			Run:   func(ctx context.Context, env steps.Env) steps.Result { return lookForDrift(ctx, env, step) },
		})
	}
	return g
}

// signedIn is the name of the guides' check that a side's API server accepts its credentials.
const signedIn = "signed-in"

func driftNeeds(g *steps.Guide, on steps.Side) []string {
	if c, _ := g.Check(signedIn); c != nil && (c.On == steps.Both || c.On == on) {
		return []string{signedIn}
	}
	return nil
}

// driftSide returns the side on which a step writes something comparable, or "" if there is none.
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

// canDrift reports whether what a Doer writes can be compared with what exists.
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

// charted is a Doer that installs a chart: a Chart, or a type that embeds one.
type charted interface{ theChart() Chart }

func (c Chart) theChart() Chart { return c }

// OthersStay is a Doer that may leave another user's content unchanged: its objects are compared only if the link wrote
// them.
type OthersStay interface{ OthersStay() }

// filed is a Doer that writes a file: a File, or a type that embeds one.
type filed interface {
	look(ctx context.Context, env steps.Env) (fileNow, error)
	mode() fs.FileMode
}

// drift collects the findings of one step on one side.
type drift struct {
	compared int      // number of compared objects, files and rows
	found    []string // what differs, each with its fields
	action   string   // the first action whose apply fixes a difference
	flags    []string // flags that this apply requires
	first    []string // what must be done before it
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

// join appends the findings of o.
func (d *drift) join(o drift) {
	d.compared += o.compared
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

// eachAtOnce calls look for n things concurrently and joins the findings in order.
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

// atOnce is the maximum number of a step's actions, and of an action's objects, that are compared concurrently.
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
		return steps.Passed("it is unchanged")
	}
	return steps.Passed("all %d are unchanged", d.compared)
}

// result returns the warning. If something must be done manually first, apply alone is not the fix.
func (d *drift) result(env steps.Env, step *steps.Step) steps.Result {
	r := steps.Warned("differs from the desired state: "+strings.Join(d.found, "; "), "").FixedBy(d.action)
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

// absent records that an action was not compared because a fact that its content requires does not exist. It counts
// only if the link has written something.
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

// inventory returns the link's inventory from a live read.
func (d *drift) inventory(ctx context.Context, env steps.Env) (*inventory.Inventory, error) {
	o, err := env.Cluster.Get(ctx, inventory.ClusterRoles, "", inventory.Prefix+env.Link)
	inv, err := inventory.Parse(env, o, err)
	if err == nil && inv.Unread != nil && !slices.Contains(d.unread, unreadInventory) {
		d.unread = append(d.unread, unreadInventory)
	}
	return inv, err
}

const unreadInventory = "the inventory of this link cannot be read"
