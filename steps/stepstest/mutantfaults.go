package stepstest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

// faults contains the changes that recorded states make to the base. For objects that carrick does not write, these are
// the changes that matter. Only states that are not green and change a single thing count. A state that changes several
// things does not show which of them matters.
type faults map[string]map[string]bool // maps an object, file or page to paths as returned by differ

type fault struct{ where, path string }

// Suffixes of the paths of a longer list, a removed value, and a smaller number.
const (
	longer  = "[+]"
	removed = "[-]"
	less    = "<"
)

// notGreenLine matches a verdict in a want section that is not a pass.
var notGreenLine = regexp.MustCompile(`(?m)^\S+ \S+ (fail|warn|unknown|waiting)\b`)

func objectKey(side steps.Side, o *unstructured.Unstructured) string {
	return strings.Join([]string{string(side), o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, "|")
}

// faults reads the states other than the base. It expands their macros like those of the base.
func (b *mutantBase) faults(t *testing.T) faults {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(b.dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]*unstructured.Unstructured{}
	for side, s := range b.servers {
		for _, o := range s.objects {
			have[objectKey(side, o)] = o
		}
	}
	out, files := faults{}, t.TempDir()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := &state{archive: txtar.Parse(data)}
		base, _ := s.section("base")
		if want, _ := s.section("want"); !notGreenLine.MatchString(want) || strings.TrimSpace(base) != healthyState {
			continue
		}
		list, err := b.faultsOf(s, files, have)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(list) != 1 {
			continue
		}
		if out[list[0].where] == nil {
			out[list[0].where] = map[string]bool{}
		}
		out[list[0].where][list[0].path] = true
	}
	return out
}

func (b *mutantBase) faultsOf(s *state, files string, have map[string]*unstructured.Unstructured) ([]fault, error) {
	s.logs = map[string]string{}
	host := b.servers[steps.Remote]
	if host == nil {
		host = b.servers[steps.Local]
	}
	expand := func(text string) string { return b.web.expand(host.expand(text)) }
	if err := s.write(files, expand); err != nil {
		return nil, err
	}
	var out []fault
	for _, part := range s.archive.Files {
		switch part.Name {
		case "base", "want", "files", "local", "remote", "web", "machine":
		default:
			if !strings.HasPrefix(part.Name, "host/") && !strings.HasPrefix(part.Name, "files/") {
				out = append(out, fault{"section", part.Name})
			}
		}
	}
	for side, srv := range b.servers {
		text, _ := s.section(string(side))
		text, err := fileMacros(text, files)
		if err != nil {
			return nil, err
		}
		list, err := objectFaults(side, b.web.expand(srv.expand(text)), have)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	pages, _ := s.section("web")
	over := map[string][]webAnswer{}
	if err := webSection(over, b.web.expand(pages)); err != nil {
		return nil, err
	}
	for key, list := range over {
		was := b.state.web[key]
		if len(list) != 1 || len(was) != 1 || list[0].JSON == nil || was[0].JSON == nil {
			out = append(out, fault{key, ""})
			continue
		}
		for path := range differ(plainJSON(list[0].JSON), plainJSON(was[0].JSON), false) {
			out = append(out, fault{key, path})
		}
	}
	list, err := b.hostFaults(s, expand)
	return append(out, list...), err
}

// hostFaults returns the changes to the host's files. The path of a change is the changed line, "mode", or "".
func (b *mutantBase) hostFaults(s *state, expand func(string) string) ([]fault, error) {
	var out []fault
	for _, part := range s.archive.Files {
		path, is := strings.CutPrefix(part.Name, "host")
		if !is {
			continue
		}
		have := strings.SplitAfter(expand(string(part.Data)), "\n")
		for _, line := range strings.SplitAfter(b.state.machine.files[path], "\n") {
			if !slices.Contains(have, line) {
				out = append(out, fault{path, "line " + line})
			}
		}
	}
	var m machineText
	text, _ := s.section("machine")
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		return nil, err
	}
	for path := range m.Files {
		out = append(out, fault{path, ""})
	}
	for path := range m.Modes {
		out = append(out, fault{path, "mode"})
	}
	for path := range m.Owners {
		out = append(out, fault{path, "mode"})
	}
	for line := range m.Commands {
		out = append(out, fault{"command", line})
	}
	return out, nil
}

func objectFaults(side steps.Side, text string, have map[string]*unstructured.Unstructured) ([]fault, error) {
	var out []fault
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{Object: doc}
		if o.GetKind() == "" {
			continue
		}
		if o.GetKind() == "Secret" {
			foldStringData(doc)
		}
		key := objectKey(side, o)
		if gone, _ := doc["$delete"].(bool); gone || have[key] == nil {
			out = append(out, fault{key, ""})
			continue
		}
		for path := range differ(plainJSON(doc), plainJSON(have[key].Object), true) {
			out = append(out, fault{key, path})
		}
	}
}

// differ returns the paths at which two values differ. For a merge patch, it returns only paths in the patch.
func differ(is, was any, patch bool) map[string]bool {
	out := map[string]bool{}
	var walk func(is, was any, at []any, patch bool)
	walk = func(is, was any, at []any, patch bool) {
		switch now := is.(type) {
		case map[string]any:
			if old, both := was.(map[string]any); both {
				for key, v := range now {
					walk(v, old[key], append(at[:len(at):len(at)], key), patch)
				}
				for key, v := range old {
					if _, has := now[key]; !has && !patch {
						walk(nil, v, append(at[:len(at):len(at)], key), patch)
					}
				}
				return
			}
		case []any:
			old, both := was.([]any)
			switch {
			case both && len(now) != len(old):
				for i, v := range old {
					if !contains(now, v) {
						out[pathText(append(at[:len(at):len(at)], i))+removed] = true
					}
				}
				for _, v := range now {
					if !contains(old, v) {
						out[pathText(at)+longer] = true
					}
				}
				return
			case both:
				for i := range now {
					walk(now[i], old[i], append(at[:len(at):len(at)], i), false)
				}
				return
			}
		case float64:
			if old, both := was.(float64); both && now < old {
				out[pathText(at)+less] = true
				return
			}
		}
		switch {
		case reflect.DeepEqual(is, was):
		case is == nil:
			out[pathText(at)+removed] = true
		default:
			out[pathText(at)] = true
		}
	}
	walk(is, was, nil, patch)
	return out
}

// of reports whether a change is among the faults.
func (f faults) of(where string, c *change) bool {
	paths := f[where]
	switch {
	case c.what == "one more":
		return paths[c.path+longer]
	case c.what == "deleted":
		return paths[c.path+removed]
	case paths[c.path]:
		return true
	case paths[c.path+less]:
		c.less = true
		return true
	}
	return false
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(x any) bool { return reflect.DeepEqual(x, v) })
}
