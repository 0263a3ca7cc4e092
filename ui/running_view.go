package ui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// view returns the progress in at most h lines. A request to the user comes first. The latest lines that fit follow.
// The current action or the result comes last.
func (r *run) view(a *app, w, h int) []string {
	if r.failed() {
		return squeeze(r.failure(a, w), h, w)
	}
	var ask, done []string
	if r.asks() {
		ask = r.askedView(a, w)
	} else {
		lines := r.lines
		if r.busy() && r.Says != "" {
			lines = lines[:len(lines)-1] // the last message is shown below with its duration
		}
		for _, l := range lines {
			sign, text, _ := strings.Cut(l, " ")
			done = append(done, hang("   "+sign+" ", wrap(text, max(1, w-6)))...)
		}
	}
	verdict := r.verdict(a, w)
	if len(ask) > h {
		ask = ask[:h]
	}
	room := h - len(ask)
	if len(verdict) > room {
		verdict = squeeze([][]string{verdict}, room, w)
	}
	if more := room - len(verdict); len(done) > more {
		done = done[len(done)-more:]
	}
	return append(append(ask, done...), verdict...)
}

// verdict returns the last lines of the progress: the current activity or the result.
func (r *run) verdict(a *app, w int) []string {
	if !r.done {
		return r.going(a, w)
	}
	text := fmt.Sprintf("%s: %s in %.1f s", r.deed.done, steps.Plural(r.Changed, "change"), r.took.Seconds())
	switch {
	case !r.Plan.Undo:
	case len(r.Plan.Held()) > 0:
		text += ". Objects that others use are kept"
	case r.Plan.Leaves():
		text += ". Some objects are kept; l shows which and why"
	case len(r.Plan.ByOthers()) > 0:
		text += ". Objects that other programs created are kept; the summary lists them"
	}
	out := hang(" "+a.t.good.Render("✓")+" ", wrap(text, max(1, w-3)))
	step := ""
	if p, ok := a.page.(*stepPage); ok {
		step = p.step().Name
	}
	if n := r.failing(a, step); n > 0 && !r.Plan.Undo {
		text := steps.Plural(n, "check") + " of this step still " + map[bool]string{true: "fails", false: "fail"}[n == 1] +
			"; esc shows the finding"
		out = append(out, hang(" "+a.t.bad.Render(engine.Failed.Glyph())+" ", wrap(text, max(1, w-3)))...)
	}
	return out
}

// going describes the progress, current activity and duration of a run that has not ended.
func (r *run) going(a *app, w int) []string {
	now := a.now()
	text, count := r.deed.doing, r.Count()
	head := a.t.accent.Render(a.spin())
	if r.stopping {
		head, text = a.t.warn.Render("!"), "stopping after the current change"
	}
	took := " · " + span(now.Sub(r.began))
	if whole := text + " · " + count; count != "" && width(whole+took)+3 <= w {
		text, count = whole, ""
	}
	line := " " + head + " " + clip(text, max(8, w-4-width(took))) + a.t.faint.Render(took)
	out := []string{clip(line, w)}
	if r.asks() {
		return out
	}
	if bar := r.bar(a, w-3); bar != "" {
		out = append(out, "   "+bar)
	}
	if text = r.inHand(a); count != "" {
		text = count + " · " + text
	}
	return append(out, hang("   ", wrap(text, max(1, w-4)))...)
}

// bar returns the progress of a run over several steps: a bar, the current step, and the one after it. For a run in one
// step, it returns "".
func (r *run) bar(a *app, w int) string {
	var all []string // names of steps, in order
	left := map[string]bool{}
	for _, p := range append(r.Done(), r.Ahead()...) {
		if !slices.Contains(all, p.Act.Step) {
			all = append(all, p.Act.Step)
		}
	}
	for _, p := range r.Ahead() {
		left[p.Act.Step] = true
	}
	if len(all) < 2 {
		return ""
	}
	slices.SortFunc(all, func(x, y string) int { return a.number(x) - a.number(y) })
	if r.Plan.Undo {
		slices.Reverse(all)
	}
	now := slices.IndexFunc(all, func(s string) bool { return left[s] })
	done := now
	if now < 0 {
		done, now = len(all), len(all)-1
	}
	text := fmt.Sprintf(" %d of %d steps", done, len(all))
	for i, word := range []string{" · now ", " · next "} {
		if now+i < len(all) {
			more := fmt.Sprintf("%s%d %s", word, a.number(all[now+i])+1, a.live.Guide().Step(all[now+i]).Title)
			if width(text+more)+12 > w {
				break
			}
			text += more
		}
	}
	return clip(a.bar(done, len(all), min(24, w-width(text)))+text, w)
}

// number returns the index of a step.
func (a *app) number(step string) int {
	return slices.IndexFunc(a.live.Guide().Steps, func(s steps.Step) bool { return s.Name == step })
}

// bar returns a progress bar of w columns.
func (a *app) bar(done, all, w int) string {
	if w < 8 || all == 0 {
		return ""
	}
	full := w * done / all
	return a.t.good.Render(strings.Repeat("█", full)) + a.t.faint.Render(strings.Repeat("░", w-full))
}

// settles is how long apply tolerates a failing check.
const settles = time.Minute

// inHand describes what a run is doing or waiting for.
func (r *run) inHand(a *app) string {
	quiet := a.now().Sub(r.heardAt)
	if c, waits := a.live.Awaits(r.Run); waits && r.Says == "" {
		return a.awaited(c, quiet)
	}
	return span(quiet) + ": " + r.doing(a)
}

func (r *run) doing(a *app) string {
	ahead := r.Ahead()
	switch {
	case r.Says != "":
		return r.Says
	case len(ahead) > 0:
		return a.overtly(ahead[0])
	}
	return "running the checks"
}

// awaited describes the check that a run waits for. It includes how long the run has waited, and the finding.
func (a *app) awaited(c steps.Cell, quiet time.Duration) string {
	guide := a.live.Guide()
	check, step := guide.Check(c.Check)
	v := a.live.Board.Verdict(c)
	found := oneLine(v.Found)
	if found == "" {
		found = "not checked yet"
	}
	since := waited(quiet, settles) // apply does not wait longer for a failing check
	switch {
	case v.Status == steps.Waiting && !v.Since.IsZero():
		since = waited(a.now().Sub(v.Since), check.Timeout)
	case v.Status == steps.Waiting:
		since = waited(quiet, max(settles, check.Timeout))
	}
	return fmt.Sprintf(
		"%s: %s. Waiting for a check on the %s side: %s (step %s)", since, found, guide.Sides[c.Side].Name, check.Title,
		step.Title,
	)
}

// failure describes a failed run in blocks. They contain what failed, what was done, and what to do next.
func (r *run) failure(a *app, w int) [][]string {
	stopped := (*engine.StoppedError)(nil)
	byUser := errors.As(r.err, &stopped) && errors.Is(r.err, context.Canceled)
	sign, text := a.t.bad.Render("✗"), a.wentWrong(r.err)
	switch {
	case byUser && r.Events == 0:
		sign, text = a.t.warn.Render("!"), "stopped by you; nothing was changed"
	case byUser:
		sign, text = a.t.warn.Render("!"), "stopped by you after "+steps.Plural(r.Events, "change")
	}
	blocks := [][]string{hang(" "+sign+" ", wrap(text, max(1, w-3)))}
	label := func(name, text string) {
		blocks = append(blocks, hang("   "+a.t.faint.Render(pad(name, 5))+" ", wrap(text, max(1, w-10))))
	}
	if r.Events > 0 {
		label("Done", r.didSoFar(a)+"; these changes are kept")
	}
	if ahead := r.Ahead(); len(ahead) > 0 && r.Events > 0 {
		label("Left", a.some(ahead))
	}
	label("Next", r.next(a))
	label("Or", a.t.key.Render(a.k.Copy.hint().key)+"  "+r.command(a))
	return blocks
}

// didSoFar describes how much a run has done, with the first completed parts.
func (r *run) didSoFar(a *app) string {
	done := r.Done()
	if len(done) == 0 {
		return steps.Plural(r.Events, "change")
	}
	return r.Count() + ": " + a.some(done)
}

// overtly formats a part of a plan for display, such as "provider: Secret a/b".
func (a *app) overtly(p model.Part) string {
	what := p.What
	if what == "" {
		what = p.Act.Title
	}
	return a.live.Role(p.Act.Side) + ": " + oneLine(what)
}

// some lists the first parts and the number of further parts.
func (a *app) some(parts []model.Part) string {
	const shown = 3
	var names []string
	for _, p := range parts {
		names = append(names, a.overtly(p))
	}
	if len(names) <= shown+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

func (a *app) wentWrong(err error) string {
	if failed := (*engine.ActionError)(nil); errors.As(err, &failed) {
		if action, _ := a.live.Guide().Action(failed.Action); action != nil {
			return oneLine(failed.Side + ": " + action.Title + ": " + failed.Plain())
		}
	}
	if stopped := (*engine.StoppedError)(nil); errors.As(err, &stopped) {
		return oneLine(stopped.Err.Error())
	}
	return oneLine(err.Error())
}

// next returns what to do after a failed run.
func (r *run) next(a *app) string {
	k := a.k
	if errors.As(r.err, new(*engine.UnsettledError)) && len(r.Ahead()) == 0 && r.step() != "" {
		return k.Esc.hint().key + " shows the failing check with its fix, " + k.Answers.hint().key + " changes the answers, " +
			k.Undo.hint().key + " undoes the changes, " + k.Log.hint().key + " is the log"
	}
	again, several := k.Apply, r.step() == ""
	switch {
	case r.Plan.Undo:
		again = k.Undo
	case r.deed.fixes:
		again = k.Fix
	case several:
		again = k.Everything
	}
	text := again.hint().key + " continues"
	if r.Events == 0 {
		text = again.hint().key + " retries"
	}
	if _, ok := a.page.(*stepPage); ok && !r.Plan.Undo && !several {
		text += ", " + k.Diff.hint().key + " shows the remaining changes"
		if r.Events > 0 {
			text += ", " + k.Undo.hint().key + " undoes the completed changes"
		}
	}
	return r.earlier(a) + text + ", " + k.Log.hint().key + " is the log"
}

// earlier returns a hint to go to the earlier step that must be applied first. If there is none, it returns "".
func (r *run) earlier(a *app) string {
	ahead, guide := r.Ahead(), a.live.Guide()
	if r.Plan.Undo || len(ahead) == 0 {
		return ""
	}
	for _, need := range guide.NeedsOf(ahead[0].Act.Action, ahead[0].Act.Side) {
		if root, masked := a.live.Board.Cause(need); masked {
			need = root
		}
		for i := range guide.Steps {
			if step := &guide.Steps[i]; step.Name == need.Step && step.Name != ahead[0].Act.Step &&
				!a.live.Board.Verdict(need).Allows() && i < 9 {
				return fmt.Sprintf("%d goes to step %s, which comes first; then ", i+1, step.Title)
			}
		}
	}
	return ""
}

// command returns the equivalent command line.
func (r *run) command(a *app) string {
	verb := "apply"
	if r.Plan.Undo {
		verb = "undo"
	}
	text := "carrick " + verb + " " + steps.Quoted(a.shortPath(a.live.Session.Link().Path))
	if step := r.step(); step != "" {
		text += " --step " + step
	} else if r.deed.fixes {
		for _, act := range r.Plan.Actions {
			if flag := " --step " + act.Step; !strings.Contains(text+" ", flag+" ") {
				text += flag
			}
		}
	}
	if conflict := (*action.ConflictError)(nil); errors.As(r.err, &conflict) {
		text += " --take-over"
	}
	return text
}

// step returns the only step of a run, or "" if there are several.
func (r *run) step() string {
	step := ""
	for _, act := range r.Plan.Actions {
		if step != "" && act.Step != step {
			return ""
		}
		step = act.Step
	}
	return step
}
