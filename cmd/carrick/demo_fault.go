package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// faultName is what a fault may be called: it becomes a word of a command.
var faultName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// demoFault is something that the sandbox can break before the wizard opens.
type demoFault struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// faults are those that the sandbox knows of a guide.
func (b *sandbox) faults(guide string) ([]demoFault, error) {
	got, err := b.tell("faults " + guide)
	switch {
	case unknownCommand(err), err == nil && len(got.Faults) == 0:
		return nil, usage("this demo has no faults")
	case err != nil:
		return nil, fmt.Errorf("ask for the faults of %s: %w", guide, err)
	}
	return got.Faults, nil
}

// fault is the one of that name; one that the sandbox does not know is refused.
func (b *sandbox) fault(guide, name string) (demoFault, error) {
	faults, err := b.faults(guide)
	if err != nil {
		return demoFault{}, err
	}
	return faultOf(faults, guide, name)
}

func faultOf(faults []demoFault, guide, name string) (demoFault, error) {
	for _, f := range faults {
		if f.Name == name {
			return f, nil
		}
	}
	return demoFault{}, usage("no fault of %s is called %q; there are:\n%s", guide, name, faultTable(faults))
}

// listFaults prints the faults of a guide. It needs no terminal.
func (a *app) listFaults(ctx context.Context, guide string) error {
	if faults := faultsOnPaper(ctx, guide); len(faults) > 0 {
		_, err := fmt.Fprintln(a.out, faultTable(faults))
		return err
	}
	box, err := startSandbox(ctx, a.err)
	if err != nil {
		return err
	}
	defer box.stop()
	faults, err := box.faults(guide)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.out, faultTable(faults))
	return err
}

// adoptDemo has the demo begin on the set-up that a fault leaves behind, as carrick
// adopt would: with the answers that were found out, not with a new link. What it
// says is for the notes; "" where no set-up stands.
func (a *app) adoptDemo(ctx context.Context, o *ui.Options, box *sandbox) (string, error) {
	l := linkfile.New(o.Guide, o.Name)
	l.Path = filepath.Join(box.Dir, o.Name+".yaml")
	for _, side := range steps.Sides {
		*l.Side(side) = box.end(side)
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
	fmt.Fprintf(a.err, "adopting the set-up that stands there …\n")
	if a.secrets.values, err = s.SignIn(ctx, func(e steps.Event) { fmt.Fprintln(a.err, cluster.Clean(e.Text)) }); err != nil {
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
	return fmt.Sprintf(" It leaves a set-up behind that somebody else made: carrick adopted it, and found %d answers by itself.", len(s.Link().Answers)), nil
}

// faultTable is a line a fault.
func faultTable(faults []demoFault) string {
	var lines []string
	for _, f := range faults {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%-28s %s", oneLine(cluster.Clean(f.Name)), oneLine(cluster.Clean(f.Title))), " "))
	}
	return strings.Join(lines, "\n")
}
