package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui"
)

// sandboxName is the program that runs the two control planes. It is built
// from a module of its own and stands beside carrick.
const sandboxName = "carrick-sandbox"

// demoLink is the name of the demo's link.
const demoLink = "demo"

func (a *app) demo() *cobra.Command {
	var fault string
	var list bool
	var walk autoplay
	cmd := &cobra.Command{
		Use: "demo [GUIDE]", Short: "The wizard on two control planes on this machine",
		Long: "Starts two real Kubernetes control planes on this machine, opens the wizard on them, and\nends them with it. Nothing of yours is touched: no kubeconfig, no cluster, no file.\nWith --fault something is broken from the start, for you to find and mend.\nWith --autoplay it walks through the guide by itself, with captions; space pauses it.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("one guide at a time: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			guide := a.guides[0].Name
			if len(args) == 1 {
				guide = args[0]
			}
			if _, err := steps.FindGuide(a.guides, guide); err != nil {
				return usageError{err}
			}
			if err := walk.valid(cmd.Flags()); err != nil {
				return err
			}
			switch {
			case list && cmd.Flags().Changed("fault"):
				return usage("--list and --fault exclude each other")
			case list:
				return a.listFaults(cmd.Context(), guide)
			case cmd.Flags().Changed("fault") && !faultName.MatchString(fault):
				return usage("--fault %q is not the name of a fault; %s demo %s --list names them", fault, a.name, guide)
			}
			return a.runDemo(cmd.Context(), guide, fault, walk)
		},
	}
	cmd.Flags().StringVar(&fault, "fault", "", "begin with this broken (see --list)")
	cmd.Flags().BoolVar(&list, "list", false, "list the faults of the guide, and do no more")
	walk.add(cmd.Flags())
	return cmd
}

func (a *app) runDemo(ctx context.Context, guide, fault string, walk autoplay) error {
	if known := faultsOnPaper(ctx, guide); fault != "" && len(known) > 0 {
		if _, err := faultOf(known, guide, fault); err != nil {
			return err
		}
	}
	if err := a.needStage(walk); err != nil {
		return err
	}
	box, err := startSandbox(ctx, a.err)
	if err != nil {
		return err
	}
	defer box.stop()
	both := box.Kubeconfigs["local"] + string(os.PathListSeparator) + box.Kubeconfigs["remote"]
	if err := os.Setenv("KUBECONFIG", both); err != nil { // ours alone: carrick starts no child after this
		return err
	}
	env, err := box.env(both)
	if err != nil {
		return err
	}
	w, err := a.prepareDemo(ctx, box, guide, fault, walk)
	if err != nil {
		return err
	}
	o := a.demoScreen(box, guide, env)
	o.Walk, o.Open = w, answering(o.Open, box.given)
	if fault != "" {
		adopted, err := a.adoptDemo(ctx, &o, box)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the wizard says by itself what is wrong with the sides
			adopted = " What stands there could not be adopted: " + cluster.Clean(err.Error())
		}
		o.Notes = append([]string{"It begins with a fault: " + fault + "." + adopted}, o.Notes...)
	}
	return a.walk(ctx, o)
}

// answering opens links with these answers where they have none.
func answering(open func(*linkfile.Link) (*engine.Session, error), with map[string]string) func(*linkfile.Link) (*engine.Session, error) {
	return func(l *linkfile.Link) (*engine.Session, error) {
		for key, v := range with {
			if _, given := l.Answers[key]; !given {
				l.Answers[key] = v
			}
		}
		return open(l)
	}
}

// needStage refuses a demo that nobody could see or answer.
func (a *app) needStage(walk autoplay) error {
	switch {
	case !walk.on:
		return a.needSomebody("LINK")
	case a.inLines():
		return usage("--autoplay shows the screen, and here the wizard speaks in lines: leave out --autoplay, or run it on a terminal without --accessible")
	}
	return ui.NeedTerminal(a.in, a.tty)
}

// prepareDemo puts into the clusters what the guide expects, breaks them where
// that is wanted, and returns how the wizard shall walk; nil: not by itself.
func (a *app) prepareDemo(ctx context.Context, box *sandbox, guide, fault string, walk autoplay) (*ui.Walk, error) {
	var broken demoFault
	var err error
	if fault != "" {
		if broken, err = box.fault(guide, fault); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(a.err, "putting into them what the guide %s expects …\n", guide)
	seeded, err := box.tell("seed " + guide)
	if err != nil && !unknownCommand(err) {
		return nil, fmt.Errorf("prepare the demo: %w", err)
	} // a guide that expects nothing has no scenario
	box.Hosts, box.Here, box.given = seeded.Hosts, seeded.Here, seeded.Given
	w := walk.plan(seeded.Answers)
	if fault == "" {
		return w, nil
	}
	seed := func() error {
		fmt.Fprintf(a.err, "breaking them: %s …\n", fault)
		if _, err := box.tell("seed " + guide + " " + fault); err != nil {
			return fmt.Errorf("break the demo by %s: %w", fault, err)
		}
		return nil
	}
	if w == nil {
		return nil, seed()
	}
	w.Fault = oneLine(cluster.Clean(broken.Title))
	w.Broken, err = a.whatBreaks(ctx, box, guide, seed)
	return w, err
}

// demoScreen are the options of the wizard on the demo's clusters, and on the
// folders that stand for machines.
func (a *app) demoScreen(box *sandbox, guide, env string) ui.Options {
	o := a.screen()
	o.Passing = true
	o.Guide = guide
	o.Name = demoLink
	o.Folder = box.Dir
	o.Banner = "demo: two control planes on this machine"
	o.Sides, o.Hosts = map[steps.Side]string{}, map[steps.Side]linkfile.HostSpec{}
	var context, folder string
	for _, side := range steps.Sides {
		end := box.end(side)
		if end.Host != nil {
			o.Hosts[side], folder = *end.Host, "A folder stands for a machine: "+end.Host.Root
			continue
		}
		o.Sides[side], context = end.Context, end.Context
	}
	o.Notes = []string{
		"Nothing of yours is touched. To break things while carrick watches, in another terminal:",
		". " + env,
		"kubectl --context " + context + " get all -A",
	}
	if folder != "" {
		o.Notes = append(o.Notes, folder)
	}
	return o
}

// sandbox is the child that runs the control planes. It ends when its standard
// input does, however carrick ends.
type sandbox struct {
	Ready       bool                  `json:"ready"`
	Dir         string                `json:"dir"`
	Kubeconfigs map[string]string     `json:"kubeconfigs"`
	Contexts    map[string]string     `json:"contexts"`
	Kubectl     string                `json:"kubectl"`
	Hosts       map[steps.Side]string `json:"-"` // folders that stand for machines, by side: what seed says
	Here        map[steps.Side]bool   `json:"-"` // those of them that have this machine's network

	given map[string]string // answers that its links begin with, by question
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startSandbox(ctx context.Context, progress io.Writer) (*sandbox, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", sandboxName, err)
	}
	path := filepath.Join(filepath.Dir(self), sandboxName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, usage("the demo needs %s beside carrick, and it is not there. In carrick's source: make demo", path)
	}
	box := &sandbox{cmd: exec.Command(path)}
	box.cmd.Stderr = progress
	// A group of its own: ctrl+c in the terminal is carrick's to handle.
	box.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if box.stdin, err = box.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := box.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	box.lines = bufio.NewScanner(out)
	if err := box.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	stop := context.AfterFunc(ctx, func() { box.stdin.Close() })
	defer stop()
	if !box.lines.Scan() || json.Unmarshal(box.lines.Bytes(), box) != nil || !box.Ready {
		box.stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s ended before it was ready; what it said stands above", sandboxName)
	}
	return box, nil
}

// end is what stands on a side of the demo.
func (b *sandbox) end(side steps.Side) linkfile.EndSpec {
	if root := b.Hosts[side]; root != "" {
		return linkfile.EndSpec{Host: &linkfile.HostSpec{Root: root, Here: b.Here[side]}}
	}
	return linkfile.EndSpec{Context: b.Contexts[string(side)]}
}

// env writes what a shell needs to see the demo's clusters, and returns its
// path: short enough to be typed off the screen.
func (b *sandbox) env(kubeconfig string) (string, error) {
	path := filepath.Join(b.Dir, "env")
	text := fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", kubeconfig, filepath.Dir(b.Kubectl))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the demo's environment: %w", err)
	}
	return path, nil
}

// answer is what the sandbox says to a command.
type answer struct {
	OK     bool        `json:"ok"`
	Error  string      `json:"error"`
	Faults []demoFault `json:"faults"`
	// Answers are what a walk types where the questions of these keys come up.
	Answers map[string]string     `json:"answers"`
	Given   map[string]string     `json:"given"` // those of them that a link begins with
	Hosts   map[steps.Side]string `json:"hosts"`
	Here    map[steps.Side]bool   `json:"here"`
}

// tell gives the sandbox one command and reads its answer.
func (b *sandbox) tell(command string) (answer, error) {
	var got answer
	if _, err := fmt.Fprintln(b.stdin, command); err != nil {
		return got, err
	}
	if !b.lines.Scan() {
		return got, fmt.Errorf("%s ended", sandboxName)
	}
	if err := json.Unmarshal(b.lines.Bytes(), &got); err != nil {
		return got, err
	}
	if !got.OK {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// unknownCommand tells whether the sandbox does not know what it was told.
func unknownCommand(err error) bool {
	return err != nil && strings.Contains(err.Error(), "unknown command")
}

// stop ends the sandbox and waits until it has cleaned up after itself.
func (b *sandbox) stop() {
	b.stdin.Close()
	ended := make(chan struct{})
	go func() {
		_ = b.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = b.cmd.Process.Kill()
		<-ended
	}
}
