// Package help implements carrick help for commands, flags and topics. The topics come from READMEs.
package help

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carrick/cluster/nearest"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
)

// Command groups in carrick --help.
const (
	groupSetUp  = "set-up"
	groupLook   = "look"
	groupHandOn = "hand-on"
	groupHelp   = "help"
	groupGuides = "guides"
	groupTopics = "topics"
)

var guideGroup = &cobra.Group{ID: groupGuides, Title: "Guides"}

var groups = []*cobra.Group{
	{ID: groupSetUp, Title: "Set up"},
	{ID: groupLook, Title: "Look"},
	{ID: groupHandOn, Title: "Hand over"},
	{ID: groupHelp, Title: "Help"},
	guideGroup,
	{ID: groupTopics, Title: "Topics"},
}

// helped contains the group and the example of a command. example applies only if the command has no example of its
// own.
type helped struct {
	group   string
	near    bool // the command does not access the clusters
	example string
}

var helps = map[string]helped{
	"demo": {groupSetUp, true, `  carrick demo                            the first guide
  carrick demo liqo                       another guide
  carrick demo liqo --list                list the faults to start with
  carrick demo --fault operator-version   find the fault and fix it`},
	"apply": {groupSetUp, false, `  carrick apply milan-rome.yaml                   show the plan, ask, apply
  carrick apply milan-rome.yaml --dry-run -o yaml
  carrick apply milan-rome.yaml --yes --step identity,kubeconfig
  carrick apply milan-rome.yaml --yes --secret renku.token=@token`},
	"undo": {groupSetUp, false, `  carrick undo milan-rome.yaml --dry-run          show the plan
  carrick undo milan-rome.yaml --yes
  carrick undo milan-rome.yaml --step session     only what that step created
  carrick undo milan-rome.yaml --side remote`},
	"check": {groupLook, false, `  carrick check milan-rome.yaml
  carrick check milan-rome.yaml --only identity,token-filled
  carrick check milan-rome.yaml --watch           keep running, print changes
  carrick check milan-rome.yaml --wait 5m -o json
  carrick check milan-rome.yaml -o junit --fail-on warning`},
	"diff": {groupLook, false, `  carrick diff milan-rome.yaml
  carrick diff milan-rome.yaml --side remote --step identity
  carrick diff milan-rome.yaml -o json | jq .totals`},
	"explain": {groupLook, true, `  carrick explain                      all checks of all guides
  carrick explain renku                those of one guide
  carrick explain renku/identity       those of one step
  carrick explain renku/role-binding   one check
  carrick explain liqo -o json`},
	"guides": {groupLook, true, `  carrick guides
  carrick guides renku
  carrick guides renku -o json | jq -r '.steps[].questions[]?.key'`},
	"export": {groupHandOn, false, `  carrick export milan-rome.yaml gitops
  carrick export milan-rome.yaml gitops --force`},
	"version": {groupHelp, true, `  carrick version
  carrick version -o json`},
	"help": {groupHelp, true, `  carrick help check
  carrick help exit-codes
  carrick help renku
  carrick help link-schema > link.schema.json`},
	"completion": {groupHelp, true, `  source <(carrick completion bash)
  carrick completion zsh > "${fpath[1]}/_carrick"
  carrick completion fish | source`},
}

// Options configure the help.
type Options struct {
	Name   string // carrick or kubectl carrick
	Guides []*steps.Guide
	Readme string // README of the command line
}

// Add sets the group, the example and the help function of every command.
func Add(root *cobra.Command, o Options) {
	a := &helper{o}
	root.Example = a.named(root.Example)
	a.add(root)
}

type helper struct{ Options }

func (a *helper) add(root *cobra.Command) {
	root.AddGroup(groups...)
	root.SetHelpCommand(a.help())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		h, ok := helps[c.Name()]
		if !ok {
			h.group = groupSetUp
		}
		if c.GroupID == "" {
			c.GroupID = h.group
		}
		if c.Example == "" {
			c.Example = h.example
		}
		c.Example = a.named(c.Example)
	}
	root.AddCommand(a.topicCommands()...)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.printHelp(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error {
		a.printHelp(c.OutOrStderr(), c)
		return nil
	})
}

// named replaces carrick with the program's name in example commands.
func (a *helper) named(example string) string {
	return strings.ReplaceAll("\n"+example, "\n  carrick ", "\n  "+a.Name+" ")[1:]
}

// help returns the command carrick help. Unlike cobra's default, it rejects unknown topics.
func (a *helper) help() *cobra.Command {
	cmd := &cobra.Command{
		Use: "help [COMMAND|GUIDE|TOPIC]", Short: "Help on a command, a guide or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, name := range args {
				next := Child(at, name)
				if next == nil {
					return exit.Usagef("help topic %q does not exist%s; %s help lists commands, guides and topics",
						strings.Join(args, " "), nearest.Hint(name, append(Names(at), Names(cmd)...)), a.Name)
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
	cmd.AddGroup(guideGroup)
	cmd.AddCommand(a.guideCommands()...)
	return cmd
}

// Child returns the visible subcommand or topic with the given name, or nil.
func Child(of *cobra.Command, name string) *cobra.Command {
	for _, c := range of.Commands() {
		if c.Name() == name && !c.Hidden {
			return c
		}
	}
	return nil
}

// Names returns the names of all visible subcommands and topics.
func Names(of *cobra.Command) []string {
	var out []string
	for _, c := range of.Commands() {
		if !c.Hidden {
			out = append(out, c.Name())
		}
	}
	return out
}

func isTopic(c *cobra.Command) int {
	if c.IsAdditionalHelpTopicCommand() {
		return 1
	}
	return 0
}

func (a *helper) printHelp(w io.Writer, c *cobra.Command) {
	if c.IsAdditionalHelpTopicCommand() {
		a.printTopic(w, c)
		return
	}
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", plain.Wrapped(text))
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", c.CommandPath())
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	printCommands(w, c)
	a.printFlags(w, c)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nMore on a command: %s COMMAND --help\n", c.CommandPath())
	}
}

func printCommands(w io.Writer, c *cobra.Command) {
	wide := 0
	subs := c.Commands()
	for _, sub := range subs {
		if !sub.Hidden {
			wide = max(wide, plain.Width(sub.Name())+plain.Width("help ")*isTopic(sub))
		}
	}
	if help := Child(c, "help"); help != nil {
		subs = append(subs, help.Commands()...) // help on guides
	}
	for _, g := range append(c.Groups(), &cobra.Group{Title: "Commands"}) {
		var rows, topics []plain.Row
		for _, sub := range subs {
			switch {
			case sub.Hidden || sub.GroupID != g.ID:
			case sub.IsAdditionalHelpTopicCommand():
				topics = append(topics, plain.Row{Name: "help " + sub.Name(), Means: sub.Short})
			default:
				rows = append(rows, plain.Row{Name: sub.Name(), Means: sub.Short})
			}
		}
		if rows = append(rows, topics...); len(rows) > 0 {
			fmt.Fprintf(w, "\n%s:\n%s", g.Title, plain.Aligned(rows, wide))
		}
	}
}

// printFlags prints the command's own flags, and where to find those of all commands.
func (a *helper) printFlags(w io.Writer, c *cobra.Command) {
	own := newFlags()
	root := c.Root().PersistentFlags()
	c.InheritedFlags() // as a side effect, this adds the global flags to Flags
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if root.Lookup(f.Name) != f {
			own.AddFlag(f)
		}
	})
	printSection(w, "Flags", own)
	switch near := helps[c.Name()].near || c.HasParent() && c.Parent() != c.Root(); {
	case c.Hidden: // hidden commands reject the global flags: see onlyOwnFlags
	case near:
		fmt.Fprintf(w, "\nThe flags of all commands, such as --color: %s help %s\n", a.Name, flagsTopic)
	default:
		fmt.Fprintf(w, "\nThe flags of all commands, such as --context and --color: %s help %s\n", a.Name, flagsTopic)
	}
}

// printGlobalFlags prints the flags of all commands. It omits the --remote-* flags, because they correspond to the
// local ones.
func printGlobalFlags(w io.Writer, root *cobra.Command) {
	sides, all := newFlags(), newFlags()
	list := root.PersistentFlags()
	list.VisitAll(func(f *pflag.Flag) {
		switch {
		case list.Lookup(RemotePrefix+f.Name) != nil:
			local := *f
			local.Usage = strings.TrimPrefix(f.Usage, "local side: ")
			sides.AddFlag(&local)
		case !strings.HasPrefix(f.Name, RemotePrefix):
			all.AddFlag(f)
		}
	})
	printSection(w, "kubectl's flags for the local side (for the remote side: --"+RemotePrefix+"NAME)", sides)
	printSection(w, "Flags of all commands", all)
}

func newFlags() *pflag.FlagSet { return pflag.NewFlagSet("", pflag.ContinueOnError) }

func printSection(w io.Writer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s:\n%s", title, flags.FlagUsagesWrapped(plain.Columns))
	}
}

// RemotePrefix is the prefix of the flags for the remote side.
const RemotePrefix = "remote-"
