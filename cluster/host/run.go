package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"carrick/cluster/clean"
)

// ErrFolder means that the host cannot run a command because it is only a directory.
var ErrFolder = errors.New("this host is only a directory, which cannot run commands")

const (
	runTimeout = 10 * time.Second
	runLimit   = 1 << 20 // maximum size of stdout and of stderr, in bytes
)

// errSlowCommand is the cause of the context of a command that timed out.
var errSlowCommand = fmt.Errorf("the command timed out after %s", runTimeout)

// runEnvironment lists the environment variables that commands get. Other variables are not passed on, because they
// might contain secrets.
var runEnvironment = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "XDG_RUNTIME_DIR", "SLURM_CONF"}

// Run runs a command without a shell and without input. It returns stdout and stderr, safe to display (see package
// clean) and each at most 1 MiB. The command gets only the environment variables in runEnvironment, and LC_ALL=C. If
// ctx has no deadline, the command times out after 10 s. A non-zero exit status returns an *exec.ExitError, and a
// command that does not exist returns exec.ErrNotFound. In both cases Run also returns stdout and stderr.
func (h *Host) Run(ctx context.Context, name string, args ...string) (stdout, stderr string, err error) {
	if h.IsFolder() {
		return "", "", fmt.Errorf("run %s: %w", clean.Text(name), ErrFolder)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, runTimeout, errSlowCommand)
		defer cancel()
	}
	run := h.run
	if h.options.Run != nil {
		run = h.options.Run
	}
	stdout, stderr, err = run(ctx, name, args...)
	stdout, stderr = clean.Text(stdout), clean.Text(stderr)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return stdout, stderr, nil
	case cause != nil:
		return stdout, stderr, fmt.Errorf("run %s: %w (%w)", clean.Text(name), cause, err)
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n"); line != "" {
		return stdout, stderr, fmt.Errorf("run %s: %w: %s", clean.Text(name), err, line)
	}
	return stdout, stderr, fmt.Errorf("run %s: %w", clean.Text(name), err)
}

func (h *Host) run(ctx context.Context, name string, args ...string) (stdout, stderr string, err error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = scrubbed()
	command.Dir = h.Root
	// A child process that is still running can keep stdout and stderr open.
	command.WaitDelay = 500 * time.Millisecond
	out, errOut := &limited{}, &limited{}
	command.Stdout, command.Stderr = out, errOut
	err = command.Run()
	return out.String(), errOut.String(), err
}

func scrubbed() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range runEnvironment {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// limited keeps the first runLimit bytes that are written to it, and discards the rest.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), runLimit-l.Len())])
	return len(p), nil
}
