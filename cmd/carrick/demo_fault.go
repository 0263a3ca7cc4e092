package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"carrick/cluster"
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
	for _, f := range faults {
		if f.Name == name {
			return f, nil
		}
	}
	return demoFault{}, usage("no fault of %s is called %q; there are:\n%s", guide, name, faultTable(faults))
}

// listFaults prints the faults of a guide. It needs no terminal.
func (a *app) listFaults(ctx context.Context, guide string) error {
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

// faultTable is a line a fault.
func faultTable(faults []demoFault) string {
	var lines []string
	for _, f := range faults {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%-28s %s", oneLine(cluster.Clean(f.Name)), oneLine(cluster.Clean(f.Title))), " "))
	}
	return strings.Join(lines, "\n")
}
