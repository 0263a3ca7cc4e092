package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// handover is the panel that writes a facts file. It asks for the file and the recipient. It then shows the content of
// the file and which admin must continue.
type handover struct {
	a      *app
	side   steps.Side
	here   []steps.Side
	inputs []textinput.Model // the file and the recipient
	at     int
	ask    []string // what to request from the other admin; nil if nothing
	busy   bool
	said   string
	done   *engine.WrittenFile
}

type handedMsg struct {
	done *engine.WrittenFile
	err  error
}

// handAskMsg contains what to request from the other admin.
type handAskMsg []string

// handoverPanel returns the handover panel for the side of the selected cell. If the user has no context for that side,
// handoverPanel uses the other side. If the user has no context for either side, it returns nil.
func (a *app) handoverPanel() screen {
	s := a.live.Session
	h := &handover{a: a, here: s.Here(), inputs: []textinput.Model{textinput.New(), textinput.New()}}
	if len(h.here) == 0 {
		a.notice = "you have no context for either side, so there are no facts to hand over"
		return nil
	}
	h.side = h.here[0]
	if p := a.stepPage(); p != nil && slices.Contains(h.here, p.side()) {
		h.side = p.side()
	}
	for i := range h.inputs {
		h.inputs[i].Prompt = ""
		a.t.dress(&h.inputs[i])
	}
	h.inputs[0].SetValue(s.HandoverFile(h.side))
	h.inputs[0].CursorEnd()
	return h
}

func (h *handover) begin() tea.Cmd {
	ctx, s, here := h.a.ctx, h.a.live.Session, h.here
	ask := func() tea.Msg {
		if len(here) != 1 {
			return handAskMsg(nil)
		}
		return handAskMsg(s.NextTurn(ctx, here[0]))
	}
	return tea.Batch(h.inputs[0].Focus(), ask)
}

func (h *handover) typing() bool { return h.done == nil }

func (h *handover) pace() time.Duration {
	if h.busy {
		return spinning
	}
	return 0
}

func (h *handover) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case handAskMsg:
		h.ask = msg
		return nil
	case handedMsg:
		h.busy, h.done = false, msg.done
		if msg.err != nil {
			h.said = msg.err.Error()
			h.a.trouble(msg.err)
		} else {
			h.a.log.note(h.a.now(), "wrote "+msg.done.Path)
		}
		return nil
	case tea.KeyMsg:
		return h.pressed(msg)
	}
	return h.typed(msg)
}

func (h *handover) typed(msg tea.Msg) (cmd tea.Cmd) {
	h.inputs[h.at], cmd = h.inputs[h.at].Update(msg)
	return cmd
}

func (h *handover) pressed(k tea.KeyMsg) tea.Cmd {
	keys := h.a.k
	switch {
	case h.busy:
		return nil
	case key.Matches(k, keys.Esc.Binding), h.done != nil && key.Matches(k, keys.Open.Binding):
		h.a.lift()
		return nil
	case h.done != nil && key.Matches(k, keys.Copy.Binding):
		return h.a.copy(strings.Join(append(slices.Clone(h.done.Says), h.ask...), "\n"))
	case h.done != nil:
		return nil
	case key.Matches(k, keys.Tab.Binding) && len(h.here) > 1:
		return h.otherSide()
	case k.Type == tea.KeyUp || k.Type == tea.KeyDown, key.Matches(k, keys.Open.Binding) && h.at == 0:
		return h.focus(1 - h.at)
	case key.Matches(k, keys.Open.Binding):
		return h.write()
	}
	h.said = ""
	return h.typed(k)
}

func (h *handover) focus(at int) tea.Cmd {
	h.inputs[h.at].Blur()
	h.at = at
	return h.inputs[at].Focus()
}

// otherSide switches to the other side. It keeps a file name that the user typed.
func (h *handover) otherSide() tea.Cmd {
	s := h.a.live.Session
	usual := h.inputs[0].Value() == s.HandoverFile(h.side)
	h.side = h.side.Peer()
	if usual {
		h.inputs[0].SetValue(s.HandoverFile(h.side))
		h.inputs[0].CursorEnd()
	}
	return nil
}

// handWithin is the timeout for reading the facts of a side.
const handWithin = time.Minute

func (h *handover) write() tea.Cmd {
	o := engine.HandoverOptions{Side: h.side, File: strings.TrimSpace(h.inputs[0].Value())}
	if to := strings.TrimSpace(h.inputs[1].Value()); to != "" {
		who, err := engine.RecipientsOf(to)
		if err != nil {
			h.said = err.Error()
			return nil
		}
		o.To = who
	}
	h.busy, h.said = true, ""
	parent, s := h.a.ctx, h.a.live.Session
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, handWithin)
		defer cancel()
		done, err := s.WriteHandover(ctx, o)
		return handedMsg{done, err}
	}
}

func (h *handover) view() []string {
	a, w := h.a, max(1, h.a.w-2)
	var body []string
	if h.done != nil {
		body = append(body, hang(" "+a.t.good.Render("✓")+" ", wrap("wrote "+oneLine(h.done.Path), max(1, w-3)))...)
		for _, line := range h.done.Says {
			body = append(body, hang("   ", wrap(line, max(1, w-3)))...)
		}
	} else {
		body = h.fields(w)
	}
	if len(h.ask) > 0 {
		body = append(append(body, ""), " "+a.t.title.Render("Then"))
		for _, line := range h.ask {
			body = append(body, hang(" - ", wrap(oneLine(line), max(1, w-3)))...)
		}
	}
	if n := a.panelHeight(); len(body) > n {
		body = body[:n]
	}
	return a.panelFrame("Hand over the "+a.live.Guide().Sides[h.side].Name, "", body, h.foot())
}

func (h *handover) fields(w int) []string {
	a := h.a
	out := wrap(
		" The other admin gets these facts in a file, without your credentials. Secrets are encrypted for the recipient "+
			"you name, or left out.",
		w,
	)
	if a.h < middleFrom {
		out = nil
	}
	for i, title := range []string{"file", "secrets for"} {
		mark := " "
		if i == h.at {
			mark = a.t.accent.Render("▸")
		}
		h.inputs[i].Width = max(1, w-18)
		typed := h.inputs[i].View()
		if i == 1 && h.inputs[i].Value() == "" && h.at != i {
			typed = a.t.faint.Render("none")
		}
		out = append(out, " "+mark+" "+pad(title, 12)+" "+typed)
	}
	out = append(
		out,
		"   "+
			a.t.faint.Render(
				clip("an age recipient (age1…), an SSH public key, or @FILE; empty: leave secrets out", max(1, w-3)),
			),
	)
	if h.said != "" {
		out = append(out, hang(" "+a.t.bad.Render("✗")+" ", wrap(oneLine(h.said), max(1, w-3)))...)
	}
	return out
}

func (h *handover) foot() string {
	a := h.a
	switch {
	case h.busy:
		return a.footer([]hint{{a.spin(), "reading the facts"}}, nil)
	case h.done != nil:
		return a.footer([]hint{a.k.Esc.as("close"), a.k.Copy.hint()}, []hint{a.k.Quit.as("close")})
	}
	enter := a.k.Open.as("write")
	if h.at == 0 {
		enter = a.k.Open.as("next")
	}
	first := []hint{enter, {"↑↓", "move"}, a.k.Esc.as("cancel")}
	if len(h.here) > 1 {
		first = append(first, a.k.Tab.as("the other side"))
	}
	return a.footer(first, nil)
}
