// Package commands implements the subcommands of carrick. Each subcommand has its own file: carrick check is in
// check.go.
package commands

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/cluster/nearest"
	"carrick/cmd/carrick/completion"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/format"
	"carrick/cmd/carrick/help"
	"carrick/steps/engine"
	"carrick/ui"
)

type app struct {
	in       io.Reader
	out, err io.Writer
	tty      io.Writer // out before it is wrapped; the screen requires an *os.File
	name     string
	Program

	local, remote accessFlags
	secrets       secrets
	keys          keyFlags
	color         string
	theme         string
	ascii         bool
	accessible    bool // line mode instead of the full screen
	log           *slog.Logger
	logFile       io.Writer
	audit         *engine.Audit
	unaudited     error // why changes cannot be recorded in the audit log
	attended      bool  // a user reads the output and can respond
	handing       bool  // an invalid facts file is not an error, because it is about to be replaced
	onScreen      bool  // the screen is active: only the screen writes to the terminal
}

const about = `carrick joins two clusters, step by step, and verifies each step with live checks
on both sides.

carrick shows each change before it makes the change, uses server-side apply,
and can undo everything. It reads its state from the clusters: you can stop at
any time and continue later.`

func (a *app) root() *cobra.Command {
	var guide, linkName string
	cmd := &cobra.Command{
		Use: "carrick [LINK]", Short: "Join two clusters", Long: about,
		Example: `  carrick                    a new link: pick a guide and two contexts
  carrick milan-rome.yaml    continue with an existing link
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
	a.remote.add(cmd.PersistentFlags(), help.RemotePrefix, "remote side")
	a.keys.add(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVar(&a.color, "color", "auto", "colours: auto, always or never")
	cmd.PersistentFlags().StringVar(
		&a.theme, "theme", "auto",
		"colours of the screen: "+strings.Join(ui.Themes, ", ")+"; auto follows the terminal's background",
	)
	cmd.PersistentFlags().BoolVar(&a.ascii, "ascii", false, "only ASCII characters on the screen")
	cmd.PersistentFlags().BoolVar(
		&a.accessible, "accessible", false,
		"the wizard as lines of text, for screen readers and plain terminals (also: ACCESSIBLE=1)",
	)
	cmd.AddCommand(
		a.demo(), a.adopt(), a.check(), a.diff(), a.apply(), a.undo(), a.export(), a.handover(), a.listGuides(), a.explain(),
		a.version(), a.vsphereExtension(),
	)
	help.Add(cmd, help.Options{Name: a.name, Guides: a.Guides, Readme: a.Readme})
	completion.Add(cmd, completion.Options{Guides: a.Guides, Local: &a.local.kubeconfig, Remote: &a.remote.kubeconfig})
	return cmd
}

// wrongFlag adds a hint to the error from flag parsing.
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
		if near := nearest.Name(unknown.GetSpecifiedName(), flags); near != "" {
			more = " (did you mean --" + near + "?)"
		}
	}
	return exit.Usagef("%w%s; see %s --help", err, more, c.CommandPath())
}

func (a *app) oneLink(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && filepath.Ext(args[0]) == "" {
		_, err := os.Stat(args[0])
		if near := nearest.Hint(args[0], help.Names(cmd)); near != "" && errors.Is(err, fs.ErrNotExist) {
			return exit.Usagef("%s is neither a command nor a link file%s; see %s --help", args[0], near, a.name)
		}
	}
	if len(args) > 1 {
		return exit.Usagef("one link file at a time, not %d: %s", len(args), cmd.UseLine())
	}
	return nil
}

func (a *app) needLink(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usagef("name one link file: %s\n(no link file yet? %s creates one)", cmd.UseLine(), a.name)
	}
	return nil
}

func (a *app) validColor() error {
	if !slices.Contains(ui.Themes, a.theme) {
		return exit.Usagef("--theme %q is not one of %s", a.theme, strings.Join(ui.Themes, ", "))
	}
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return exit.Usagef("--color %q is not one of auto, always, never", a.color)
}

func (a *app) printer() format.Printer { return format.Printer{Guides: a.Guides, ASCII: a.ascii} }
