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

// Program is the content of carrick in addition to its commands.
type Program struct {
	Guides          []*steps.Guide
	Assets          fs.FS  // a folder for each guide
	Readme          string // of the command line: carrick help shows parts of it
	Release, Commit string
}

// Root returns the command tree.
func Root(p Program, in io.Reader, out, errOut io.Writer) *cobra.Command {
	a := &app{in: in, out: out, tty: out, err: errOut, name: "carrick", Program: p}
	return a.root()
}

// Run runs carrick and returns its exit code. args[0] may be kubectl-carrick, or the name by which kubectl calls its
// completion.
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

// data is standard output. It keeps the first error, because lost data is a failure.
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

// judge returns the error of a command that wrote to d. A write error replaces success and a verdict.
func (d *data) judge(err error) error {
	if v := exit.Verdict(0); d.err != nil && (err == nil || errors.As(err, &v)) {
		return fmt.Errorf("write the output: %w", d.err)
	}
	return err
}
