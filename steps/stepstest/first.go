package stepstest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
)

// First is the first entry that the troubles view must show for one fault of the sandbox.
type First struct {
	Check string // name of the check; "" if there is no entry, or only objects that are not applied yet (Why explains it)
	Why   string // why the fault causes no entry in a new demo; "" if Check is set
}

// FirstTroubles verifies that the demo opens at the cause of each fault that the sandbox has for a guide, and that the
// action of the f key then changes something. The table must contain every fault.
func FirstTroubles(t *testing.T, g *steps.Guide, assets fs.FS, table map[string]First) {
	t.Helper()
	cases.LeftOut(t, "first cause", g.Name)
	Live(t, "live", slices.Sorted(maps.Keys(table)), func(t *testing.T, box *clustertest.Sandbox, fault string) {
		known := box.Faults(t, g.Name)
		if known[fault] == "" {
			t.Fatalf("the sandbox has no fault %s", fault)
		}
		for name := range known {
			if _, listed := table[name]; !listed {
				t.Errorf("the table has no fault %s", name)
			}
		}
		box.SeedFault(t, g.Name, fault)
		x := demoOf(t, box, g, assets)
		x.opensOn(table[fault])
	})
}

// demoOf opens a session as carrick demo does. If a setup exists, it adopts the setup.
func demoOf(t *testing.T, box *clustertest.Sandbox, g *steps.Guide, assets fs.FS) *Site {
	t.Helper()
	given := parsed(t, g, box.Given)
	x := &Site{t: t, Box: box, Session: Open(t, box, g, assets, "demo", nil)}
	t.Cleanup(x.Close)
	x.Link().Path = filepath.Join(t.TempDir(), "demo.yaml")
	b, err := x.looked()
	if holds := 0; err == nil {
		if holds, _ = x.Standing(b); holds > 0 {
			x.adopt(given)
			return x
		}
	}
	fresh := &Site{t: t, Box: box, Session: Open(t, box, g, assets, "demo", given)}
	t.Cleanup(fresh.Close)
	fresh.Link().Path = x.Link().Path
	return fresh
}

func (x *Site) looked() (*engine.Board, error) {
	if _, err := x.Adopt(x.t.Context()); err != nil {
		return nil, err
	}
	b, _ := x.Look(x.t.Context(), x.Guide().Cells())
	return b, nil
}

// adopt signs in if the guide has an API. It discovers the answers and then gives the demo's answers.
func (x *Site) adopt(given map[string]any) {
	x.t.Helper()
	if _, err := x.SignIn(x.t.Context(), nil); err != nil {
		x.t.Logf("sign in: %v", err)
	}
	found, err := x.Adopt(x.t.Context())
	if err == nil {
		err = x.SaveAdopted(found)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	for key, v := range given {
		if _, has := x.Link().Answers[key]; !has {
			x.Link().Answers[key] = v
		}
	}
	x.Forget()
}

// opensOn waits until the board's first trouble is the expected one. In a new demo, everything is still to do, and the
// list shows that before warnings. Therefore the first trouble that is not to do counts, too.
func (x *Site) opensOn(want First) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), firstWithin)
	defer cancel()
	var first engine.Trouble
	var all []string
	_ = x.Follow(ctx, x.Guide().Cells(), func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		first, all = engine.Trouble{}, nil
		for i, tr := range b.Troubles() {
			if i == 0 || first.ToDo && first.Cell.Check != want.Check && !tr.ToDo {
				first = tr
			}
			all = append(all, fmt.Sprintf("%s@%s %s: %s", tr.Cell.Check, tr.Cell.Side, tr.Result.Status, tr.Result.Found))
		}
		waits := slices.ContainsFunc(
			x.Guide().Cells(), func(c steps.Cell) bool { return b.Verdict(c).Status == steps.Pending },
		)
		return waits || want.Check != "" && first.Cell.Check != want.Check
	})
	if want.Check == "" {
		return // Why explains the entry that comes first instead
	}
	if first.Cell.Check != want.Check {
		x.t.Fatalf("the troubles are\n%s\nwant %s first", strings.Join(all, "\n"), want.Check)
	}
	if first.Result.Fix == "" {
		x.t.Errorf("%s has no fix", want.Check)
	}
	x.offers(first)
}

const firstWithin = 45 * time.Second

// offers fails the test unless the f key's action changes something for a trouble.
func (x *Site) offers(of engine.Trouble) {
	x.t.Helper()
	check, _ := x.Guide().Check(of.Cell.Check)
	act, _ := x.Guide().Offer(check, of.Cell.Side, of.Result)
	if act == nil {
		return
	}
	p, err := x.Plan(x.t.Context(), engine.Scope{Actions: []string{act.Name}})
	if err != nil {
		x.t.Errorf("f, which runs %s: %v", act.Name, err)
	} else if p.Empty() {
		x.t.Errorf("f runs %s, which changes nothing", act.Name)
	}
}
