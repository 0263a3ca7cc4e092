package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"carrick/cmd/carrick/completion"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
)

// Program contains the guides and files that carrick is built with.
type Program struct {
	Guides          []*steps.Guide
	Assets          fs.FS  // one directory per guide
	Readme          string // README of the command line; carrick help shows parts of it
	Release, Commit string
}

// Root returns the command tree.
func Root(p Program, in io.Reader, out, errOut io.Writer) *cobra.Command {
	a := &app{in: in, out: out, tty: out, err: errOut, name: "carrick", Program: p}
	return a.root()
}

// Run runs carrick and returns its exit code. args[0] can also be kubectl-carrick, or the name under which kubectl
// calls the completion of its plugin.
func Run(ctx context.Context, p Program, args []string, in io.Reader, out, errOut io.Writer) int {
	data := &data{Writer: out}
	a := &app{in: in, out: data, tty: out, err: errOut, name: "carrick", Program: p}
	switch called := filepath.Base(args[0]); {
	case called == completion.As:
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
	code := exit.Code(ctx, err)
	if msg := exit.Message(a.name, err); msg != "" {
		fmt.Fprintln(errOut, msg)
	}
	return code
}

// data is standard output. It remembers the first write error, because lost output must make the command fail.
type data struct {
	io.Writer
	err error
}

func (d *data) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p)
	if d.err == nil {
		d.err = err
	}
	return n, err
}

// judge returns the error from the command. If the command succeeded or returned a verdict, a write error replaces that
// result.
func (d *data) judge(err error) error {
	if v := exit.Verdict(0); d.err != nil && (err == nil || errors.As(err, &v)) {
		return fmt.Errorf("write the output: %w", d.err)
	}
	return err
}
