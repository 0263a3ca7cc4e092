package commands

import (
	"context"
	"fmt"
	"path/filepath"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cmd/carrick/demo"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// listFaults prints the faults of a guide. It works without a terminal.
func (a *app) listFaults(ctx context.Context, guide string) error {
	if faults := demo.KnownFaults(ctx, guide); len(faults) > 0 {
		_, err := fmt.Fprintln(a.out, demo.FaultTable(faults))
		return err
	}
	box, err := demo.Start(ctx, a.err)
	if err != nil {
		return err
	}
	defer box.Stop()
	faults, err := box.Faults(guide)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, demo.FaultTable(faults))
	return err
}

// demoLink returns a link without answers between the demo's two sides.
func (a *app) demoLink(box *demo.Sandbox, guide string) *linkfile.Link {
	l := linkfile.New(guide, demoName)
	l.Path = filepath.Join(box.Dir, demoName+".yaml")
	for _, side := range steps.Sides {
		*l.Side(side) = box.End(side)
	}
	return l
}

// setUpDemo applies the whole guide to the demo's sides and saves the link. given contains the link's initial answers, by
// question key. If the guide requires another answer, setUpDemo takes it from asked.
func (a *app) setUpDemo(ctx context.Context, l *linkfile.Link, given, asked map[string]string) error {
	a.attended = true // the demo has a terminal, which signing in requires
	open := func(l *linkfile.Link) (*engine.Session, error) { return a.session(l, cluster.Options{}) }
	s, err := answering(open, given)(l)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(a.err, "setting up the link: all %d steps …\n", len(s.Guide().Steps))
	if a.secrets.values, err = s.SignIn(ctx, func(e steps.Event) { fmt.Fprintln(a.err, clean.Text(e.Text)) }); err != nil {
		return err
	}
	for _, q := range s.Missing(ctx) {
		v, known := asked[q.Key]
		if !known {
			continue
		}
		if err := s.Answer(q.Key, v); err != nil {
			return err
		}
	}
	if err := s.Save(); err != nil {
		return err
	}
	p, err := PlanApply(ctx, s, false)
	if err != nil {
		return err
	}
	return s.Apply(ctx, p, steps.ApplyOptions{}, func(steps.Event) {})
}

// adoptDemo starts the demo with the answers that carrick adopt discovers, instead of with a new link. It returns a
// message for the notes, or "" if there is no existing setup to adopt.
func (a *app) adoptDemo(ctx context.Context, o *ui.Options, box *demo.Sandbox) (string, error) {
	l := a.demoLink(box, o.Guide)
	s, err := a.session(l, cluster.Options{})
	if err != nil {
		return "", err
	}
	defer s.Close()
	if _, err := s.Adopt(ctx); err != nil {
		return "", err
	}
	b, _ := s.Look(ctx, s.Guide().Cells())
	if holds, _ := s.Standing(b); holds == 0 {
		return "", ctx.Err()
	}
	fmt.Fprintf(a.err, "adopting the existing set-up …\n")
	if a.secrets.values, err = s.SignIn(ctx, func(e steps.Event) { fmt.Fprintln(a.err, clean.Text(e.Text)) }); err != nil {
		return "", err
	}
	if s, err = a.session(engine.NewAdoption(l), cluster.Options{Once: true}); err != nil {
		return "", err
	}
	defer s.Close()
	found, err := s.Adopt(ctx)
	if err != nil {
		return "", err
	}
	if err := s.SaveAdopted(found); err != nil {
		return "", err
	}
	o.Link = s.Link()
	return fmt.Sprintf(
		" The demo includes an existing set-up. carrick adopted the set-up and discovered %d answers.",
		len(s.Link().Answers),
	), nil
}
