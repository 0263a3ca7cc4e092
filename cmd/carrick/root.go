package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// app is what all commands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	tty      io.Writer // what out leads to, for the screen
	name     string
	guides   []*steps.Guide
	assets   fs.FS // a folder for each guide

	local, remote accessFlags
	secrets       secrets
	keys          keyFlags
	color         string
	theme         string
	ascii         bool
	accessible    bool // lines in place of a screen
	log           *slog.Logger
	logFile       io.Writer
	audit         *engine.Audit
	unaudited     error // why changes can't be recorded
	attended      bool  // somebody reads what is said and can act on it
	handing       bool  // a file of facts that can't be used stops nobody from handing over one
	onScreen      bool  // the screen is up: nothing else may write to the terminal
}

const about = `carrick joins two clusters, step by step, and proves each step with checks
that stay live on both sides.

Everything that it will do is shown first, done by server-side apply, and can
be taken back. The clusters are the state: stop at any moment, start again, and
carrick stands where they stand.`

func (a *app) root() *cobra.Command {
	var guide, linkName string
	cmd := &cobra.Command{
		Use: "carrick [LINK]", Short: "Join two clusters", Long: about,
		Example: `  carrick                    a new link: pick a guide and two contexts
  carrick milan-rome.yaml    an existing link, where it stands
  carrick demo               try it on two control planes on this machine
  carrick check milan-rome.yaml -o json`,
		Args: a.oneLink, SilenceErrors: true, SilenceUsage: true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.name},
		PersistentPreRunE: func(*cobra.Command, []string) error { return errors.Join(a.validColor(), a.secrets.parse()) },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.wizard(cmd.Context(), args, guide, linkName)
		},
	}
	cmd.SetFlagErrorFunc(wrongFlag)
	cmd.Flags().StringVar(&guide, "guide", "", "`guide` of a new link (see carrick guides)")
	cmd.Flags().StringVar(&linkName, "name", "", "`name` of a new link")
	a.secrets.add(cmd.Flags())
	a.local.add(cmd.PersistentFlags(), "", "local side")
	a.remote.add(cmd.PersistentFlags(), remote, "remote side")
	a.keys.add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVar(&a.color, "color", "auto", "colours: auto, always or never")
	cmd.PersistentFlags().StringVar(&a.theme, "theme", "auto", "colours of the screen: "+strings.Join(ui.Themes, ", ")+"; auto fits the terminal's background")
	cmd.PersistentFlags().BoolVar(&a.ascii, "ascii", false, "no character beyond ASCII on the screen")
	cmd.PersistentFlags().BoolVar(&a.accessible, "accessible", false, "the wizard in lines of text: for screen readers and plain terminals (also: ACCESSIBLE=1)")
	cmd.AddCommand(a.demo(), a.adopt(), a.check(), a.diff(), a.apply(), a.undo(), a.export(), a.handover(), a.listGuides(), a.explain(), a.version(), a.vsphereExtension())
	a.addHelp(cmd)
	a.addCompletion(cmd)
	return cmd
}

// wrongFlag is what is said of a flag that can't be read.
func wrongFlag(c *cobra.Command, err error) error {
	more := ""
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "duration":
		more = "; write it like 90s or 5m"
	case errors.As(err, &unknown):
		var flags []string
		c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if near := cluster.Nearest(unknown.GetSpecifiedName(), flags); near != "" {
			more = " (did you mean --" + near + "?)"
		}
	}
	return usage("%w%s; see %s --help", err, more, c.CommandPath())
}

// oneLink takes at most one argument and says what it is when there are more.
func (a *app) oneLink(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && filepath.Ext(args[0]) == "" {
		_, err := os.Stat(args[0])
		if near := meant(args[0], names(cmd)); near != "" && errors.Is(err, fs.ErrNotExist) {
			return usage("%s is neither a command nor a link file%s; see %s --help", args[0], near, a.name)
		}
	}
	if len(args) > 1 {
		return usage("one link file at a time, not %d: %s", len(args), cmd.UseLine())
	}
	return nil
}

// needLink takes exactly one argument.
func (a *app) needLink(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("name one link file: %s\n(no link yet? run %s and it writes one)", cmd.UseLine(), a.name)
	}
	return nil
}

// open reads a link and what --secret names, and makes its session ready. It
// asks no cluster yet.
func (a *app) open(ctx context.Context, path string, o cluster.Options) (*engine.Session, error) {
	l, err := linkfile.Load(path, a.guides)
	if err != nil {
		return nil, err
	}
	g, err := steps.FindGuide(a.guides, l.Guide)
	if err != nil {
		return nil, usageError{err}
	}
	if err := a.readSecrets(ctx, g); err != nil {
		return nil, err
	}
	return a.session(l, o)
}

// session opens both sides of a link.
func (a *app) session(l *linkfile.Link, o cluster.Options) (*engine.Session, error) {
	g, err := steps.FindGuide(a.guides, l.Guide)
	if err != nil {
		return nil, usageError{err}
	}
	secrets, err := a.secrets.of(g)
	if err != nil {
		return nil, err
	}
	o.Log = a.logger()
	words := a.err // of login plugins, and warnings of API servers
	if a.onScreen {
		words = a.logFile
	}
	if err := a.keys.confirm(l); err != nil {
		return nil, err
	}
	keys, err := a.keys.read(a, l)
	if err != nil {
		return nil, err
	}
	ends := map[steps.Side]engine.End{}
	flags := map[steps.Side]*accessFlags{steps.Local: &a.local, steps.Remote: &a.remote}
	for _, side := range steps.Sides {
		access := flags[side].access()
		access.Stderr = words
		end, err := engine.OpenEnd(l, side, g, access, keys, o)
		if err != nil && a.handing && l.Side(side).Facts != "" {
			fmt.Fprintf(a.err, "without the other side's file, which can't be used: %s\n", cluster.Clean(err.Error()))
			end, err = engine.End{Absent: "the file of facts of the " + g.Sides[side].Name + " can't be used"}, nil
		}
		if err != nil {
			for _, e := range ends {
				e.Close()
			}
			return nil, usageError{err}
		}
		ends[side] = end
	}
	files, err := fs.Sub(a.assets, g.Name)
	if err != nil {
		return nil, err
	}
	audit, err := engine.OpenAudit()
	a.audit, a.unaudited = audit, err // nothing is changed then, but looking is free
	return engine.NewSession(engine.SessionOptions{
		Guide: g, Link: l, Ends: ends, Assets: files, Secrets: secrets, Attended: a.attended, Log: a.logger(), Audit: audit,
	}), nil
}

func (a *app) validColor() error {
	if !slices.Contains(ui.Themes, a.theme) {
		return usage("--theme %q is none of %s", a.theme, strings.Join(ui.Themes, ", "))
	}
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return usage("--color %q is none of auto, always, never", a.color)
}

// logged is the log of all runs: it starts anew when it has grown too large.
const logged = 5 << 20

// logger writes to the user's state folder; the screen is never written to.
func (a *app) logger() *slog.Logger {
	if a.log != nil {
		return a.log
	}
	a.log, a.logFile = slog.New(slog.DiscardHandler), io.Discard
	path, err := xdg.StateFile(filepath.Join("carrick", "carrick.log"))
	if err != nil {
		return a.log
	}
	how := os.O_WRONLY
	if info, err := os.Lstat(path); err == nil && info.Size() > logged {
		how |= os.O_TRUNC
	}
	f, err := engine.OpenLog(path, how)
	if err == nil {
		a.log, a.logFile = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug})), f
	}
	return a.log
}
