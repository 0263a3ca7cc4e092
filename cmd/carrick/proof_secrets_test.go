package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
)

// heard is all that one command let out: its output, what stood in the list of
// processes, what it left in files.
type heard struct {
	name   string
	text   bytes.Buffer // what it said
	listed []byte       // what the list of processes shows of it
	code   int
}

// office is a folder in which every command of a guide is run, by somebody whose
// secrets are known.
type office struct {
	site
	dir        string
	env        []string
	kubeconfig string // in env
	runs       []*heard
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
	o.env = append(ownEnvironment(o.dir), o.kubeconfig, "TMPDIR="+filepath.Join(o.dir, "tmp"))
	link := steps.NewLink(s.guide.Name, "proof")
	link.Path = filepath.Join(o.dir, "link.yaml")
	link.Local, link.Remote = steps.EndSpec{Context: s.box.Contexts[clustertest.Local]}, steps.EndSpec{Context: s.box.Contexts[clustertest.Remote]}
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

// given is where what the user gave stands: the only place where a secret may.
const given = "given-"

func (o *office) secretFile(key string) string { return filepath.Join(o.dir, given+key) }

// secrets are the flags for all that is secret.
func (o *office) secrets() []string {
	var out []string
	for key := range o.answers {
		if q, _ := o.guide.Question(key); q.Secret {
			out = append(out, "--secret", key+"=@"+o.secretFile(key))
		}
	}
	return out
}

// run runs a command to its end, or for as long as it is let, and keeps all that
// it lets out.
func (o *office) run(let time.Duration, args ...string) *heard {
	o.Helper()
	h := &heard{name: strings.Join(args, " ")}
	if len(args) > 0 && strings.Contains(" check diff apply undo export ", " "+args[0]+" ") {
		args = append(args, o.secrets()...)
	}
	path := program(o.T)
	ctx, cancel := context.WithTimeout(o.Context(), let)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = o.dir, o.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.Stdout, cmd.Stderr = &h.text, &h.text
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

// processes are what the list of processes shows of one and its children until it
// has ended.
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

// files are all that stands in the folder, but what the user gave, as one run.
func (o *office) files() *heard {
	h := &heard{name: "files"}
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

// Every command of every guide, with secrets in the clusters that are known:
// none is in anything that comes out.
func TestSecretsOfEveryGuide(t *testing.T) {
	proves(t)
	eachGuide(t, func(s site) {
		secrets := s.plant()
		o := s.office()
		o.useAll()
		o.walkScreens(madeByThen)
		s.collect(secrets, 4) // what carrick made is among them now
		if h := o.run(3*time.Minute, "undo", "--yes", "link.yaml"); h.code != 0 {
			s.Errorf("undo: exit code %d:\n%s", h.code, h.text.String())
		}
		o.runs = append(o.runs, o.files(), s.committed())
		s.Logf("%d forms of secrets are looked for", secrets.Len())
		for _, h := range o.runs {
			cases.Run(s.T, "secret", h.name, func(t *testing.T) {
				if h.text.Len() == 0 {
					t.Error("it let nothing out: this proves nothing")
				}
				if found := secrets.Find(append(h.text.Bytes(), h.listed...)); len(found) > 0 {
					t.Errorf("it lets out %s", strings.Join(found, ", "))
				}
			})
		}
		cases.Run(s.T, "secret", "one that is planted is found", func(t *testing.T) {
			leak := base64.StdEncoding.EncodeToString([]byte("level=debug password=" + plantedPassword))
			if err := os.WriteFile(filepath.Join(o.dir, "state", "leak.log"), []byte(leak), 0o600); err != nil {
				t.Fatal(err)
			}
			if found := secrets.Find(o.files().text.Bytes()); len(found) != 1 {
				t.Errorf("found %v", found)
			}
		})
	})
}

// useAll runs every command, before and after the set-up is there.
func (o *office) useAll() {
	o.run(quick, "version")
	o.run(quick, "guides")
	o.run(quick, "guides", o.guide.Name)
	o.run(quick, "completion", "bash")
	o.run(quick, "explain")
	o.run(quick, "explain", o.guide.Name+"/"+o.guide.Cells()[0].Check)
	looks := func() {
		for _, format := range []string{"table", "json", "yaml", "junit"} {
			o.run(time.Minute, "check", "link.yaml", "-o", format)
		}
		o.run(time.Minute, "diff", "link.yaml")
	}
	looks()
	o.run(time.Minute, "apply", "--dry-run", "link.yaml")
	if h := o.run(3*time.Minute, "apply", "--yes", "link.yaml"); h.code != 0 {
		o.Fatalf("apply: exit code %d:\n%s", h.code, h.text.String())
	}
	o.run(time.Minute, "check", "link.yaml", "--wait", "30s")
	looks()
	o.run(4*time.Second, "check", "--watch", "link.yaml")
	o.run(time.Minute, "apply", "--yes", "link.yaml")
	o.run(time.Minute, "export", "link.yaml", "out")
	o.run(time.Minute, "export", "--force", "link.yaml", "out")
	o.run(time.Minute, "undo", "--dry-run", "link.yaml")
	bad := filepath.Join(o.dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: carrick/v1alpha1\nkind: Link\nanswers: {}\n"), 0o600); err != nil {
		o.Fatal(err)
	}
	o.run(quick, "check", "bad.yaml")
}

// madeByThen is when a walk sees what a link made.
const madeByThen = "before undo"

// walkScreens goes through the wizard: every step, every row, every overlay.
func (o *office) walkScreens(when string) {
	args := append([]string{"link.yaml"}, o.secrets()...)
	cmd := exec.Command(program(o.T), args...)
	cmd.Dir = o.dir
	p := startOnTerminal(o.T, cmd, o.kubeconfig)
	h := &heard{name: "the wizard " + when}
	all := &h.text
	see := func() {
		p.settles()
		all.WriteString(p.text() + "\n")
	}
	w := walk{steps: len(o.guide.Steps)}
	p.wait(`step [0-9]+ of`)
	p.types("1")
	for step := 1; step <= w.steps; step++ {
		p.wait(w.on(step))
		for range 10 { // rows
			for _, key := range []string{"\r", "y", "\x1b", "j"} {
				p.types(key)
				see()
			}
		}
		for _, key := range []string{"d", "l", "?", "e", "o", "u", "\t"} {
			p.types(key)
			see()
			p.types("\x1b")
			see()
			p.types("\x1b")
			see()
		}
		next := w.on(step + 1)
		if step == w.steps {
			next = "summary ·"
		}
		for range 20 { // a key right after escape is another key
			if p.types("n"); p.settlesOn(next) {
				break
			}
		}
	}
	p.wait(`summary ·`)
	if when == madeByThen {
		p.wait(`Made by this link`)
	}
	see()
	p.types("s")
	see()
	p.types("q")
	p.leaves()
	p.mu.Lock()
	defer p.mu.Unlock()
	all.WriteString(p.raw.String())
	o.runs = append(o.runs, h)
}

// settles returns when the screen stays as it is for a moment.
func (p *terminal) settles() {
	calm := time.NewTimer(calmScreen)
	defer calm.Stop()
	late := time.NewTimer(quick)
	defer late.Stop()
	for {
		select {
		case <-p.changed:
			calm.Reset(calmScreen)
		case <-calm.C:
			return
		case <-late.C: // something moves on it
			return
		}
	}
}

// settlesOn settles, and tells whether the screen shows a text then.
func (p *terminal) settlesOn(text string) bool {
	p.settles()
	return strings.Contains(p.text(), text)
}

const calmScreen = 80 * time.Millisecond

// committed are goldens and other files for tests, as one run.
func (s site) committed() *heard {
	h := &heard{name: "what is committed for tests"}
	n := 0
	for _, root := range []string{"../../testdata", "../../assets", "../../ui/testdata", "../../steps", "../../cluster"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, "testdata") && !strings.Contains(path, "assets") {
				return err
			}
			text, err := os.ReadFile(path)
			n++
			h.text.Write(text)
			return err
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	if n < 20 {
		s.Fatalf("%d files", n)
	}
	return h
}
