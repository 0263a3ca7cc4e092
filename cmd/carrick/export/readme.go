package export

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"carrick/cluster/clean"
	"carrick/cmd/carrick/plain"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// instructions writes the README.txt of an export. It contains no timestamps, so that exports are reproducible. Only
// commands are indented by eight spaces.
type instructions struct {
	strings.Builder
	s         *engine.Session
	e         *engine.Export
	resources map[steps.Side][]string
	file      string // path of the link file from the export's directory, quoted for a shell
}

// newReadme returns README.txt. Its commands work in dir, the directory of the export.
func newReadme(
	ctx context.Context, s *engine.Session, e *engine.Export, resources map[steps.Side][]string, dir string,
) string {
	link := s.Link()
	r := &instructions{s: s, e: e, resources: resources, file: steps.Quoted(linkFrom(dir, link))}
	r.line(
		0, "%s, link %s: everything that carrick would create, for use with other tools.", s.Guide().Title, link.Name(),
	)
	r.line(
		0,
		"It contains no secret, so you can commit it to a repository. Its objects do not have\ncarrick's labels, so "+
			"carrick undo does not delete them.",
	)
	r.sections(ctx)
	return r.String()
}

// linkFrom returns the path of the link file from a directory.
func linkFrom(dir string, link *linkfile.Link) string {
	if link.Path == "" {
		return link.Name() + ".yaml"
	}
	from, err := filepath.Abs(dir)
	if err != nil {
		return link.Path
	}
	to, err := filepath.Abs(link.Path)
	if err != nil {
		return link.Path
	}
	if rel, err := filepath.Rel(physical(from), physical(to)); err == nil {
		return filepath.ToSlash(rel)
	}
	return to
}

// physical resolves the symbolic links in the part of an absolute path that exists. A shell that is in a directory
// resolves .. from there.
func physical(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(physical(parent), filepath.Base(path))
}

func (r *instructions) sections(ctx context.Context) {
	number := 0
	title := func(format string, args ...any) {
		number++
		r.line(0, "\n%d. "+format, append([]any{number}, args...)...)
	}
	if r.apply(ctx, title) {
		r.guard()
	}
	for _, side := range steps.Sides {
		if absent := r.s.Endpoint(side).Absent; absent != "" {
			r.line(0, "\nThe %s: nothing is exported, because %s.", r.role(side), plain.OneLine(clean.Text(absent)))
		}
	}
	if slices.ContainsFunc(
		r.e.Actions, func(a engine.ExportedAction) bool { return ByHand(a) || secretsOf(a) != nil || a.Pending != "" },
	) {
		title("Manual steps, in this order, in a shell in this directory")
		r.line(
			0,
			"carrick can run each step instead. It checks first, and asks for confirmation.\n%s is the path of the link file.",
			r.file,
		)
		for _, act := range r.e.Actions {
			r.byHand(act)
		}
	}
	title("Check the result")
	kept, keys := r.secretKeys()
	if len(keys) > 0 {
		r.line(8, "# with --secret KEY=@FILE it checks more; the keys are: %s", strings.Join(keys, ", "))
	}
	r.line(8, "carrick check %s --wait 2m%s", r.file, kept)
	title("Contents, in the order of the guide")
	r.contents()
}

// apply explains how to apply the manifests with kubectl and with GitOps tools. The returned bool reports whether the
// export has manifests.
func (r *instructions) apply(ctx context.Context, title func(string, ...any)) (any bool) {
	for _, side := range steps.Sides {
		if len(r.resources[side]) == 0 {
			continue
		}
		if !any {
			title("Apply")
			any = true
		}
		r.line(2, "The %s:", r.role(side))
		for _, name := range r.before(side) {
			r.line(8, "%s apply --server-side -f %s/%s", r.s.Kubectl(ctx, side), side, name)
			// kubectl wait fails while a CustomResourceDefinition has no conditions at all.
			r.line(
				8, "for try in 1 2 3 4 5; do %s wait --for=condition=Established -f %s/%s && break; sleep 1; done",
				r.s.Kubectl(ctx, side), side, name,
			)
		}
		r.line(8, "%s apply --server-side -k %s", r.s.Kubectl(ctx, side), side)
	}
	if spaces := r.namespaces(); len(spaces) > 0 {
		r.line(2, "A dry run (--dry-run=server) fails until these namespaces exist: %s.", strings.Join(spaces, ", "))
	}
	if any {
		r.line(
			2,
			"If carrick or Helm already created some of these objects, add --force-conflicts.\n  Objects that carrick created "+
				"keep its labels: carrick undo deletes them, even if another tool applied them since.",
		)
	}
	return any
}

// namespaces returns the namespaces that must exist before a dry run, which creates none of them.
func (r *instructions) namespaces() []string {
	var out []string
	for _, side := range steps.Sides {
		r.objects(side, func(_ engine.ExportedAction, t action.Exported) {
			name := t.Object.GetNamespace()
			if t.Object.GetKind() == "Namespace" {
				name = t.Object.GetName()
			}
			if name != "" {
				out = append(out, name)
			}
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// before returns the files with CustomResourceDefinitions that other objects on the same side use.
func (r *instructions) before(side steps.Side) []string {
	used := map[string]bool{}
	r.objects(side, func(_ engine.ExportedAction, t action.Exported) {
		k := t.Object.GroupVersionKind()
		used[k.Group+"/"+k.Kind] = true
	})
	var out []string
	r.objects(side, func(act engine.ExportedAction, t action.Exported) {
		spec, _ := t.Object.Object["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		name := fileOf(act.Action, crdKind)
		if t.Object.GetKind() == crdKind && used[fmt.Sprint(spec["group"], "/", names["kind"])] &&
			!slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	return out
}

// guard explains how to configure GitOps tools for the export.
func (r *instructions) guard() {
	var danger []string
	for _, side := range steps.Sides {
		r.objects(side, func(_ engine.ExportedAction, t action.Exported) {
			if k := t.Object.GetKind(); k == crdKind || k == "Namespace" {
				danger = append(danger, k+" "+t.Object.GetName())
			}
		})
	}
	r.line(
		2,
		"With Argo CD: one Application per directory, with the sync option ServerSideApply=true, because\n  large "+
			"definitions are too big for client-side apply. With Flux: one Kustomization per directory.",
	)
	if len(danger) > 0 {
		r.line(
			2,
			"Deleting one of these deletes everything in it, or all objects of its kind. Turn pruning\n  off for them (Argo "+
				"CD: argocd.argoproj.io/sync-options: Prune=false; Flux:\n  kustomize.toolkit.fluxcd.io/prune: disabled):",
		)
		for _, d := range danger {
			r.line(4, "%s", d)
		}
	}
}

func (r *instructions) objects(side steps.Side, do func(engine.ExportedAction, action.Exported)) {
	for _, act := range r.e.Actions {
		for _, t := range act.Things {
			if act.Side == side && t.Object != nil {
				do(act, t)
			}
		}
	}
}

func (r *instructions) byHand(act engine.ExportedAction) {
	left := secretsOf(act)
	if !ByHand(act) && left == nil && act.Pending == "" {
		return
	}
	r.line(2, "\n  %s: %s", r.role(act.Side), act.Title)
	if act.Pending != "" {
		r.line(4, "not known yet: %s; export again later, or:", act.Pending)
	}
	for _, l := range left {
		r.line(4, "secret, left out: %s", l)
	}
	for _, t := range act.Things {
		if t.Hand != "" {
			r.line(8, "%s", t.Hand)
		}
	}
	word := "or:"
	if !ByHand(act) {
		word = "with carrick:"
	}
	r.line(4, "%s carrick apply %s --step %s", word, r.file, act.Step)
}

func (r *instructions) contents() {
	step := ""
	for _, act := range r.e.Actions {
		lines := contentsOf(act)
		if len(lines) == 0 {
			continue
		}
		if act.Step != step {
			step = act.Step
			r.line(0, "\n%s", r.s.Guide().Step(step).Title)
		}
		r.line(2, "%s: %s", r.role(act.Side), act.Title)
		for _, l := range lines {
			r.line(4, "%s", l)
		}
	}
}

func contentsOf(act engine.ExportedAction) []string {
	var out []string
	for _, t := range act.Things {
		line := ""
		switch {
		case t.Object != nil:
			line = path.Join(string(act.Side), fileOf(act.Action, t.Object.GetKind()))
		case t.Path != "":
			if line = filePath(act.Side, t.Path); t.Mode != 0 {
				line += fmt.Sprintf("  copy to /%s, mode %04o", t.Path, t.Mode)
			}
		case t.Note != "":
			line = t.Note
		}
		if line != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// ByHand reports whether part of the action must be done manually.
func ByHand(act engine.ExportedAction) bool {
	return slices.ContainsFunc(act.Things, func(t action.Exported) bool { return t.Hand != "" })
}

func secretsOf(act engine.ExportedAction) (out []string) {
	for _, t := range act.Things {
		if t.Left != "" {
			out = append(out, t.Left)
		}
	}
	return out
}

// secretKeys returns the flags for the secret answers that the commands above keep in a file, and the keys of the other
// secret answers. They are never in a link file.
func (r *instructions) secretKeys() (kept string, others []string) {
	for _, step := range r.s.Guide().Steps {
		for _, q := range step.Ask {
			switch {
			case !q.Secret:
			case q.ExportFile != "" && strings.Contains(r.String(), q.ExportFile):
				kept += " --secret " + q.Key + "=@" + q.ExportFile
			default:
				others = append(others, q.Key)
			}
		}
	}
	return kept, others
}

func (r *instructions) role(side steps.Side) string { return r.s.Guide().Sides[side].Name }

// line writes text with the given indentation. With an indentation of 4 to 7, continuation lines get two more spaces.
// With 8 or more, they get the same indentation, because they are commands.
func (r *instructions) line(indent int, format string, args ...any) {
	lead := strings.Repeat(" ", indent)
	text := clean.Text(fmt.Sprintf(format, args...))
	if indent >= 4 && indent < 8 {
		text = strings.ReplaceAll(text, "\n", "\n"+lead+"  ")
	} else if indent >= 8 {
		text = strings.ReplaceAll(text, "\n", "\n"+lead)
	}
	if strings.HasPrefix(text, "\n") {
		lead = ""
	}
	r.WriteString(lead + text + "\n")
}
