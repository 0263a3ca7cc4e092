package proof

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/steps"
	"carrick/steps/linkfile"
)

// letOut has everything that one command leaked: its output, its entries in the process list, and the content of its
// files.
type letOut struct {
	name   string
	text   bytes.Buffer // what it said
	listed []byte       // what the list of processes shows of it
	code   int
}

// office is a folder in which a test runs every command of a guide, as a user whose secrets are known.
type office struct {
	site
	dir        string
	env        []string
	kubeconfig string // in env
	runs       []*letOut
}

func (s site) office() *office {
	o := &office{site: s, dir: s.TempDir()}
	for _, name := range []string{"tmp", "state", "out"} {
		if err := os.Mkdir(filepath.Join(o.dir, name), 0o700); err != nil {
			s.Fatal(err)
		}
	}
	both := s.box.Kubeconfigs[clustertest.Local] + string(os.PathListSeparator) + s.box.Kubeconfigs[clustertest.Remote]
	o.kubeconfig = "KUBECONFIG=" + both
	o.env = append(carricktest.OwnEnvironment(o.dir), o.kubeconfig, "TMPDIR="+filepath.Join(o.dir, "tmp"))
	link := linkfile.New(s.guide.Name, "proof")
	link.Path = filepath.Join(o.dir, "link.yaml")
	link.Local, link.Remote = s.end(steps.Local), s.end(steps.Remote)
	for key, v := range s.answers {
		if q, _ := s.guide.Question(key); q.Secret {
			if err := os.WriteFile(o.secretFile(key), []byte(fmt.Sprint(v)), 0o600); err != nil {
				s.Fatal(err)
			}
		} else {
			link.Answers[key] = v
		}
	}
	if err := link.Save(); err != nil {
		s.Fatal(err)
	}
	return o
}

// given is the prefix of files with the user's own input. Only these files may contain a secret.
const given = "given-"

func (o *office) secretFile(key string) string { return filepath.Join(o.dir, given+key) }

// secrets returns the flags for all secrets.
func (o *office) secrets() []string {
	var out []string
	for key := range o.answers {
		if q, _ := o.guide.Question(key); q.Secret {
			out = append(out, "--secret", key+"=@"+o.secretFile(key))
		}
	}
	return out
}

// run runs a command until it exits, or for the given time, and returns everything that it leaked.
func (o *office) run(let time.Duration, args ...string) *letOut {
	o.Helper()
	return o.start(let, 0, args...)
}

// runUntil interrupts a command that does not exit on its own, once it has printed this many lines.
func (o *office) runUntil(lines int, args ...string) *letOut {
	o.Helper()
	h := o.start(carricktest.CommandWithin, lines, args...)
	if n := bytes.Count(h.text.Bytes(), []byte("\n")); n < lines {
		o.Errorf("%s said %d lines, not %d:\n%s", h.name, n, lines, h.text.String())
	}
	return h
}

func (o *office) start(let time.Duration, lines int, args ...string) *letOut {
	o.Helper()
	h := &letOut{name: strings.Join(args, " ")}
	if len(args) > 0 && strings.Contains(" check diff apply undo export handover adopt ", " "+args[0]+" ") {
		args = append(args, o.secrets()...)
	}
	if len(args) > 0 && args[0] == "apply" && o.takesOver() {
		args = append(args, "--take-over")
	}
	path := carricktest.Program(o.T)
	ctx, cancel := context.WithTimeout(o.Context(), let)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = o.dir, o.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	words := &listener{to: &h.text, lines: lines, heard: cancel}
	cmd.Stdout, cmd.Stderr = words, words
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	ended := make(chan struct{})
	listed := processes(cmd.Process.Pid, ended)
	_ = cmd.Wait()
	close(ended)
	h.code = cmd.ProcessState.ExitCode()
	h.listed = <-listed
	o.runs = append(o.runs, h)
	return h
}

// listener stores output, and calls heard once the output has this many lines; 0: never.
type listener struct {
	to    *bytes.Buffer
	lines int
	heard func()
}

func (l *listener) Write(p []byte) (int, error) {
	n, err := l.to.Write(p)
	if l.lines > 0 && bytes.Count(l.to.Bytes(), []byte("\n")) >= l.lines {
		l.heard()
	}
	return n, err
}

// processes returns the process list's entries of a process and its children until the process has exited.
func processes(pid int, ended chan struct{}) chan []byte {
	out := make(chan []byte, 1)
	look := time.NewTicker(20 * time.Millisecond)
	go func() {
		defer look.Stop()
		seen := map[string]bool{}
		for {
			for _, at := range append(childrenOf(pid), pid) {
				for _, file := range []string{"cmdline", "environ"} {
					text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", at, file))
					seen[string(text)] = true
				}
			}
			select {
			case <-look.C:
			case <-ended:
				var all []byte
				for text := range seen {
					all = append(append(all, text...), '\n')
				}
				out <- all
				return
			}
		}
	}()
	return out
}

func childrenOf(pid int) []int {
	var out []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			child := 0
			if _, err := fmt.Sscan(word, &child); err == nil {
				out = append(append(out, child), childrenOf(child)...)
			}
		}
	}
	return out
}

// files returns the content of the folder, except for the user's own input, as one letOut.
func (o *office) files() *letOut {
	h := &letOut{name: "files"}
	n := 0
	err := filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), given) {
			return err
		}
		text, err := os.ReadFile(path)
		n++
		fmt.Fprintf(&h.text, "%s\n%s\n", path, text)
		return err
	})
	if err != nil || n < 4 {
		o.Fatalf("%d files: %v", n, err)
	}
	return h
}
