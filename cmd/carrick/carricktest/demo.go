package carricktest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/demo"
	"carrick/cmd/carrick/exit"
)

// Kill sends SIGKILL to carrick.
func (p *Terminal) Kill() {
	p.t.Helper()
	if err := p.Cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
}

// Interrupt presses ctrl+c. The test fails unless carrick exits with code Interrupted and restores the terminal.
func (p *Terminal) Interrupt() {
	p.t.Helper()
	p.Types("\x03")
	if code := p.Leaves(); code != exit.Interrupted {
		p.t.Errorf("exit code %d, not %d:\n%s", code, exit.Interrupted, p.Text())
	}
	p.IsAsItWas()
}

// Demo starts carrick demo on a terminal. The demo starts its own sandbox. carrick and its child processes write all
// files to one directory. The environment of these processes contains the path of that directory.
func Demo(t *testing.T, guide string, flags ...string) *Terminal {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("this test reads processes from /proc")
	}
	clustertest.Room(t)
	return onTerminal(t, "TMPDIR="+demoFolder(t), append([]string{"demo", guide}, flags...)...)
}

func demoFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "carrick-demo-*") // a short path: the directory contains a Unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// LentDemo is like Demo, but carrick uses the test's sandbox. Resetting two control planes is faster than starting
// them.
func LentDemo(t *testing.T, guide string, flags ...string) *Terminal {
	t.Helper()
	box := clustertest.Start(t)
	folder := demoFolder(t)
	socket, err := net.Listen("unix", filepath.Join(folder, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go box.Lend(socket)
	// Link carrick into a directory where this test binary takes the place of the sandbox program.
	dir, err := os.MkdirTemp(filepath.Dir(Program(t)), "lent-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	err = errors.Join(err, os.Symlink(self, filepath.Join(dir, demo.Program)))
	if err = errors.Join(err, os.Link(Program(t), filepath.Join(dir, "carrick"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "carrick"), append([]string{"demo", guide}, flags...)...)
	cmd.Dir = t.TempDir()
	lent, own := clustertest.Socket+"="+socket.Addr().String(), clustertest.Program+"="+os.Getenv(clustertest.Program)
	return StartOnTerminal(t, cmd, "TMPDIR="+demoFolder(t), lent, own)
}

// lentMain is the sandbox program in LentDemo. Commands that need no control planes go to the real sandbox program.
func lentMain() {
	if len(os.Args) > 1 {
		err := syscall.Exec(os.Getenv(clustertest.Program), os.Args, os.Environ())
		fmt.Fprintln(os.Stderr, "carrick-lent:", err)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "carrick-sandbox-*")
	if err == nil {
		err = errors.Join(clustertest.Relay(os.Getenv(clustertest.Socket), dir, os.Stdin, os.Stdout), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "carrick-lent:", err)
		os.Exit(1)
	}
}

// Family returns the process IDs of carrick and its children.
func (p *Terminal) Family() []int {
	p.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		p.t.Fatalf("cannot read /proc: %v", err)
	}
	var out []int
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ")) // empty once the process has exited
		if err == nil && bytes.Contains(environ, []byte(p.mark)) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			out = append(out, pid)
		}
	}
	return out
}

const goneWithin = 5 * time.Minute

// LeftNothing fails the test unless all processes end and all their files are removed.
func (p *Terminal) LeftNothing() {
	p.t.Helper()
	<-p.Ended
	dir := strings.TrimPrefix(p.mark, "TMPDIR=")
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for late := time.Now().Add(goneWithin); ; <-look.C {
		family := p.Family()
		files, err := os.ReadDir(dir)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(family) == 0 && len(files) == 0 {
			return
		}
		if time.Now().After(late) {
			for _, pid := range family {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			p.t.Fatalf("still running after %s: processes %v, files %v", goneWithin, family, files)
		}
	}
}

var private = regexp.MustCompile(`\x1b\[\?([0-9]+)([hl])`)

// IsAsItWas fails the test unless carrick has restored the terminal: the normal screen, the cursor and the line
// discipline.
func (p *Terminal) IsAsItWas() {
	p.t.Helper()
	if got := p.State(); !reflect.DeepEqual(got, p.Modes) {
		p.t.Errorf("the line discipline is %+v, but was %+v", got, p.Modes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen.IsAltScreen() || p.hidden {
		p.t.Errorf("alternate screen: %v, hidden cursor: %v", p.screen.IsAltScreen(), p.hidden)
	}
	last := map[string]string{}
	for _, m := range private.FindAllStringSubmatch(p.raw.String(), -1) {
		last[m[1]] = m[2]
	}
	for mode, is := range last {
		if on := is == "h"; on != (mode == "25") {
			p.t.Errorf("mode %s is still %s", mode, is)
		}
	}
}

// InSandbox returns the path of the named file in the demo's sandbox.
func (p *Terminal) InSandbox(name string) string {
	p.t.Helper()
	dir := filepath.Join(strings.TrimPrefix(p.mark, "TMPDIR="), "carrick-sandbox-*")
	found, err := filepath.Glob(filepath.Join(dir, name))
	lent, errLent := filepath.Glob(filepath.Join(dir, clustertest.RelayedBox, name))
	if found = append(found, lent...); len(found) != 1 {
		p.t.Fatalf("%s of the sandbox: %v, %v", name, found, errors.Join(err, errLent))
	}
	return found[0]
}

// ObjectsOf returns the names of the objects in one of the demo's clusters.
func (p *Terminal) ObjectsOf(context, kinds string) []string {
	p.t.Helper()
	names := strings.Fields(p.Kubectl(context, "get", kinds, "-A", "-o", "name"))
	if len(names) < 20 {
		p.t.Fatalf("%d objects", len(names))
	}
	// A namespace can get its copy of the cluster CA later.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "configmap/kube-root-ca.crt" })
	slices.Sort(names)
	return names
}

// Kubectl runs kubectl with the shell file that the demo's first screen offers for a second terminal.
func (p *Terminal) Kubectl(context string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(
		p.t.Context(), "sh",
		slices.Concat(
			[]string{"-c", `. "$1" && shift && kubectl --context "$@"`, "sh", p.InSandbox("env"), context}, args,
		)...,
	)
	cmd.Env = OwnEnvironment(p.t.TempDir())
	out, said, code := Finish(p.t, cmd)
	if code != 0 {
		p.t.Fatalf("exit code %d: %s", code, said)
	}
	return out
}
