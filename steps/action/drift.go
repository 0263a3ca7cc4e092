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

// driftSuffix ends the name of a check that looks for drift; the step's name is before it.
const driftSuffix = "-unchanged"

// IsDrift reports whether a check is one of those that WithDrift adds.
func IsDrift(check string) bool { return strings.HasSuffix(check, driftSuffix) }

// WithDrift adds to each step of a guide a check that compares what exists with what carrick would write today:
// objects, files, releases, and rows of an API. No guide writes such a check itself. A difference is a warning: what it
// breaks is for the other checks to say. It returns g; a second time it changes nothing.
func WithDrift(g *steps.Guide) *steps.Guide {
	for i := range g.Steps {
		step := &g.Steps[i]
		on := driftSide(step)
		if on == "" || slices.ContainsFunc(step.Checks, func(c steps.Check) bool { return IsDrift(c.Name) }) {
			continue
		}
		step.Checks = append(step.Checks, steps.Check{
			Name: step.Name + driftSuffix, On: on, Needs: driftNeeds(g, on),
			Title: "what carrick wrote in this step is unchanged",
			Why: "someone changed it, or an answer has changed since: it is not what carrick would write now, " +
				"and the next apply writes that",
			Run: func(ctx context.Context, env steps.Env) steps.Result { return lookForDrift(ctx, env, step) },
		})
	}
	return g
}

// signedIn is the check that a guide has of whether a side's API server takes its credentials.
const signedIn = "signed-in"

func driftNeeds(g *steps.Guide, on steps.Side) []string {
	if c, _ := g.Check(signedIn); c != nil && (c.On == steps.Both || c.On == on) {
		return []string{signedIn}
	}
	return nil
}

// driftSide is where a step writes what can be compared; "": nowhere.
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

// charted is a Doer that installs a chart: a Chart, or what embeds one.
type charted interface{ theChart() Chart }

func (c Chart) theChart() Chart { return c }

// OthersStay is a Doer that may leave what somebody else wrote as it is: its objects are compared only where the link
// wrote them.
type OthersStay interface{ OthersStay() }

// filed is a Doer that writes a file: a File, or what embeds one.
type filed interface {
	look(ctx context.Context, env steps.Env) (fileNow, error)
	mode() fs.FileMode
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
		if !slices.Contains(d.flags, flag) {
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
		if !slices.Contains(d.unread, text) {
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
		return steps.Skipped("can't be compared: %s", strings.Join(d.unread, "; "))
	case d.compared == 0:
		return steps.Skipped("nothing that carrick writes in this step exists yet")
	case d.compared == 1:
		return steps.Passed("it is as carrick writes it")
	}
	return steps.Passed("all %d are as carrick writes them", d.compared)
}

// result is the warning. Where something has to be done by hand first, apply alone does not mend it.
func (d *drift) result(env steps.Env, step *steps.Step) steps.Result {
	r := steps.Warned("differs from what carrick writes: "+strings.Join(d.found, "; "), "").FixedBy(d.action)
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

// absent is what was not compared, because what it takes to know what would be written is not there. It counts where
// the link has written something.
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

// inventory is the link's, watched.
func (d *drift) inventory(ctx context.Context, env steps.Env) (*inventory.Inventory, error) {
	o, err := env.Cluster.Get(ctx, inventory.ClusterRoles, "", inventory.Prefix+env.Link)
	inv, err := inventory.Parse(env, o, err)
	if err == nil && inv.Unread != nil && !slices.Contains(d.unread, unreadInventory) {
		d.unread = append(d.unread, unreadInventory)
	}
	return inv, err
}

const unreadInventory = "the inventory of this link may not be read"
