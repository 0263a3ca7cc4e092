package ui

import (
	"carrick/steps"
)

// help returns the panel that lists the keys below a description of the covered screen. The list is generated from the
// key table.
func (a *app) help() screen {
	return a.pager("Keys", func(w int) []string {
		var out []string
		if s, ok := a.page.(interface{ about() string }); ok {
			out = append(out, wrap(s.about(), w)...)
			out = append(out, "")
		}
		if len(a.o.Notes) > 0 {
			out = append(append(out, a.noteLines(w)...), "")
		}
		groups := a.k.groups()
		if a.player != nil {
			groups = append([]keyGroup{{"During autoplay", []hotkey{a.k.Pause}}}, groups...)
		}
		for _, g := range groups {
			out = append(out, a.t.title.Render(g.title))
			out = append(append(out, a.keyLines(g.keys, w)...), "")
		}
		out = append(out, a.t.title.Render("Signs"))
		for _, s := range signs {
			head := "  " + a.t.ink(s.status).Render(glyph(s.status)) + " " + pad(s.word, 8)
			out = append(out, hang(head, wrap(s.means, max(1, w-width(head))))...)
		}
		return out
	})
}

func (a *app) keyLines(keys []hotkey, w int) []string {
	var out []string
	for _, k := range keys {
		head := "  " + pad(k.Help().Key, 8) + " "
		out = append(out, hang(a.t.key.Render(head), wrap(k.means, max(1, w-width(head))))...)
	}
	return out
}

// signs lists the statuses with their descriptions in the help.
var signs = []struct {
	status steps.Status
	word   string
	means  string
}{
	{steps.Pass, "ok", "passes"},
	{steps.Fail, "FAIL", "fails; enter shows what to do"},
	{steps.Warn, "warn", "passes with a warning"},
	{steps.Unknown, "unknown", "could not be checked: not a pass"},
	{steps.Skip, "skip", "not checked; enter shows why"},
	{steps.Waiting, "3 s", "in progress, with the elapsed time"},
}

func (a *app) noteLines(w int) []string {
	var out []string
	for _, n := range a.o.Notes {
		for _, l := range wrap(oneLine(n), max(1, w-3)) {
			out = append(out, "   "+a.t.faint.Render(l))
		}
	}
	return out
}
