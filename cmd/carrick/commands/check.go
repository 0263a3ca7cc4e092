package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/cluster/nearest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

type checkFlags struct {
	output, side       string
	watch, ignoreDrift bool
	all, failed        bool
	wait               time.Duration
	only, skip, failOn []string
}

func (a *app) check() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use: "check LINK", Short: "Run every check once", Args: a.needLink,
		Long: "Runs every check of a link once and prints the results. Exit code 0: green; 3: a check\nfailed; 5: a check " +
			"is unknown or still waiting.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runCheck(cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "`format`: table, json, yaml or junit")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "keep running, and print each verdict that changes")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait this long until all checks pass")
	cmd.Flags().BoolVar(&f.all, "all", false, "also print checks that are not applicable with the current answers")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "print only checks that need attention")
	cmd.Flags().StringVar(&f.side, "side", "", "one `side` only: local, remote, or the guide's name of the side")
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "only these steps or checks: `names` separated by commas")
	cmd.Flags().StringSliceVar(&f.skip, "skip", nil, "skip these steps or checks: `names` separated by commas")
	a.secrets.add(cmd.Flags())
	cmd.Flags().StringSliceVar(
		&f.failOn, "fail-on", []string{onFailure},
		"`failure`; warning: exit 4 on warnings, too. With names of steps or checks, separated by commas, only their "+
			"warnings count",
	)
	cmd.Flags().BoolVar(&f.ignoreDrift, "ignore-drift", false, "don't compare existing objects with what carrick writes")
	return cmd
}

func (a *app) runCheck(ctx context.Context, path string, f checkFlags) error {
	if err := f.valid(); err != nil {
		return err
	}
	s, err := a.open(ctx, path, cluster.Options{Once: !f.watch && f.wait == 0})
	if err != nil {
		return err
	}
	defer s.Close()
	side, err := sideFlag(f.side, s.Guide())
	if err != nil {
		return err
	}
	for _, names := range [][]string{f.only, f.skip, f.failOn} {
		a.current(s.Guide(), names)
	}
	if err := known(s.Guide(), f.only, f.skip, f.failOnNames()); err != nil {
		return err
	}
	if err := s.PeerFileFits(ctx); err != nil {
		return err
	}
	if err := a.signers(ctx, s, false, false); err != nil {
		return err
	}
	cells := s.Cells(engine.Selection{Side: side, Only: f.only, Skip: f.skip})
	if f.ignoreDrift {
		cells = slices.DeleteFunc(cells, func(c steps.Cell) bool { return action.IsDrift(c.Check) })
	}
	if len(cells) == 0 {
		return exit.Usagef("no check is left after --side, --only, --skip and --ignore-drift")
	}
	if f.watch {
		return a.watch(ctx, s, cells)
	}
	b, looks, err := a.look(ctx, s, cells, f.wait)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report := s.NewReport(b, looks, cells, time.Now())
	p := a.printer()
	p.All, p.NotGreen = f.all, f.failed
	if perr := p.Report(a.out, report, f.output); perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	code := boardCode(statuses(b, cells), f.warned(b, cells))
	if n := toldOpen(b, cells); n > 0 && code != exit.Failed {
		fmt.Fprintf(
			a.err, "according to the facts file, %d checks on the other side do not pass yet; ask its admin for a newer file\n",
			n,
		)
		code = exit.Unknown
	}
	if code != 0 {
		return exit.Verdict(code)
	}
	return nil
}

// toldOpen counts the checks that the other side's facts file reports as failed, unknown or waiting.
func toldOpen(b *engine.Board, cells []steps.Cell) int {
	n := 0
	for _, c := range cells {
		switch told, _ := b.Verdict(c).Told(); told {
		case steps.Fail, steps.Unknown, steps.Waiting:
			n++
		}
	}
	return n
}

// valid returns a usage error for flags that contradict each other.
func (f checkFlags) valid() error {
	if err := format.Valid(f.output, format.ByCommand["check"]...); err != nil {
		return err
	}
	if f.wait < 0 {
		return exit.Usagef("--wait %s is negative", f.wait)
	}
	if (f.all || f.failed) && f.output != "table" {
		return exit.Usagef("--all and --failed are for tables: leave out -o")
	}
	if f.watch && f.output != "table" {
		return exit.Usagef("--watch prints lines, not a single document: leave out -o")
	}
	return nil
}

// Special values of --fail-on. All other values are names of steps or checks.
const (
	onFailure = "failure"
	onWarning = "warning"
)

func (f checkFlags) failOnNames() []string {
	return slices.DeleteFunc(
		slices.Clone(f.failOn), func(name string) bool { return name == onFailure || name == onWarning },
	)
}

func (f checkFlags) warned(b *engine.Board, cells []steps.Cell) bool {
	return slices.ContainsFunc(cells, func(c steps.Cell) bool {
		named := slices.ContainsFunc(
			f.failOn, func(name string) bool { return name == onWarning || name == c.Step || name == c.Check },
		)
		return named && b.Verdict(c).Status == steps.Warn
	})
}

// current replaces old names with their new names in place, and prints a note for each.
func (a *app) current(g *steps.Guide, names []string) {
	for i, name := range names {
		if now := g.Current(name); now != name {
			fmt.Fprintf(a.err, "%s is now %s; the old name still works\n", name, now)
			names[i] = now
		}
	}
}

// known returns an error for names that the guide does not have. A misspelled name must not select zero checks and exit
// with 0.
func known(g *steps.Guide, lists ...[]string) error {
	for _, list := range lists {
		for _, name := range list {
			c, _ := g.Check(name)
			if c == nil && g.Step(name) == nil {
				inSteps, checks := g.Names()
				return exit.Usagef(
					"guide %s has no step and no check %q%s; see carrick guides %s", g.Name, name,
					nearest.Hint(name, append(inSteps, checks...)), g.Name,
				)
			}
		}
	}
	return nil
}

func (a *app) look(
	ctx context.Context, s *engine.Session, cells []steps.Cell, wait time.Duration,
) (*engine.Board, map[steps.Cell]engine.Look, error) {
	if wait == 0 {
		b, looks := s.Look(ctx, cells)
		return b, looks, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, exit.ErrDeadline)
	defer cancel()
	var board *engine.Board
	var at map[steps.Cell]engine.Look
	err := s.Follow(ctx, cells, func(b *engine.Board, looks map[steps.Cell]engine.Look, _ steps.Cell) bool {
		board, at = b, looks
		return !b.CountOf(cells).Green() || toldOpen(b, cells) > 0
	})
	if board == nil {
		board, at = engine.NewBoard(s.Guide()), map[steps.Cell]engine.Look{}
	}
	if err != nil && errors.Is(context.Cause(ctx), exit.ErrDeadline) {
		return board, at, fmt.Errorf("%w: %s after %s", exit.ErrDeadline, board.CountOf(cells), wait)
	}
	return board, at, err
}

// watch prints verdicts as they arrive and whenever they change, until ctx is canceled.
func (a *app) watch(ctx context.Context, s *engine.Session, cells []steps.Cell) error {
	last := map[steps.Cell]steps.Result{}
	return s.Follow(ctx, cells, func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		for _, c := range cells { // a changed verdict can change the verdicts of dependent checks
			v := b.Verdict(c)
			if v.Status == steps.Pending || (last[c].Status == v.Status && last[c].Found == v.Found) {
				continue
			}
			last[c] = v
			fmt.Fprintf(a.out, "%s  %s\n", time.Now().Format(time.TimeOnly), a.printer().Line(s.Guide(), c, b.State(c), v))
		}
		return true
	})
}

// statuses counts the statuses of cells.
func statuses(b *engine.Board, cells []steps.Cell) map[steps.Status]int {
	n := map[steps.Status]int{}
	for _, c := range cells {
		n[b.Verdict(c).Status]++
	}
	return n
}

func boardCode(n map[steps.Status]int, warned bool) int {
	switch {
	case n[steps.Fail] > 0:
		return exit.Failed
	case n[steps.Unknown]+n[steps.Waiting]+n[steps.Pending] > 0:
		return exit.Unknown
	case warned:
		return exit.Warnings
	}
	return 0
}
