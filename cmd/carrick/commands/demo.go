package commands

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/demo"
	"carrick/cmd/carrick/exit"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

const demoName = "demo"

func (a *app) demo() *cobra.Command {
	var fault string
	var list bool
	var walk demo.Autoplay
	cmd := &cobra.Command{
		Use: "demo [GUIDE]", Short: "Try the wizard on two control planes on this machine",
		Long: "Starts two real Kubernetes control planes on this machine, opens the wizard on them, and\nstops them when " +
			"you quit. Your kubeconfig, clusters and files are not touched.\nWith --fault the demo starts with a fault for " +
			"you to find and fix.\nWith --autoplay the demo plays the guide automatically, with captions; space pauses it.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("one guide at a time: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			guide := a.Guides[0].Name
			if len(args) == 1 {
				guide = args[0]
			}
			if _, err := steps.FindGuide(a.Guides, guide); err != nil {
				return exit.AsUsage(err)
			}
			if err := walk.Valid(cmd.Flags()); err != nil {
				return err
			}
			switch {
			case list && cmd.Flags().Changed("fault"):
				return exit.Usagef("--list and --fault cannot be used together")
			case list:
				return a.listFaults(cmd.Context(), guide)
			case cmd.Flags().Changed("fault") && !demo.FaultName.MatchString(fault):
				return exit.Usagef(
					"--fault %q is not the name of a fault; %s demo %s --list lists the faults", fault, a.name, guide,
				)
			}
			return a.runDemo(cmd.Context(), guide, fault, walk)
		},
	}
	cmd.Flags().StringVar(&fault, "fault", "", "start with this fault (see --list)")
	cmd.Flags().BoolVar(&list, "list", false, "list the faults of the guide and exit")
	walk.Add(cmd.Flags())
	return cmd
}

func (a *app) runDemo(ctx context.Context, guide, fault string, walk demo.Autoplay) error {
	if known := demo.KnownFaults(ctx, guide); fault != "" && len(known) > 0 {
		if _, err := demo.FaultOf(known, guide, fault); err != nil {
			return err
		}
	}
	if err := a.needStage(walk); err != nil {
		return err
	}
	box, err := demo.Start(ctx, a.err)
	if err != nil {
		return err
	}
	defer box.Stop()
	both := box.Kubeconfigs["local"] + string(os.PathListSeparator) + box.Kubeconfigs["remote"]
	if err := os.Setenv("KUBECONFIG", both); err != nil { // affects only carrick and its kubectl
		return err
	}
	env, err := box.Env(both)
	if err != nil {
		return err
	}
	w, link, err := a.prepareDemo(ctx, box, guide, fault, walk)
	if err != nil {
		return err
	}
	if w != nil {
		w.Shell = box.Shell
		w.Expendable = []string{"RoleBinding", "ClusterRoleBinding"}
	}
	o := a.demoScreen(box, guide, env)
	o.Walk, o.Open, o.Link = w, answering(o.Open, box.Given), link
	switch {
	case link != nil:
		o.Notes = append([]string{"This demo starts with a finished set-up and a fault: " + fault + "."}, o.Notes...)
	case fault != "":
		adopted, err := a.adoptDemo(ctx, &o, box)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the wizard reports connection errors
			adopted = " The existing set-up could not be adopted: " + clean.Text(err.Error())
		}
		o.Notes = append([]string{"This demo starts with a fault: " + fault + "." + adopted}, o.Notes...)
	}
	return a.walk(ctx, o)
}

// answering returns a function that adds the answers in with to a link before it calls open. Existing answers have
// precedence.
func answering(
	open func(*linkfile.Link) (*engine.Session, error), with map[string]string,
) func(*linkfile.Link) (*engine.Session, error) {
	return func(l *linkfile.Link) (*engine.Session, error) {
		for key, v := range with {
			if _, given := l.Answers[key]; !given {
				l.Answers[key] = v
			}
		}
		return open(l)
	}
}

// needStage returns an error if the terminal cannot show the demo.
func (a *app) needStage(walk demo.Autoplay) error {
	switch {
	case !walk.On:
		return a.needInput("LINK")
	case a.inLines():
		return exit.Usagef(
			"--autoplay requires the screen: leave out --autoplay, or run it on a terminal without --accessible",
		)
	}
	return ui.NeedTerminal(a.in, a.tty)
}

// prepareDemo creates the objects that the guide expects and injects the fault, if fault is not "". It returns the
// autoplay configuration, or nil without --autoplay. If the fault breaks a finished set-up, prepareDemo applies the guide
// first and also returns the link.
func (a *app) prepareDemo(
	ctx context.Context, box *demo.Sandbox, guide, fault string, walk demo.Autoplay,
) (*ui.Walk, *linkfile.Link, error) {
	var broken demo.Fault
	var err error
	if fault != "" {
		if broken, err = box.Fault(guide, fault); err != nil {
			return nil, nil, err
		}
	}
	fmt.Fprintf(a.err, "installing the prerequisites of the guide %s …\n", guide)
	seeded, err := box.Tell("seed " + guide)
	if err != nil && !demo.IsUnknownCommand(err) {
		return nil, nil, fmt.Errorf("prepare the demo: %w", err)
	} // guides without expected objects have no scenario
	box.Hosts, box.Here, box.Given = seeded.Hosts, seeded.Here, seeded.Given
	w := walk.Plan(seeded.Answers)
	if fault == "" {
		return w, nil, nil
	}
	link := a.demoLink(box, guide)
	var made *linkfile.Link
	if broken.Late {
		if err := a.setUpDemo(ctx, link, seeded.Given, seeded.Answers); err != nil {
			return nil, nil, fmt.Errorf("set up the link before the fault: %w", err)
		}
		made = link
	}
	seed := func() error {
		fmt.Fprintf(a.err, "adding the fault %s …\n", fault)
		if _, err := box.Tell("seed " + guide + " " + fault); err != nil {
			return fmt.Errorf("add the fault %s: %w", fault, err)
		}
		return nil
	}
	if w == nil {
		return nil, made, seed()
	}
	w.Fault = plain.OneLine(clean.Text(broken.Title))
	w.Broken, err = a.whatBreaks(ctx, link, seed)
	return w, made, err
}

func (a *app) demoScreen(box *demo.Sandbox, guide, env string) ui.Options {
	o := a.screen()
	o.Passing = true
	o.Guide = guide
	o.Name = demoName
	o.Folder = box.Dir
	o.Banner = "demo: two control planes on this machine"
	o.Sides, o.Hosts = map[steps.Side]string{}, map[steps.Side]linkfile.HostSpec{}
	var context, folder string
	for _, side := range steps.Sides {
		end := box.End(side)
		if end.Host != nil {
			o.Hosts[side], folder = *end.Host, "A directory represents the machine: "+end.Host.Root
			continue
		}
		o.Sides[side], context = end.Context, end.Context
	}
	o.Notes = []string{
		"Your own clusters are not touched. To cause faults while carrick watches, run in another terminal:",
		". " + env,
		"kubectl --context " + context + " get all -A",
	}
	if folder != "" {
		o.Notes = append(o.Notes, folder)
	}
	return o
}
