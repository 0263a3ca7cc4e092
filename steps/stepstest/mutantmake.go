package stepstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

// mutant is the base state with one thing changed.
type mutant struct {
	name  string
	of    string       // the changed thing; one check usually kills all mutants of the same thing
	cells []steps.Cell // checks that might have read the changed thing
	put   func(t *testing.T) (restore func())
}

// mutants returns all mutants of the base in a fixed order.
func (b *mutantBase) mutants(t *testing.T) []mutant {
	t.Helper()
	f := b.faults(t)
	var out []mutant
	for _, side := range steps.Sides {
		srv := b.servers[side]
		if srv == nil {
			continue
		}
		for i, o := range srv.objects {
			if o.GetName() != inventoryRole {
				out = append(out, b.ofObject(srv, i, f)...)
			}
		}
		out = append(out, b.extras(srv)...)
	}
	out = append(out, b.ofFiles(f)...)
	return append(out, b.ofPages(f)...)
}

// fixed lists fields that can't be changed, because they identify an object or the API server sets them.
var fixed = []string{
	"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
	"metadata.generation", "metadata.creationTimestamp",
}

// ofObject returns the mutants of one object. They change every field that the guide writes. For the other fields, they
// make the changes in f.
func (b *mutantBase) ofObject(srv *server, at int, f faults) []mutant {
	o, key := srv.objects[at], objectKey(srv.side, srv.objects[at])
	written, made := b.made[o]
	cells, got := b.readers(srv.side, o)
	if !made && len(cells) == 0 {
		return nil
	}
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	name = fmt.Sprintf("%s %s %s", srv.side, o.GetKind(), name)
	var out []mutant
	if made || got || f[key][""] {
		out = append(out, mutant{name + " deleted", key, cells, func(*testing.T) func() {
			return srv.become(srv.with(slices.Delete(slices.Clone(srv.objects), at, at+1)))
		}})
	}
	writes := func(at []any) bool {
		return slices.ContainsFunc(written, func(w *unstructured.Unstructured) bool { return has(w.Object, at) })
	}
	for _, c := range append(changes(o.Object, nil), added(o.GetKind(), o.Object, writes)...) {
		if slices.Contains(fixed, c.path) || c.what != "added" && !writes(c.at) && !f.of(key, &c) {
			continue
		}
		out = append(out, mutant{name + ": " + c.path + " " + c.what, key, cells, func(*testing.T) func() {
			objects := slices.Clone(srv.objects)
			objects[at] = &unstructured.Unstructured{Object: c.apply(o.Object).(map[string]any)}
			return srv.become(srv.with(objects))
		}})
	}
	return out
}

// readers returns the checks that might have read an object. If a check read it by name, got is true.
func (b *mutantBase) readers(side steps.Side, o *unstructured.Unstructured) (cells []steps.Cell, got bool) {
	for _, c := range b.passes {
		read, byName := b.reads[c].of(side, o)
		if got = got || byName; read {
			cells = append(cells, c)
		}
	}
	return cells, got
}

// become makes another server answer until restore is called.
func (s *server) become(other *server) (restore func()) {
	s.mutant.Store(other)
	return func() { s.mutant.Store(nil) }
}

// ofPages returns the mutants of the HTTP APIs' responses, for each page that a check requested.
func (b *mutantBase) ofPages(f faults) []mutant {
	var out []mutant
	for _, key := range slices.Sorted(maps.Keys(b.state.web)) {
		method, path, _ := strings.Cut(key, " ")
		bare, _, _ := strings.Cut(path, "?")
		cells := slices.DeleteFunc(slices.Clone(b.passes), func(c steps.Cell) bool { return !b.reads[c].asked(bare) })
		if method != "GET" || len(cells) == 0 {
			continue
		}
		put := func(list []webAnswer) func(*testing.T) func() {
			return func(*testing.T) func() { return b.show(key, list) }
		}
		out = append(out, mutant{"page " + path + " deleted", key, cells, put(nil)})
		for i, answer := range b.state.web[key] {
			name := "page " + path
			if i > 0 {
				name += fmt.Sprintf(" (answer %d)", i+1)
			}
			replaced := func(a webAnswer) []webAnswer {
				list := slices.Clone(b.state.web[key])
				list[i] = a
				return list
			}
			if answer.JSON == nil {
				a := answer
				a.Body += "x"
				out = append(out, mutant{name + ": body altered", key, cells, put(replaced(a))})
				continue
			}
			for _, c := range changes(plainJSON(answer.JSON), nil) {
				if !f.of(key, &c) {
					continue
				}
				a := answer
				a.JSON = c.apply(plainJSON(answer.JSON))
				out = append(out, mutant{name + ": " + c.path + " " + c.what, key, cells, put(replaced(a))})
			}
		}
	}
	return out
}

// asked reports whether a check requested a page, directly or through an API server.
func (r *reads) asked(path string) bool {
	for p := range r.pages {
		if strings.HasSuffix(p, path) {
			return true
		}
	}
	return false
}

// show makes a page return other answers until restore is called. If list is nil, the page returns 404.
func (b *mutantBase) show(key string, list []webAnswer) (restore func()) {
	other := maps.Clone(b.state.web)
	other[key] = list
	set := func(pages map[string][]webAnswer) {
		b.web.mu.Lock()
		b.web.answers = pages
		b.web.mu.Unlock()
		for _, s := range b.servers {
			m := s.with(s.objects)
			m.pages = pages
			s.mutant.Store(m)
		}
	}
	set(other)
	return func() {
		set(b.state.web)
		for _, s := range b.servers {
			s.mutant.Store(nil)
		}
	}
}
