package ui

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
)

// copyLimit is the maximum length of copied text in bytes. Some terminals silently truncate or drop longer text.
const copyLimit = 70_000

// secretLooking matches text that might contain a secret. carrick should never show a secret, but text from a cluster
// can contain one.
var secretLooking = regexp.MustCompile(
	`PRIVATE KEY-----|client-key-data:|\beyJ[\w-]{16,}\.eyJ[\w-]{16,}|(?i)\b(password|token|secret)["']?\s*[:=]\s*["']?[\w+/-]{16,}`,
)

// copyMsg reports the result of a copy to the app.
type copyMsg struct {
	said string // the notice about the result
	text string
	err  error
}

// copy puts text on the clipboard of the user's terminal. A terminal can silently refuse this, so the notice also shows
// as much of the text as fits.
func (a *app) copy(text string) tea.Cmd { return a.copyOr(text, "text") }

// copyOr is like copy. If the text is too long, the notice suggests the save key. kind names the text in that notice.
func (a *app) copyOr(text, kind string) tea.Cmd {
	text = strings.TrimRight(strings.Join(manyLines(text), "\n"), "\n ")
	_, saves := a.top().(interface{ saveKind() string })
	switch guarded := a.guarded; {
	case text == "":
		a.notice = "there is nothing to copy here"
		return nil
	case len(text) > copyLimit && saves:
		a.notice = fmt.Sprintf(
			"%d kB is too much for a terminal's clipboard; %s saves the %s to a file", len(text)/1000, a.k.Save.hint().key,
			kind,
		)
		return nil
	case len(text) > copyLimit:
		a.notice = fmt.Sprintf("%d kB is too much for a terminal's clipboard", len(text)/1000)
		return nil
	case secretLooking.MatchString(text) && guarded != text:
		a.guarded = text
		a.notice = fmt.Sprintf("the text may contain a secret: press %s again to copy it", a.k.Copy.hint().key)
		return nil
	}
	a.guarded = ""
	term, out := a.term, a.o.Out
	return func() tea.Msg {
		seq, said := term.sequence(text)
		// A single write ensures that the sequence does not end up inside a frame.
		if _, err := io.WriteString(out, seq); seq != "" && err != nil {
			return copyMsg{err: fmt.Errorf("copy: %w", err)}
		}
		return copyMsg{said: said, text: text}
	}
}

func (a *app) wasCopied(m copyMsg) {
	if m.err != nil {
		a.notice = oneLine(m.err.Error())
		a.trouble(m.err)
		return
	}
	first, _, more := strings.Cut(m.text, "\n")
	if more {
		m.said += " " + steps.Plural(strings.Count(m.text, "\n")+1, "line")
		first += " …"
	}
	a.notice = m.said + ": " + first
}

// pagePanel returns a panel with addresses for further reading. The addresses are shown in full, and as links if the
// terminal supports links.
func (a *app) pagePanel(title string, addresses []string) screen {
	p := a.pager(title, func(w int) []string {
		var out []string
		for _, s := range addresses {
			s = oneLine(s)
			if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
				out = append(out, wrap(s, w)...)
				continue
			}
			out = append(out, putAddress(nil, s, w, a.term)...)
		}
		return out
	})
	p.copy = func() string { return strings.Join(addresses, "\n") }
	return p
}
