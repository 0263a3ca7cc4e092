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

// adoptDemo starts the demo with the answers that carrick adopt discovers, instead of with a new link. It returns a
// message for the notes, or "" if there is no existing setup to adopt.
func (a *app) adoptDemo(ctx context.Context, o *ui.Options, box *demo.Sandbox) (string, error) {
	l := linkfile.New(o.Guide, o.Name)
	l.Path = filepath.Join(box.Dir, o.Name+".yaml")
	for _, side := range steps.Sides {
		*l.Side(side) = box.End(side)
	}
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
