package ui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/bubbles/key"
)

// hotkey is one row of the key table. It contains the keys, one or two words for the footer, and a line for the help
// panel and ui/README.md.
type hotkey struct {
	key.Binding
	means string
}

func hot(shown, short, means string, pressed ...string) hotkey {
	return hotkey{key.NewBinding(key.WithKeys(pressed...), key.WithHelp(shown, short)), means}
}

// keyMap is the key table. The footer, the help panel and the README are generated from it.
type keyMap struct {
	Up, Down, PageUp, PageDown, Top, Bottom     hotkey
	Open, Tab, Esc, Back, Next, Jump, Filter    hotkey
	Steps, Digit, Off                           hotkey
	Apply, Diff, Undo, Fix, Answers, Again, All hotkey
	Everything                                  hotkey
	Copy, Page, Save, Log, Trouble, Hand, Map   hotkey
	Hit, HitBack, Object, ObjBack, Rest         hotkey
	Yes, No, Left, Right, Store, Edit, Omit     hotkey
	Help, Quit, Interrupt, Suspend, Pause       hotkey
}

func newKeys() keyMap {
	return keyMap{
		Up:       hot("↑ k", "up", "row up", "up", "k"),
		Down:     hot("↓ j", "down", "row down", "down", "j"),
		PageUp:   hot("pgup", "page up", "one page up", "pgup", "ctrl+u"),
		PageDown: hot("pgdn", "page down", "one page down", "pgdown", "ctrl+d"),
		Top:      hot("g", "first", "the first row", "g", "home"),
		Bottom:   hot("G", "last", "the last row", "G", "end"),
		Open:     hot("enter", "open", "open the details of this cell", "enter"),
		Tab:      hot("tab", "side", "the other side", "tab"),
		Esc:      hot("esc", "back", "back; never quits, keeps your input", "esc"),
		Back:     hot("← b", "back", "previous step", "left", "b"),
		Next:     hot("→ n", "next", "next step", "right", "n"),
		Jump: hot(
			"1…9", "step", "go to that step (1 then 0 for step 10); the number after the last step is the summary", "1", "2",
			"3", "4",
			"5", "6", "7", "8", "9",
		),
		Steps:  hot("S", "steps", "list the steps and their state", "S"),
		Digit:  hot("0", "", "", "0"), // the second digit of a step's number
		Filter: hot("/", "filter", "show only rows with this text", "/"),
		Apply:  hot("a", "apply", "apply this step: shows what would change and asks", "a"),
		Everything: hot("A", "apply all",
			"apply all that is left in all steps: shows one plan and asks", "A"),
		Diff:    hot("d", "diff", "show the diff of this step, line by line", "d"),
		Undo:    hot("u", "undo", "undo this step, on the summary all steps: shows the plan and asks", "u"),
		Fix:     hot("f", "do it", "fix only this check", "f"),
		Answers: hot("e", "answers", "the answers of this step", "e"),
		Again:   hot("r", "again", "check this cell again", "r"),
		All:     hot("R", "all again", "run all checks again", "R"),
		Copy:    hot("c", "copy", "copy the fix, or the text on screen", "c"),
		Page:    hot("o", "page", "show references", "o"),
		Save:    hot("s", "save", "save a report to a file", "s"),
		Log:     hot("l", "log", "show the log: changes and errors", "l"),
		Hand:    hot("h", "hand over", "write a facts file for the other admin; in the list of contexts: open one", "h"),
		Trouble: hot("t", "trouble", "list what is broken and what is next in all steps, causes first", "t"),
		Map:     hot("m", "map", "show the map of both sides", "m"),
		Hit:     hot("n", "next", "after / in a text: next match", "n"),
		HitBack: hot("N", "before", "after / in a text: previous match", "N"),
		Object:  hot("] tab", "next object", "in a diff: next object", "]", "tab"),
		ObjBack: hot("[", "previous object", "in a diff: previous object", "[", "shift+tab"),
		Rest:    hot(".", "unchanged", "in a diff: also show unchanged objects", "."),
		Off:     hot(".", "rows that are off", "also show the rows that an answer turns off", "."),
		Yes:     hot("y", "yes", "yes", "y", "Y"),
		No:      hot("n", "no", "no", "n", "N"),
		Left:    hot("←", "", "", "left", "h"),
		Right:   hot("→", "", "", "right", "l"),
		Store:   hot("ctrl+s", "save", "save the answers", "ctrl+s"),
		Edit:    hot("ctrl+e", "editor", "edit a long answer in your editor ($VISUAL, $EDITOR)", "ctrl+e"),
		Omit:    hot("x", "leave out", "leave out an optional side", "x"),
		Help:    hot("?", "help", "these keys", "?"),
		Quit:    hot("q", "quit", "quit; you can continue later", "q"),
		Interrupt: hot("ctrl+c", "cancel",
			"cancel what is running, then quit", "ctrl+c"),
		Pause: hot(
			"space", "pause", "pause or resume the demo; any other key pauses it, too",
			" ",
		),
		Suspend: hot("ctrl+z", "suspend", "suspend; fg returns", "ctrl+z"),
	}
}

type keyGroup struct {
	title string
	keys  []hotkey
}

// groups returns the key table in the order of the help panel and the README.
func (k keyMap) groups() []keyGroup {
	return []keyGroup{
		{"Move", []hotkey{k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom, k.Tab, k.Open, k.Esc, k.Filter, k.Off}},
		{"Steps", []hotkey{k.Back, k.Next, k.Jump, k.Steps}},
		{"Change", []hotkey{k.Answers, k.Diff, k.Apply, k.Everything, k.Fix, k.Undo}},
		{"Look", []hotkey{k.Map, k.Trouble, k.Again, k.All, k.Copy, k.Page, k.Save, k.Log, k.Hand}},
		{"In a text", []hotkey{k.Hit, k.HitBack, k.Object, k.ObjBack, k.Rest}},
		{"When asked", []hotkey{k.Yes, k.No, k.Store, k.Edit, k.Omit}},
		{"Always", []hotkey{k.Help, k.Quit, k.Interrupt, k.Suspend}},
	}
}

// KeyTable returns the key table as Markdown, for ui/README.md.
func KeyTable() string {
	var b strings.Builder
	b.WriteString("| key | what it does |\n|---|---|\n")
	for _, g := range newKeys().groups() {
		for _, k := range g.keys {
			fmt.Fprintf(&b, "| `%s` | %s |\n", k.Help().Key, k.means)
		}
	}
	return b.String()
}

// applyAllHint returns the hint for applying all steps, unless nothing is left.
func (a *app) applyAllHint() []hint {
	if a.live.Board.Count("").Green() {
		return nil
	}
	return []hint{a.k.Everything.hint()}
}

type hint struct{ key, text string }

// hint returns the first key of the hotkey with its text for the footer.
func (h hotkey) hint() hint { return hint{strings.Fields(h.Help().Key)[0], h.Help().Desc} }

// as is like hint, but with a text for the current state, such as "apply 3 changes".
func (h hotkey) as(text string) hint { return hint{h.hint().key, text} }

// footer returns a line of hints. It contains as many hints of first as fit, and all hints of last.
func (a *app) footer(first, last []hint) string {
	for {
		line := a.hints(append(append([]hint{}, first...), last...))
		if width(line) <= a.w || len(first) == 0 {
			return line
		}
		first = first[:len(first)-1]
	}
}

func (a *app) hints(list []hint) string {
	parts := make([]string, len(list))
	for i, h := range list {
		parts[i] = a.t.key.Render(h.key) + " " + a.t.faint.Render(h.text)
	}
	return " " + strings.Join(parts, "  ")
}
