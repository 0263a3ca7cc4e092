// Package completion implements shell completion. It never logs in, draws a screen or writes a log.
package completion

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/cluster/clean"
	"carrick/cluster/kubeconfig"
	"carrick/cmd/carrick/format"
	"carrick/cmd/carrick/help"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// As is the name of the program that kubectl runs to complete arguments of the plugin carrick.
const As = "kubectl_complete-carrick"

type completer = cobra.CompletionFunc

const noFile = cobra.ShellCompDirectiveNoFileComp

// Options configure the completion.
type Options struct {
	Guides        []*steps.Guide
	Local, Remote *string // values of --kubeconfig and --remote-kubeconfig
}

type completion struct{ Options }

// Add registers completions for the arguments and flags of all commands.
func Add(root *cobra.Command, o Options) {
	a := &completion{o}
	root.ValidArgsFunction = a.completeRoot
	args := map[string]completer{
		"check": a.completeLink, "diff": a.completeLink, "apply": a.completeLink, "undo": a.completeLink,
		"handover": a.completeLink,
		"export":   a.completeExport, "demo": a.completeGuide, "guides": a.completeGuide, "adopt": a.completeGuide,
		"explain": a.completeExplain, "help": completeHelp, "version": cobra.NoFileCompletions,
	}
	flags := a.flagCompleters()
	for _, c := range append(root.Commands(), root) {
		if f := args[c.Name()]; f != nil && c != root {
			c.ValidArgsFunction = f
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if complete := flags[f.Name]; complete != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, complete) // fails if the command has its own completion for the flag
			}
		})
	}
}

// flagCompleters returns the completions by flag name. A flag means the same in every command.
func (a *completion) flagCompleters() map[string]completer {
	fixed := func(values ...string) completer { return cobra.FixedCompletions(values, noFile) }
	return map[string]completer{
		"guide": a.completeGuide, "fault": a.completeFault, "secret": a.completeSecret,
		"step": a.completeNames(stepNames), "only": a.completeNames(allNames), "skip": a.completeNames(allNames),
		"side": a.completeSide, "context": a.completeContext(a.Local),
		help.RemotePrefix + "context": a.completeContext(a.Remote),
		"output":                      a.completeOutput, "color": fixed("auto", "always", "never"),
		"fail-on": fixed("failure\texit 3 on failures only", "warning\texit 4 on warnings, too"),
		"pace":    fixed("slow", "normal", "fast"),
		"to":      fixed(), "signer": fixed(), "for": fixed("1h", "24h", "168h"),
		"wait": fixed("1m", "5m", "15m"), "name": fixed(), "as": fixed(), "as-group": fixed(),
		help.RemotePrefix + "as": fixed(), help.RemotePrefix + "as-group": fixed(), "request-timeout": fixed("5s", "30s"),
		help.RemotePrefix + "request-timeout": fixed("5s", "30s"),
	}
}

func (a *completion) completeOutput(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	if of := format.ByCommand[cmd.Name()]; of != nil {
		return of, noFile
	}
	return nil, cobra.ShellCompDirectiveDefault // here -o takes a file name
}

func (a *completion) completeGuide(
	cmd *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	if cmd.HasParent() && len(args) > 0 {
		return nil, noFile
	}
	var out []string
	for _, g := range a.Guides {
		out = append(out, g.Name+"\t"+g.Title)
	}
	return begins(out, toComplete), noFile
}

// guidesOf returns the guide of the link file in args. It returns all guides if args contains no valid link file.
func (a *completion) guidesOf(args []string) []*steps.Guide {
	if len(args) == 0 {
		return a.Guides
	}
	l, err := linkfile.Load(args[0], a.Guides)
	if err != nil {
		return a.Guides
	}
	return slices.DeleteFunc(slices.Clone(a.Guides), func(g *steps.Guide) bool { return g.Name != l.Guide })
}

// completeNames completes the last name in a comma-separated list. It does not offer names that are already in the
// list.
func (a *completion) completeNames(of func(*steps.Guide) []string) completer {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		before := toComplete[:strings.LastIndex(toComplete, ",")+1]
		given := strings.Split(before, ",")
		var out []string
		for _, g := range a.guidesOf(args) {
			for _, name := range of(g) {
				if bare, _, _ := strings.Cut(name, "\t"); !slices.Contains(given, bare) && !slices.Contains(out, before+name) {
					out = append(out, before+name)
				}
			}
		}
		return begins(out, toComplete), noFile | cobra.ShellCompDirectiveNoSpace
	}
}

func stepNames(g *steps.Guide) []string {
	var out []string
	for i := range g.Steps {
		out = append(out, g.Steps[i].Name+"\t"+g.Steps[i].Title)
	}
	return out
}

func allNames(g *steps.Guide) []string {
	out := stepNames(g)
	for i := range g.Steps {
		for _, c := range g.Steps[i].Checks {
			out = append(out, c.Name+"\t"+c.Title)
		}
	}
	return out
}

func (a *completion) completeSide(
	_ *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, side := range steps.Sides {
		out = append(out, string(side))
		for _, g := range a.guidesOf(args) {
			if role := g.Sides[side].Name; !slices.Contains(out, role) {
				out = append(out, role+"\tthe "+string(side)+" side of "+g.Name)
			}
		}
	}
	return begins(unique(out), toComplete), noFile
}

// completeContext offers the contexts in a kubeconfig. config is a pointer because the flags are not parsed yet.
func (a *completion) completeContext(config *string) completer {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		contexts, err := kubeconfig.Contexts(*config)
		if err != nil {
			return nil, noFile
		}
		var out []string
		for _, c := range contexts {
			out = append(out, clean.Text(c.Name+"\t"+c.Server))
		}
		return begins(out, toComplete), noFile
	}
}

// completeExplain offers guides first. It then offers steps and checks, each prefixed with its guide.
func (a *completion) completeExplain(
	_ *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFile
	}
	var out []string
	for _, g := range a.Guides {
		out = append(out, g.Name+"\t"+g.Title)
		for _, name := range allNames(g) {
			out = append(out, g.Name+"/"+name)
			if !strings.Contains(toComplete, "/") {
				out = append(out, name)
			}
		}
	}
	return begins(unique(out), toComplete), noFile
}

func completeHelp(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	at := cmd.Root()
	for _, name := range args {
		if at = help.Child(at, name); at == nil {
			return nil, noFile
		}
	}
	all := at.Commands()
	if len(args) == 0 {
		all = append(all[:len(all):len(all)], cmd.Commands()...)
	}
	var out []string
	for _, c := range all {
		if !c.Hidden {
			out = append(out, c.Name()+"\t"+c.Short)
		}
	}
	return begins(out, toComplete), noFile
}

func begins(list []string, prefix string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

// unique removes entries whose text before the tab occurred before.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		word, _, _ := strings.Cut(s, "\t")
		again := seen[word]
		seen[word] = true
		return again
	})
}
