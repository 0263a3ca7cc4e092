package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
)

// portalUndo edits ood_portal.yml and can undo the edit. If the file has changed since the edit, the plan lists the
// lines that the user must remove manually.
type portalUndo struct{ editedFile }

func portalDoer() portalUndo {
	return portalUndo{editedFile{
		File: action.File{
			Path: portalFile, Mode: 0o600, Secret: true, Content: portalText,
			Freed: func(have []byte) bool { return !callsPreHook(have) },
		},
		redact: redactPortal,
	}}
}

func (f portalUndo) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := f.editedFile.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	for i := range c.Items {
		if it := &c.Items[i]; it.Left {
			lines, err := setInPortal(ctx, e)
			if err != nil {
				return c, err
			}
			if len(lines) == 0 { // the lines to remove are unknown
				continue
			}
			it.Note += "; remove these lines from the file manually: " + strings.Join(lines, ", ") + "; then run " +
				updatePortal +
				", restart the web server, and undo again"
		}
	}
	return c, nil
}

// Undo restores the file, unless the plan leaves it unchanged.
func (f portalUndo) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	return undoUnlessLeft(ctx, e, say, f.PlanUndo, f.editedFile.Undo)
}

type (
	planUndo func(context.Context, steps.Env) (steps.Change, error)
	undo     func(context.Context, steps.Env, steps.Progress) error
)

func undoUnlessLeft(ctx context.Context, e steps.Env, say steps.Progress, plan planUndo, do undo) error {
	c, err := plan(ctx, e)
	if err != nil {
		return err
	}
	for _, it := range c.Items {
		if it.Left {
			say.Say("%s is left unchanged: it %s", it.What, it.Note)
			return nil
		}
	}
	return do(ctx, e, say)
}

// setInPortal returns the lines that carrick added to ood_portal.yml and that have not changed since. It returns nil if
// the file or carrick's backup is not valid YAML.
func setInPortal(ctx context.Context, e steps.Env) ([]string, error) {
	var texts [2]map[string]any
	for i, at := range []string{portalFile, portalBefore(e)} {
		b, err := e.Host.Read(ctx, at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if texts[i], err = portalValues(string(b)); err != nil {
			return nil, nil
		}
	}
	now, before := texts[0], texts[1]
	var out []string
	if hookCalled(now) && !hookCalled(before) {
		command, _ := now[hookKey].(string)
		out = append(out, byHandPortal(portalSetting{[]string{hookKey}, command}))
	}
	for _, s := range []portalSetting{
		{[]string{"pun_pre_hook_exports"}, strings.Join(tokenExports, ",")},
		{[]string{"oidc_settings", "OIDCPassRefreshToken"}, "On"},
		{[]string{"node_uri"}, "/node"},
		{[]string{"rnode_uri"}, "/rnode"},
	} {
		if portalSays(now, s) && !portalSays(before, s) {
			out = append(out, byHandPortal(s))
		}
	}
	return out, nil
}

// portalBefore returns the path of carrick's backup of ood_portal.yml.
func portalBefore(e steps.Env) string { return portalFile + ".before-" + e.Link }

func callsPreHook(text []byte) bool {
	values, err := portalValues(string(text))
	if err != nil {
		return strings.Contains(string(text), preHook)
	}
	return hookCalled(values)
}

// hookKey is the key in ood_portal.yml for the hook command, which the portal runs as root.
const hookKey = "pun_pre_hook_root_cmd"

// hookCalled reports whether the hook command in ood_portal.yml contains the path of carrick's hook, even as an
// argument of another program.
func hookCalled(values map[string]any) bool {
	command, _ := values[hookKey].(string)
	return slices.Contains(strings.Fields(command), preHook)
}

// preHookFile is carrick's hook. Undo keeps the file as long as ood_portal.yml calls the hook.
type preHookFile struct {
	action.File
	portal portalUndo
}

func (f preHookFile) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := f.File.PlanUndo(ctx, e)
	if err != nil || len(c.Items) == 0 {
		return c, err
	}
	called, err := f.called(ctx, e)
	if err != nil || !called {
		return c, err
	}
	for i := range c.Items {
		if it := &c.Items[i]; it.What == f.Path && !it.Left {
			it.Verb, it.Left = steps.Leave, true
			it.Note = fmt.Sprintf(
				"is kept while %s names this hook: remove pun_pre_hook_root_cmd from that file, then undo again",
				portalFile,
			)
		}
	}
	return c, nil
}

// called reports whether ood_portal.yml still calls the hook after the undo of portalUndo. That undo runs before the
// undo of preHookFile.
func (f preHookFile) called(ctx context.Context, e steps.Env) (bool, error) {
	e.Action = "portal"
	c, err := f.portal.PlanUndo(ctx, e)
	if err != nil {
		return false, err
	}
	at := portalFile
	for _, it := range c.Items {
		switch {
		case it.What == portalFile && it.Verb == steps.Delete:
			return false, nil
		case it.What == portalFile && it.Verb == steps.Update:
			at = portalBefore(e)
		}
	}
	b, err := e.Host.Read(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && callsPreHook(b), err
}

// Undo deletes the hook, unless the plan leaves it unchanged.
func (f preHookFile) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	return undoUnlessLeft(ctx, e, say, f.PlanUndo, f.File.Undo)
}
