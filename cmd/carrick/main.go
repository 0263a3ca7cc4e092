// Command carrick joins two clusters, step by step, and proves each step with
// checks that stay live on both sides.
//
// This package holds flags, the list of guides, printing without a screen and
// exit codes. It knows no rule of any guide.
package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"carrick/assets"
	"carrick/steps"
)

// mostMemory is what the collector keeps to as far as it can: answers that fill the
// memory, one after the other, are garbage each.
const mostMemory = 384 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mostMemory)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, guides(), assets.FS, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs carrick and returns its exit code. files holds the assets, a folder for each guide. args[0]
// may be kubectl-carrick, or the name under which kubectl calls its completion.
func run(
	ctx context.Context, guides []*steps.Guide, files fs.FS, args []string, in io.Reader, out, errOut io.Writer,
) int {
	data := &data{Writer: out}
	a := &app{in: in, out: data, tty: out, err: errOut, name: "carrick", guides: guides, assets: files}
	switch called := filepath.Base(args[0]); {
	case called == completeAs:
		a.name, args = "kubectl carrick", append([]string{called, cobra.ShellCompRequestCmd}, args[1:]...)
	case strings.HasPrefix(called, "kubectl-"):
		a.name = "kubectl carrick"
	}
	root := a.root()
	root.SetArgs(args[1:])
	root.SetIn(in)
	root.SetOut(data)
	root.SetErr(errOut)
	err := data.judge(root.ExecuteContext(ctx))
	code := exitCode(ctx, err)
	if msg := a.message(err); msg != "" {
		fmt.Fprintln(errOut, msg)
	}
	return code
}
