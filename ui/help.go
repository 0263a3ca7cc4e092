package ui

import (
	"carrick/steps/engine"
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
			head := "  " + a.t.sign(s.state) + " " + pad(s.word, 8)
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

// signs lists the states with their descriptions in the help.
var signs = []struct {
	state engine.State
	word  string
	means string
}{
	{engine.OK, "ok", "passes"},
	{engine.Failed, "FAIL", "something is broken; enter shows what to do"},
	{engine.ToDo, "to do", "carrick or you have not done this yet"},
	{engine.Later, "later", "blocked by a check that does not pass yet"},
	{engine.Warning, "warn", "passes with a warning"},
	{engine.Unknown, "unknown", "could not be checked: not a pass"},
	{engine.Off, "off", "an answer makes it not applicable; . shows such rows"},
	{engine.Skipped, "skip", "not checked; enter shows why"},
	{engine.InProgress, "3 s", "in progress, with the elapsed time"},
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
