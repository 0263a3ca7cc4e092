package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/steps"
)

func (a *app) export() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "export LINK DIR", Short: "Manifests and files for those who apply them with other tools",
		Long: "Writes what apply would make: DIR/local and DIR/remote with a kustomization each, DIR/files, and\nDIR/README.txt with what is done by hand and which secrets are left out. It changes nothing in a\ncluster. Exit code 5: something can't be known yet, and is not in it.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("name one link file and one folder: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runExport(cmd.Context(), args[0], args[1], force)
		},
	}
	a.secrets.add(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "write into a folder that is not empty: replaces local, remote, files and README.txt in it")
	return cmd
}

func (a *app) runExport(ctx context.Context, link, dir string, force bool) error {
	if err := roomFor(dir, force); err != nil {
		return err
	}
	s, err := a.open(ctx, link, cluster.Options{Once: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if missing := s.Missing(ctx); len(missing) > 0 {
		return &steps.MissingError{Questions: missing}
	}
	e, err := s.Export(ctx)
	if err != nil {
		return err
	}
	tree, err := exportTree(ctx, s, e)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := writeTree(dir, tree, force); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintln(a.out, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return a.sayLeft(s, e)
}

// sayLeft tells what an export lacks.
func (a *app) sayLeft(s *steps.Session, e *steps.Export) error {
	pending := false
	for _, act := range e.Actions {
		role := s.Guide().Sides[act.Side].Name
		say := func(how, what string) {
			fmt.Fprintf(a.err, "%s: %s: %s (step %s)\n", role, how, oneLine(cluster.Clean(what)), act.Step)
		}
		if act.Pending != "" {
			say("not known yet", act.Title+": "+act.Pending)
			pending = true
		}
		for _, t := range act.Things {
			if t.Left != "" {
				say("secret left out", t.Left)
			}
			if t.Hand != "" {
				say("by hand", t.Hand)
			}
		}
	}
	for _, side := range steps.Sides {
		if absent := s.End(side).Absent; absent != "" {
			fmt.Fprintf(a.err, "%s: nothing is exported for this side: %s\n", s.Guide().Sides[side].Name, absent)
			pending = true
		}
	}
	if pending {
		return verdict(exitUnknown)
	}
	return nil
}

// tree is what an export writes, by path with slashes.
type tree map[string]exportFile

type exportFile struct {
	content []byte
	mode    fs.FileMode
}

// exportTree lays an export out: an asset an action, a kustomization a side.
func exportTree(ctx context.Context, s *steps.Session, e *steps.Export) (tree, error) {
	t := tree{}
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
			if docs := objects[act.Action]; len(docs) > 0 {
				name := act.Action + ".yaml"
				resources[side] = append(resources[side], name)
				t[path.Join(string(side), name)] = exportFile{bytes.Join(docs, []byte("---\n")), 0o644}
			}
		}
		if err := t.addKustomization(side, resources[side]); err != nil {
			return nil, err
		}
	}
	t["README.txt"] = exportFile{[]byte(exportReadme(ctx, s, e, resources)), 0o644}
	return t, nil
}

func (t tree) addFile(side steps.Side, action string, thing steps.Exported) error {
	if thing.Path == "" {
		return nil
	}
	name := exportPath(side, thing.Path)
	if _, twice := t[name]; twice {
		return fmt.Errorf("export %s: two actions give %s", action, name)
	}
	t[name] = exportFile{thing.Content, 0o644}
	return nil
}

func exportPath(side steps.Side, name string) string { return path.Join("files", string(side), name) }

func (t tree) addKustomization(side steps.Side, resources []string) error {
	if len(resources) == 0 {
		return nil
	}
	b, err := yaml.Marshal(map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources})
	t[path.Join(string(side), "kustomization.yaml")] = exportFile{b, 0o644}
	return err
}

// manifests are the objects of a side as YAML, by action. An object that two
// actions write stands once, with what both say: a kustomization takes no
// object twice.
func manifests(e *steps.Export, side steps.Side) (map[string][][]byte, error) {
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
		out[by[k]] = append(out[by[k]], b)
	}
	return out, nil
}

// merge puts two parts of one object together; where they disagree is an error.
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
