// Command carrick joins two clusters, step by step, and proves each step with
// checks that stay live on both sides.
//
// This package only starts the commands, with the guides that carrick has.
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

// mostMemory is what the collector keeps to as far as it can: answers that fill the
// memory, one after the other, are garbage each.
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

// release and commit are set at build time: -ldflags "-X main.release=v1.2.3".
// Where commit is not, it is what Go noted of the source.
var (
	release = "dev"
	commit  string
)

//go:embed README.md
var readme string

// this is carrick as users have it.
func this() commands.Program {
	return commands.Program{Guides: guides.All(), Assets: assets.FS, Readme: readme, Release: release, Commit: commit}
}
