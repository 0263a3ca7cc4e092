package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"carrick/cluster/failure"
	"carrick/cluster/host"
	"carrick/steps"
)

// Command runs a command on a host once, unless Done reports that it has already taken effect. If a directory
// represents the machine, the command can't run. It then becomes a line of the directory's INSTALL.
type Command struct {
	Title string   // such as "starts the timer that renews the token"
	Run   []string // the command and its arguments; no shell runs it
	// Done reports whether the command has taken effect. If Done is nil, the command has taken effect once carrick has
	// run exactly this command line.
	Done    func(context.Context, steps.Env) (bool, error)
	UndoRun []string      // the command that undoes it; nil if there is none
	Stays   string        // why the command can't be undone; an undo shows it while Done returns true
	Within  time.Duration // timeout; 0 means one minute

	// may returns why the command must not run on a machine, or nil. If may is nil, the command can always run.
	may func(steps.Env) error
	by  func(context.Context, steps.Env, []string) error // implements the command in Go; if nil, the command itself runs
}

const commandWithin = time.Minute

// Plan shows the command line.
func (c Command) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	it, err := c.item(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	return steps.Change{Items: []steps.Item{it}}, nil
}

func (c Command) item(ctx context.Context, env steps.Env) (steps.Item, error) {
	line := commandLine(c.Run)
	it := steps.Item{Verb: steps.Run, What: line, Note: c.Title, Hash: steps.Fingerprint(line)}
	rec, recorded, err := readRecord(ctx, env)
	if err != nil {
		return it, err
	}
	same := recorded && commandLine(rec.Run) == line
	if env.Host.IsFolder() {
		same = same && listIsRight(ctx, env)
		it.Verb, it.What, it.Note = steps.Update, InstallList, "a directory cannot run commands, so carrick adds the "+
			"command to its INSTALL file"
		it.Diff = "+" + line + "\n"
		if same {
			return steps.Item{
				Verb: steps.Leave, What: line, Hash: it.Hash,
				Note: "cannot run in a directory; INSTALL runs the command on the machine, after the files are copied",
			}, nil
		}
	} else if done, err := c.done(ctx, env, same && rec.Ran); err != nil {
		return it, err
	} else if done {
		return steps.Item{Verb: steps.Leave, What: line, Hash: it.Hash, Note: "is already done"}, nil
	}
	err = cmp.Or(env.Host.MayWrite(recordPath(env)), mayList(ctx, env))
	if err == nil && c.may != nil && !env.Host.IsFolder() {
		err = c.may(env)
	}
	if err != nil {
		it.Refused, it.Note = true, whyRefused(env, err)
	}
	return it, nil
}

func (c Command) done(ctx context.Context, env steps.Env, ran bool) (bool, error) {
	if c.Done == nil {
		return ran, nil
	}
	return c.Done(ctx, env)
}

// Do records the command, runs it, and then verifies that Done returns true. Because of the record, an undo can revert
// an interrupted run. The next run repeats an interrupted command.
func (c Command) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	it, err := c.item(ctx, env)
	switch {
	case err != nil || it.Verb == steps.Leave:
		return err
	case it.Refused:
		return fmt.Errorf("%s: %s", it.What, it.Note)
	}
	folder := env.Host.IsFolder()
	rec := record{Run: c.Run, Title: c.Title, Order: orderOf(env)}
	if folder || c.UndoRun != nil {
		if err := writeRecord(ctx, env, rec); err != nil {
			return err
		}
	}
	if !folder {
		if err := c.runNow(ctx, env, rec); err != nil {
			return err
		}
	}
	say.Did(it.Verb, it.What, it.Hash)
	return nil
}

// runNow runs the command. It then calls Done to verify the effect. If Done is nil, it records that the command ran.
func (c Command) runNow(ctx context.Context, env steps.Env, rec record) error {
	if err := c.run(ctx, env, c.Run); err != nil {
		return err
	}
	if c.Done == nil {
		rec.Ran = true
		return writeRecord(ctx, env, rec)
	}
	done, err := c.Done(ctx, env)
	if err == nil && !done {
		err = fmt.Errorf("%s succeeded, but had no effect: %s", commandLine(c.Run), c.Title)
	}
	return err
}

func (c Command) run(ctx context.Context, env steps.Env, line []string) error {
	if c.by != nil {
		return c.by(ctx, env, line)
	}
	within := c.Within
	if within == 0 {
		within = commandWithin
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("timed out after %s", within))
	defer cancel()
	_, _, err := env.Host.Run(ctx, line[0], line[1:]...)
	return err
}

// PlanUndo shows the command line of UndoRun.
func (c Command) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	it, found, err := c.undoItem(ctx, env)
	if err == nil && !found {
		it, found, err = c.stays(ctx, env)
	}
	if err != nil || !found {
		return steps.Change{}, err
	}
	return steps.Change{Items: []steps.Item{it}}, nil
}

// stays returns an item that explains why the command can't be undone. If the command has not taken effect, or if that
// is unknown, the bool is false.
func (c Command) stays(ctx context.Context, env steps.Env) (steps.Item, bool, error) {
	if c.Stays == "" || env.Host == nil || env.Host.IsFolder() {
		return steps.Item{}, false, nil
	}
	done, err := c.done(ctx, env, false)
	// An unknown state is not reported.
	return steps.Item{Verb: steps.Leave, What: commandLine(c.Run), Note: c.Stays}, done && err == nil, nil
}

func (c Command) undoItem(ctx context.Context, env steps.Env) (steps.Item, bool, error) {
	rec, found, err := readRecord(ctx, env)
	if err != nil || !found {
		return steps.Item{}, false, err
	}
	it := steps.Item{Verb: steps.Run, What: commandLine(c.UndoRun), Hash: steps.Fingerprint(rec, c.UndoRun)}
	switch {
	case env.Host.IsFolder():
		it.Verb, it.What, it.Diff = steps.Update, InstallList, "-"+commandLine(rec.Run)+"\n"
		if c.UndoRun != nil {
			it.Note = "if it was run on the machine, undo it there: " + commandLine(c.UndoRun)
		}
	case c.UndoRun == nil:
		it.Verb, it.What, it.Note = steps.Delete, recordPath(env), "the effect of "+commandLine(rec.Run)+" is kept; "+leftover
	default:
		done, err := c.done(ctx, env, true)
		switch {
		case errors.As(err, new(*host.FolderError)):
			it.Verb, it.What = steps.Delete, recordPath(env)
			it.Note = fmt.Sprintf("the effect of %s is kept (%s); %s", commandLine(rec.Run), failure.Explain(err), leftover)
		case err != nil:
			return it, false, err
		case !done:
			it.Verb, it.What, it.Note = steps.Delete, recordPath(env), "the effect of "+commandLine(rec.Run)+
				" is already undone; "+
				leftover
		}
	}
	return it, true, nil
}

// Undo runs UndoRun if carrick has run the command and the command is still in effect.
func (c Command) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	it, found, err := c.undoItem(ctx, env)
	if err != nil || !found {
		return err
	}
	if err := env.Host.MayWrite(recordPath(env)); err != nil {
		if errors.Is(err, host.ErrNotRoot) {
			return fmt.Errorf("requires root: sudo carrick undo %s", env.LinkFile())
		}
		return err
	}
	if it.Verb == steps.Run {
		if err := c.run(ctx, env, c.UndoRun); err != nil {
			return err
		}
	}
	if err := forget(ctx, env); err != nil {
		return err
	}
	if it.Note != "" {
		say.Say("%s", it.Note)
	}
	say.Did(it.Verb, it.What, it.Hash)
	return nil
}

// Export returns the command for a user to run manually.
func (c Command) Export(context.Context, steps.Env) ([]Exported, error) {
	return []Exported{{Hand: commandLine(c.Run)}}, nil
}
