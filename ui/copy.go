package ui

import (
	"fmt"
	"io"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

// copy puts a text on the clipboard of the user's own terminal (OSC 52), which
// works through ssh. Terminals may refuse without a word, so a text of many
// lines is shown as well, without a frame, to be marked by hand.
func (a *app) copy(text string) tea.Cmd {
	text = strings.TrimRight(strings.Join(manyLines(text), "\n"), "\n ")
	if text == "" {
		a.notice = "there is nothing to copy here"
		return nil
	}
	out := a.o.Out
	write := func() tea.Msg {
		// One write, so that it can't land inside a frame.
		if _, err := io.WriteString(out, ansi.SetSystemClipboard(text)); err != nil {
			return noticeMsg{err: fmt.Errorf("copy: %w", err)}
		}
		return nil
	}
	n := strings.Count(text, "\n") + 1
	if n == 1 {
		a.notice = "copied: " + text
		return write
	}
	a.notice = "copied " + plural(n, "line")
	if _, ok := a.top().(*pager); ok {
		return write
	}
	shown := a.pager("Copied", func(int) []string { return strings.Split(text, "\n") })
	shown.copy = func() string { return text }
	return tea.Batch(write, a.lay(shown))
}

// pagePanel shows where to read on. The addresses are links where the terminal
// knows links.
func (a *app) pagePanel(title string, addresses []string) screen {
	return a.pager(title, func(w int) []string {
		var out []string
		for _, s := range addresses {
			s = oneLine(s)
			if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
				out = append(out, wrap(s, w)...)
				continue
			}
			out = append(out, ansi.SetHyperlink(s)+clip(s, w)+ansi.ResetHyperlink())
		}
		return out
	})
}
