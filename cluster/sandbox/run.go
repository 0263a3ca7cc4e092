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

type options struct {
	dir   string // directory for the sandbox's files; deleted on exit
	empty bool   // do not create nodes, StorageClasses, IngressClasses and DNS
	// faults is the name of a scenario. If it is set, carrick-sandbox only prints the scenario's faults.
	faults string
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("carrick-sandbox", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(
		&o.dir, "dir", "", "`directory` for the sandbox's files; it must be empty or not exist, and is deleted on exit",
	)
	flags.BoolVar(&o.empty, "empty", false, "create the clusters without nodes, StorageClasses, IngressClasses and DNS")
	flags.StringVar(
		&o.faults, "faults", "", "print the faults of a `scenario`, as the command faults does, and exit",
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

// run starts a sandbox and executes commands until standard input ends, a signal arrives or a component fails. It stops
// all processes and deletes all files before it returns.
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
		cancel(errors.New("the sandbox's keeper was killed"))
	}()
	lines := read(in, cancel)
	done := make(chan error, 1)
	go func() { done <- serve(ctx, o, lines, out, progress) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // do not wait for serve: it fails when its API servers stop
		return ending(ctx)
	}
}
