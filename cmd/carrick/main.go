// Command carrick joins two clusters, step by step, and verifies each step with checks that stay live on both sides.
//
// This package only runs the commands, with carrick's guides.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"carrick/assets"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
)

// mostMemory is the soft memory limit of the Go runtime in bytes. Large responses that are read one after the other
// soon become garbage.
const mostMemory = 384 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mostMemory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := commands.Run(ctx, this(), os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// release and commit are set at build time: -ldflags "-X main.release=v1.2.3". If commit is empty, carrick reports the
// revision in Go's build information.
var (
	release = "dev"
	commit  string
)

//go:embed README.md
var readme string

// this returns carrick as users run it.
func this() commands.Program {
	return commands.Program{Guides: guides.All(), Assets: assets.FS, Readme: readme, Release: release, Commit: commit}
}
