package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"carrick/cluster/sandbox/leash"
	"carrick/cluster/sandbox/roles"
	"carrick/cluster/sandbox/scenario"
)

func main() {
	rest.SetDefaultWarningHandler(rest.NoWarnings{}) // upstream components trigger API server warnings, too
	if leash.IsKeeper() {
		os.Exit(leash.RunKeeper())
	}
	if role, ok := roles.Find(os.Args[0]); ok {
		os.Exit(play(role))
	}
	klog.SetLogger(logr.Discard()) // in a demo, stderr is the terminal with carrick's screen
	os.Exit(sandbox(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// play runs one of the embedded programs. If the user has a program with the same name, play runs the user's program
// instead.
func play(role roles.Role) int {
	if role.Leashed {
		leash.Hold()
		if path, ok := roles.Asset(role.Name); ok {
			return roles.Wrap(path)
		}
	}
	return role.Main()
}

func sandbox(ctx context.Context, args []string, in io.Reader, out, progress io.Writer) int {
	options, err := parse(args, progress)
	switch {
	case err != nil:
	case options.faults != "":
		err = json.NewEncoder(out).Encode(desk{stage: &scenario.Stage{}}.answer(ctx, "faults "+options.faults))
	default:
		err = run(ctx, options, in, out, progress)
	}
	if err != nil {
		fmt.Fprintf(progress, "carrick-sandbox: %v\n", err)
		return 1
	}
	return 0
}
