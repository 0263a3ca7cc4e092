// Package demo runs carrick-sandbox, the program with the two control planes of carrick demo.
package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/exit"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// Program is the name of the sandbox program. It is built from a separate module and installed next to carrick.
const Program = "carrick-sandbox"

// Sandbox is the child process that runs the control planes. It exits when its standard input is closed, even if
// carrick crashes.
type Sandbox struct {
	Ready       bool                  `json:"ready"`
	Dir         string                `json:"dir"`
	Kubeconfigs map[string]string     `json:"kubeconfigs"`
	Contexts    map[string]string     `json:"contexts"`
	Kubectl     string                `json:"kubectl"`
	Hosts       map[steps.Side]string `json:"-"` // directories that represent machines
	Here        map[steps.Side]bool   `json:"-"` // machines that share this machine's network

	Given map[string]string // initial answers of the demo's link, by question key
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// Start starts the sandbox and waits until its control planes are ready.
func Start(ctx context.Context, progress io.Writer) (*Sandbox, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", Program, err)
	}
	path := filepath.Join(filepath.Dir(self), Program)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, exit.Usagef(
			"the demo requires %s, which does not exist. To build it, run in carrick's source: make demo", path,
		)
	}
	box := &Sandbox{cmd: exec.Command(path)}
	box.cmd.Stderr = progress
	// A separate process group, so that ctrl+c reaches only carrick.
	box.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if box.stdin, err = box.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := box.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	box.lines = bufio.NewScanner(out)
	if err := box.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	stop := context.AfterFunc(ctx, func() { box.stdin.Close() })
	defer stop()
	if !box.lines.Scan() || json.Unmarshal(box.lines.Bytes(), box) != nil || !box.Ready {
		box.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s exited before it was ready; its output is above", Program)
	}
	return box, nil
}

// End returns the link endpoint for one side of the demo.
func (b *Sandbox) End(side steps.Side) linkfile.EndpointSpec {
	if root := b.Hosts[side]; root != "" {
		return linkfile.EndpointSpec{Host: &linkfile.HostSpec{Root: root, Here: b.Here[side]}}
	}
	return linkfile.EndpointSpec{Context: b.Contexts[string(side)]}
}

// Env writes a shell file that configures kubectl for the demo's clusters. It returns the path, which is short enough
// to type.
func (b *Sandbox) Env(kubeconfig string) (string, error) {
	path := filepath.Join(b.Dir, "env")
	text := fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", kubeconfig, filepath.Dir(b.Kubectl))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the demo's environment: %w", err)
	}
	return path, nil
}

// Shell runs shell commands with the sandbox's kubectl. KUBECONFIG of this process must contain the contexts of both
// sides.
func (b *Sandbox) Shell(ctx context.Context, commands string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	path := "PATH=" + steps.Quoted(filepath.Dir(b.Kubectl)) + ":$PATH\n"
	cmd := exec.CommandContext(ctx, "sh", "-ec", path+commands)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return errors.New("the command did not end within a minute")
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(clean.Text(string(said))))
	}
	return nil
}

type answer struct {
	OK     bool    `json:"ok"`
	Error  string  `json:"error"`
	Faults []Fault `json:"faults"`
	// Answers contains the answers that autoplay types, by question key.
	Answers map[string]string     `json:"answers"`
	Given   map[string]string     `json:"given"` // initial answers of the link
	Hosts   map[steps.Side]string `json:"hosts"`
	Here    map[steps.Side]bool   `json:"here"`
}

// Tell sends one command to the sandbox and returns its response.
func (b *Sandbox) Tell(command string) (answer, error) {
	var got answer
	if _, err := fmt.Fprintln(b.stdin, command); err != nil {
		return got, err
	}
	if !b.lines.Scan() {
		return got, fmt.Errorf("%s exited", Program)
	}
	if err := json.Unmarshal(b.lines.Bytes(), &got); err != nil {
		return got, err
	}
	if !got.OK {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// IsUnknownCommand reports whether err means that the sandbox does not support a command.
func IsUnknownCommand(err error) bool {
	return err != nil && strings.Contains(err.Error(), "unknown command")
}

// Stop stops the sandbox and waits until it has cleaned up.
func (b *Sandbox) Stop() {
	b.stdin.Close()
	ended := make(chan struct{})
	go func() {
		_ = b.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = b.cmd.Process.Kill()
		<-ended
	}
}
