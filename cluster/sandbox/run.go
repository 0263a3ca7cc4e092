package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"carrick/cluster/sandbox/leash"
)

// options are the command-line options.
type options struct {
	dir   string // the sandbox's folder while it runs
	empty bool   // start empty control planes
	// faults is the name of a scenario. If set, print its faults and start nothing.
	faults string
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("carrick-sandbox", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(
		&o.dir, "dir", "", "`folder` for everything the sandbox writes; must be empty or not exist; removed at the end",
	)
	flags.BoolVar(&o.empty, "empty", false, "leave the clusters without nodes, classes and DNS")
	flags.StringVar(
		&o.faults, "faults", "", "print what can be wrong in a `scenario`, as the command faults does, and start nothing",
	)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.dir == "" {
		o.dir = filepath.Join(os.TempDir(), "carrick-sandbox-"+rand.Text()[:10])
	}
	var err error
	o.dir, err = filepath.Abs(o.dir)
	return o, err
}

// run starts a sandbox and serves it until standard input ends, a signal arrives, or a component fails. When it
// returns, no process and no file of the sandbox is left.
func run(ctx context.Context, o options, in io.Reader, out, progress io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	keeper, err := leash.Keep(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keeper.End()) }()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-keeper.Gone()
		cancel(errors.New("the keeper was killed"))
	}()
	lines := read(in, cancel)
	done := make(chan error, 1)
	go func() { done <- serve(ctx, o, lines, out, progress) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // when its API servers stop, the current work of serve is aborted
		return ending(ctx)
	}
}
