package commands

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
	"carrick/ui/model"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func isTerminalStream(end any) bool {
	f, ok := end.(*os.File)
	return ok && isTerminal(f)
}

func (a *app) wizard(ctx context.Context, args []string, guide, name string) error {
	o := a.screen()
	if len(args) == 1 {
		l, err := a.load(args[0])
		if err != nil {
			return a.hint(args[0], err)
		}
		o.Link = l
	}
	if guide != "" {
		if _, err := steps.FindGuide(a.Guides, guide); err != nil {
			return exit.AsUsage(err)
		}
		o.Guide = guide
	}
	if name != "" {
		if err := linkfile.CheckName(name); err != nil {
			return exit.AsUsage(err)
		}
		o.Name = name
	}
	if o.Link != nil {
		if err := a.keys.ask(a, o.Link); err != nil {
			return err
		}
	}
	if err := a.wizardSecrets(ctx, o); err != nil {
		return err
	}
	return a.walk(ctx, o)
}

// wizardSecrets reads the sources in --secret before the screen starts. If the user has not chosen a guide yet, it
// accepts the secrets of all guides.
func (a *app) wizardSecrets(ctx context.Context, o ui.Options) error {
	if a.secrets.stdin {
		return exit.Usagef("--secret KEY=- reads standard input, which the wizard requires for key presses: pass the " +
			"secret as KEY=@FILE, or type it in the wizard")
	}
	name, path := o.Guide, "LINK"
	if o.Link != nil {
		name, path = o.Link.Guide, o.Link.Path
	}
	if err := a.needInput(path); err != nil {
		return err
	}
	guides := a.Guides
	if g, err := steps.FindGuide(a.Guides, name); err == nil {
		guides = []*steps.Guide{g}
	}
	return a.readSecrets(ctx, guides...)
}

// hint returns a better error if arg is the name of a command or a guide.
func (a *app) hint(arg string, err error) error {
	if _, gerr := steps.FindGuide(a.Guides, arg); gerr == nil {
		return exit.Usagef("%s is a guide, not a link file: %s --guide %s", arg, a.name, arg)
	}
	if _, serr := os.Stat(arg); errors.Is(serr, os.ErrNotExist) && filepath.Ext(arg) == "" {
		return exit.Usagef("%s is neither a command nor a link file; see %s --help", arg, a.name)
	}
	return err
}

func (a *app) screen() ui.Options {
	log := a.logger()
	a.onScreen, a.attended = true, true
	return ui.Options{Options: model.Options{
		Guides: a.Guides,
		Sides:  map[steps.Side]string{steps.Local: a.local.context, steps.Remote: a.remote.context},
		Candidates: func() ([]engine.Candidate, error) {
			return engine.Candidates(a.local.kubeconfig)
		},
		Preflight: func(ctx context.Context, name string) (engine.Preflight, error) {
			return engine.RunPreflight(ctx, kubeconfig.Access{Kubeconfig: a.local.kubeconfig, Context: name, Stderr: a.logFile})
		},
		Open:   a.openOnScreen,
		Unlock: a.keys.unlock,
		ASCII:  a.ascii,
		In:     a.in, Out: a.tty, Log: log,
	}, Version: a.Release, Color: a.color, Theme: a.theme, Err: a.err}
}

// openOnScreen opens a session and ensures that changes can be recorded.
func (a *app) openOnScreen(l *linkfile.Link) (*engine.Session, error) {
	s, err := a.session(l, cluster.Options{})
	if err != nil {
		return nil, err
	}
	err = a.recordable()
	if err == nil {
		err = a.keepSigner(s)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
