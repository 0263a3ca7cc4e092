package stepstest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plainJSON returns a value with the types of decoded JSON.
func plainJSON(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// ofFiles returns the mutants of the host's files. For files that the guide writes, they change each line, the mode and
// the owner. For other files, they make the changes in faults.
func (b *mutantBase) ofFiles(f faults) []mutant {
	var out []mutant
	m := b.state.machine
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		_, made := b.files[path]
		if strings.HasPrefix(path, "/var/lib/carrick/") || !made && f[path] == nil {
			continue
		}
		text := m.files[path]
		add := func(what string, put func(*testing.T) func()) {
			out = append(out, mutant{"file " + path + what, path, b.passes, put})
		}
		if made || f[path][""] {
			add(" deleted", func(t *testing.T) func() { return b.replaceFile(t, path, "", false) })
		}
		lines := strings.SplitAfter(text, "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) == "" || !made && !f[path]["line "+line] {
				continue
			}
			without := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
			other := slices.Clone(lines)
			other[i] = strings.Replace(line, strings.TrimSpace(line), alteredText(strings.TrimSpace(line), nil), 1)
			put := func(text string) func(*testing.T) func() {
				return func(t *testing.T) func() { return b.replaceFile(t, path, text, true) }
			}
			add(fmt.Sprintf(": line %d deleted", i+1), put(without))
			add(fmt.Sprintf(": line %d altered", i+1), put(strings.Join(other, "")))
		}
		if made {
			add(": one more line", func(t *testing.T) func() {
				return b.replaceFile(t, path, text+"added by a mutant\n", true)
			})
		}
		if made || f[path]["mode"] {
			add(": mode 0666", func(t *testing.T) func() { return b.changeMode(t, path, 0o666) })
			add(": owner altered", func(*testing.T) func() {
				was, had := m.owners[path]
				m.owners[path] = was + 4242
				return func() {
					if m.owners[path] = was; !had {
						delete(m.owners, path)
					}
				}
			})
		}
	}
	return out
}

func (b *mutantBase) replaceFile(t *testing.T, path, text string, exists bool) (restore func()) {
	t.Helper()
	at := filepath.Join(b.root, path)
	info, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	was := b.state.machine.files[path]
	if exists {
		err = writeFile(at, text, info.Mode().Perm())
	} else {
		err = os.Remove(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := writeFile(at, was, info.Mode().Perm()); err != nil {
			t.Error(err)
		}
	}
}

func (b *mutantBase) changeMode(t *testing.T, path string, mode fs.FileMode) (restore func()) {
	t.Helper()
	at := filepath.Join(b.root, path)
	info, err := os.Stat(at)
	if err == nil {
		err = os.Chmod(at, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Chmod(at, info.Mode().Perm()); err != nil {
			t.Error(err)
		}
	}
}
