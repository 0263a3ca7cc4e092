package engine

import (
	"context"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
)

// takesOver adds --take-over to a fix of the form "carrick apply LINK --step STEP" if another user has changed a file
// of that step. Without the flag, apply stops at the conflict. takesOver ignores unreadable files, because apply
// reports them.
func (s *Session) takesOver(ctx context.Context, env steps.Env, fix string) string {
	for i := range s.guide.Steps {
		step := &s.guide.Steps[i]
		if fix != env.ApplyStep(step.Name) {
			continue
		}
		if paths := s.conflicts(ctx, step); len(paths) > 0 {
			return fix + " --take-over    # overwrites " + strings.Join(paths, ", ") + ", which another user has changed"
		}
	}
	return fix
}

// conflicts returns the files of a step that another user has changed and that don't contain what carrick would write.
func (s *Session) conflicts(ctx context.Context, step *steps.Step) []string {
	var out []string
	for i := range step.Actions {
		a := &step.Actions[i]
		if end := s.ends[a.On]; end.PeerFile != nil || end.absent() {
			continue
		}
		env := s.env(ctx, a.On, &usage{})
		env.Action = a.Name
		if env.Host == nil || !a.Wanted(step, env) {
			continue
		}
		if path := action.ChangedByOthers(ctx, env, a.Doer); path != "" {
			out = append(out, steps.Quoted(path))
		}
	}
	return out
}
