// Package export writes manifests for the objects that apply would create, so that other tools can apply them.
package export

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

// Tree contains the files of an export, by slash-separated path.
type Tree map[string]file

type file struct {
	content []byte
	mode    fs.FileMode
}

// New returns the files of an export: one manifest per action and one kustomization per side. dir is the directory of the
// export, in which the commands in README.txt work.
func New(ctx context.Context, s *engine.Session, e *engine.Export, dir string) (Tree, error) {
	t := Tree{}
	resources := map[steps.Side][]string{}
	for _, side := range steps.Sides {
		objects, err := manifests(e, side)
		if err != nil {
			return nil, err
		}
		for _, act := range e.Actions {
			if act.Side != side {
				continue
			}
			for _, thing := range act.Things {
				if err := t.addFile(side, act.Action, thing); err != nil {
					return nil, err
				}
			}
			for _, name := range filesOf(act) {
				if docs := objects[name]; len(docs) > 0 {
					resources[side] = append(resources[side], name)
					t[path.Join(string(side), name)] = file{bytes.Join(docs, []byte("---\n")), 0o644}
				}
			}
		}
		slices.SortStableFunc(resources[side], func(a, b string) int { return rank(objects[a], a) - rank(objects[b], b) })
		if err := t.addKustomization(side, resources[side]); err != nil {
			return nil, err
		}
	}
	t["README.txt"] = file{[]byte(newReadme(ctx, s, e, resources, dir)), 0o644}
	return t, nil
}

func (t Tree) addFile(side steps.Side, action string, thing action.Exported) error {
	if thing.Path == "" {
		return nil
	}
	name := filePath(side, thing.Path)
	if _, twice := t[name]; twice {
		return fmt.Errorf("export %s: two actions write %s", action, name)
	}
	t[name] = file{thing.Content, 0o644}
	return nil
}

func filePath(side steps.Side, name string) string { return path.Join("files", string(side), name) }

func (t Tree) addKustomization(side steps.Side, resources []string) error {
	if len(resources) == 0 {
		return nil
	}
	b, err := yaml.Marshal(
		map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources},
	)
	t[path.Join(string(side), "kustomization.yaml")] = file{b, 0o644}
	return err
}

const crdKind = "CustomResourceDefinition"

// fileOf returns the file name for an object of the given kind. CustomResourceDefinitions are in separate files,
// because some users manage them elsewhere. Deleting one deletes all objects of its kind.
func fileOf(action, kind string) string {
	if kind == crdKind {
		return action + ".crds.yaml"
	}
	return action + ".yaml"
}

func filesOf(act engine.ExportedAction) []string {
	return []string{fileOf(act.Action, crdKind), fileOf(act.Action, "")}
}

// rank returns a sort key: namespaces first, then CustomResourceDefinitions, then all other objects.
func rank(docs [][]byte, name string) int {
	space := func(doc []byte) bool { return bytes.Contains(doc, []byte("\nkind: Namespace\n")) }
	switch {
	case slices.ContainsFunc(docs, space):
		return 0
	case strings.HasSuffix(name, ".crds.yaml"):
		return 1
	}
	return 2
}

// manifests returns the objects of a side as YAML, by file name. If two actions write the same object, it merges them,
// because a kustomization rejects duplicates.
func manifests(e *engine.Export, side steps.Side) (map[string][][]byte, error) {
	type id struct{ group, kind, namespace, name string }
	whole := map[id]map[string]any{}
	var order []id
	by := map[id]string{}
	for _, act := range e.Actions {
		for _, thing := range act.Things {
			if act.Side != side || thing.Object == nil {
				continue
			}
			o := thing.Object
			k := id{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
			if whole[k] == nil {
				whole[k], by[k] = o.Object, act.Action
				order = append(order, k)
				continue
			}
			merged, err := merge(whole[k], o.Object, "")
			if err != nil {
				return nil, fmt.Errorf("export: %s %s is written by actions %s and %s: %w", k.kind, k.name, by[k], act.Action, err)
			}
			whole[k] = merged
		}
	}
	out := map[string][][]byte{}
	for _, k := range order {
		b, err := yaml.Marshal(whole[k])
		if err != nil {
			return nil, fmt.Errorf("export %s %s: %w", k.kind, k.name, err)
		}
		name := fileOf(by[k], k.kind)
		out[name] = append(out[name], b)
	}
	return out, nil
}

// merge merges two partial versions of an object. It returns an error if both set a field to different values.
func merge(a, b map[string]any, at string) (map[string]any, error) {
	out := maps.Clone(a)
	for k, v := range b {
		where := strings.TrimPrefix(at+"."+k, ".")
		old, both := a[k]
		inner, ok := old.(map[string]any)
		more, ok2 := v.(map[string]any)
		switch {
		case !both:
			out[k] = v
		case ok && ok2:
			m, err := merge(inner, more, where)
			if err != nil {
				return nil, err
			}
			out[k] = m
		case !equal(old, v):
			return nil, fmt.Errorf("they disagree on %s", where)
		}
	}
	return out, nil
}

func equal(a, b any) bool {
	x, err := yaml.Marshal(a)
	y, err2 := yaml.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
