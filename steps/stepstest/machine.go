package stepstest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"carrick/cluster"
	"carrick/cluster/host"
	"carrick/steps"
)

// machine is a directory that represents the host of a side. It also has the properties that a directory can't have.
type machine struct {
	files    map[string]string // by absolute path
	links    map[string]string
	modes    map[string]fs.FileMode
	owners   map[string]int
	commands map[string]command // by command line, with words separated by spaces
	folder   bool               // a directory represents the machine, so there are no commands
	noRoot   bool               // carrick does not run as root on the machine
	here     bool               // this process uses the network of that machine
}

type command struct {
	Out  string `yaml:"out"`
	Err  string `yaml:"err"`
	Exit int    `yaml:"exit"`
}

type machineText struct {
	Files    map[string]*string      `yaml:"files"` // null removes a file of the base
	Links    map[string]*string      `yaml:"links"`
	Modes    map[string]*fs.FileMode `yaml:"modes"`
	Owners   map[string]*int         `yaml:"owners"`
	Commands map[string]*command     `yaml:"commands"`
	Folder   *bool                   `yaml:"folder"`
	Here     *bool                   `yaml:"here"`
	Root     *bool                   `yaml:"root"`
}

func newMachine(base *machine) *machine {
	if base == nil {
		return &machine{
			files: map[string]string{}, links: map[string]string{}, modes: map[string]fs.FileMode{}, owners: map[string]int{},
			commands: map[string]command{},
		}
	}
	return &machine{
		files: maps.Clone(base.files), links: maps.Clone(base.links), modes: maps.Clone(base.modes),
		owners:   maps.Clone(base.owners),
		commands: maps.Clone(base.commands), folder: base.folder, noRoot: base.noRoot, here: base.here,
	}
}

// section merges a machine section over the base's.
func (m *machine) section(text string) error {
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	var over machineText
	if err := dec.Decode(&over); err != nil && strings.TrimSpace(text) != "" {
		return err
	}
	for path := range over.Modes {
		if over.Modes[path] != nil && *over.Modes[path] > fs.ModePerm {
			return fmt.Errorf("modes: %s: write it as 0644", path)
		}
	}
	for path := range over.Files { // also drops the modes and owners of the base's files
		delete(m.modes, path)
		delete(m.owners, path)
	}
	overlay(m.files, over.Files)
	overlay(m.links, over.Links)
	overlay(m.modes, over.Modes)
	overlay(m.owners, over.Owners)
	overlay(m.commands, over.Commands)
	if over.Folder != nil {
		m.folder = *over.Folder
	}
	if over.Here != nil {
		m.here = *over.Here
	}
	if over.Root != nil {
		m.noRoot = !*over.Root
	}
	return nil
}

func overlay[V any](into map[string]V, over map[string]*V) {
	for key, v := range over {
		if v == nil {
			delete(into, key)
			continue
		}
		into[key] = *v
	}
}

// write writes the machine's files into a new directory.
func (m *machine) write(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range m.files {
		mode, ok := m.modes[path]
		if !ok {
			mode = 0o644
		}
		if err := writeFile(filepath.Join(root, path), text, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, target := range m.links {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range m.modes { // including directories that contain files
		if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
			t.Fatalf("modes: %v", err)
		}
	}
	return root
}

func (m *machine) open(t *testing.T, root string) *host.Host {
	t.Helper()
	o := host.Options{
		Clusters: cluster.Options{Once: true}, Owner: m.owner, ByRoot: func() bool { return !m.noRoot }, Here: m.here,
	}
	if !m.folder {
		o.Run = m.run
	}
	h, err := host.NewWith(root, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func writeFile(path, text string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // the umask removed some bits
}

// owner returns root unless the state sets another owner.
func (m *machine) owner(path string) (uid, gid int, ok bool) {
	uid = m.owners[path]
	return uid, uid, true
}

// run returns the state's result for a command line. Any other command does not exist.
func (m *machine) run(ctx context.Context, name string, args ...string) (stdout, stderr string, err error) {
	c, ok := m.commands[strings.Join(append([]string{name}, args...), " ")]
	switch {
	case !ok:
		return "", "", &exec.Error{Name: name, Err: exec.ErrNotFound}
	case c.Exit != 0:
		err = exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("exit %d", c.Exit)).Run()
	}
	return c.Out, c.Err, err
}

func hostSide(g *steps.Guide) steps.Side {
	for _, side := range steps.Sides {
		if g.Sides[side].Kind == steps.Host {
			return side
		}
	}
	return ""
}
