// Command carrick joins two clusters step by step. Checks on both sides verify each step continuously.
//
// The commands are in package commands. This package adds the guides.
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

// mostMemory is the soft memory limit of the Go runtime in bytes. Without a limit, garbage from large API responses
// accumulates.
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

// Set at build time with -ldflags "-X main.release=v1.2.3". If commit is empty, carrick uses the revision in Go's build
// information.
var (
	release = "dev"
	commit  string
)

//go:embed README.md
var readme string

func this() commands.Program {
	return commands.Program{Guides: guides.All(), Assets: assets.FS, Readme: readme, Release: release, Commit: commit}
}
