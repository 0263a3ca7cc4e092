package ui

import (
	"context"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	_ "carrick/ui/background" // keeps bubbletea from asking the terminal for its colours
	"carrick/ui/model"
)

// screen is one page of the wizard, or a panel that is laid over a page.
// update gets keys while the screen is on top, and the messages that no other
// part of the app knows. view is whole: as many lines as the terminal has.
type screen interface {
	update(tea.Msg) tea.Cmd
	view() []string
	typing() bool        // a text field has the focus: letters are letters
	pace() time.Duration // how often it has to be drawn by itself; 0: never
}

// app is the model: the page, the panels over it, and what all of them share.
type app struct {
	o Options
	t theme
	k keyMap
	skin
	ticker

	ctx    context.Context
	w, h   int
	term   abilities
	editor []string // the user's own, for long answers; nil: none is known
	dir    string   // the working directory; "": not known
	now    func() time.Time
	send   func(tea.Msg) // for commands that have more than one thing to say
	asks   bool          // the terminal is asked for its background
	asked  time.Time     // when it was

	page   screen
	panels []screen
	live   *model.Live // nil until a session is open
	run    *run        // what is being applied or taken back, or was last
	log    journal
	player *player // walks by itself; nil: nobody does
	notice string  // said in place of the totals until the next key
	left   leaving

	guarded string       // what looked like a secret when it was to be copied
	early   []tea.KeyMsg // keys that came before there was a step
}

// leaving is how the user left.
type leaving int

const (
	staying leaving = iota
	quit
	interrupted
)

// noticeMsg is for the app: something to say for a moment.
type noticeMsg struct {
	text string
	err  error
}

func (a *app) Init() tea.Cmd {
	cmd := tea.Batch(a.askGround(), a.begin())
	return tea.Batch(cmd, a.player.look(), a.ticker.at(a.pace()))
}

// Update gives a message to its one receiver.
func (a *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := a.receive(msg)
	return a, tea.Batch(cmd, a.player.look(), a.ticker.at(a.pace()))
}

func (a *app) receive(msg tea.Msg) tea.Cmd {
	if a.player.heard(msg) {
		return nil
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.w, a.h = msg.Width, a.player.sized(msg.Width, msg.Height)
		if p, ok := a.page.(interface{ resized() tea.Cmd }); ok {
			return p.resized()
		}
		return nil
	case tickMsg:
		a.over(msg)
		return nil
	case tea.KeyMsg:
		return a.pressed(msg)
	case noticeMsg:
		a.notice = msg.text
		if msg.err != nil {
			a.notice = oneLine(msg.err.Error())
			a.trouble(msg.err)
		}
		return nil
	case openedMsg:
		return a.opened(msg)
	case copyMsg:
		a.wasCopied(msg)
		return nil
	case groundMsg:
		a.grounded(msg)
		return nil
	}
	if cmd, mine := a.session(msg); mine {
		return cmd
	}
	return a.top().update(msg)
}

// session gives a message to what exists once a session is open.
func (a *app) session(msg tea.Msg) (cmd tea.Cmd, mine bool) {
	if a.live == nil {
		return nil, false
	}
	switch msg := msg.(type) {
	case turnedMsg:
		cmd = a.follow(msg.next)
	case progressMsg:
		a.run.heard(a, msg)
	case ranMsg:
		cmd = a.run.ended(a, msg)
	case forecastMsg:
		return nil, true
	case plannedMsg, answersMsg, savedMsg, takenMsg:
		return a.page.update(msg), true
	default:
		return nil, false
	}
	if p, ok := a.page.(interface{ boardMoved() tea.Cmd }); ok {
		cmd = tea.Batch(cmd, p.boardMoved())
	}
	return cmd, true
}

// turnedMsg is for the app: a chain of the board has come round.
type turnedMsg struct{ next model.Turn }

// follow runs chains of the board, a turn at a time.
func (a *app) follow(turns ...model.Turn) tea.Cmd {
	live := a.live
	var cmds []tea.Cmd
	for _, t := range turns {
		cmds = append(cmds, func() tea.Msg {
			if next, ok := live.Next(t); ok {
				return turnedMsg{next}
			}
			return nil
		})
	}
	return tea.Batch(cmds...)
}

// again has cells looked at anew because the user asked; none: all.
func (a *app) again(cells ...steps.Cell) tea.Cmd { return a.follow(a.live.Again(cells...)...) }

// top is the screen that has the keys.
func (a *app) top() screen {
	if n := len(a.panels); n > 0 {
		return a.panels[n-1]
	}
	return a.page
}

// lay puts a panel over what is there.
func (a *app) lay(s screen) tea.Cmd {
	a.panels = append(a.panels, s)
	if s, ok := s.(interface{ begin() tea.Cmd }); ok {
		return s.begin()
	}
	return nil
}

// lift takes the panel on top away.
func (a *app) lift() {
	if n := len(a.panels); n > 0 {
		a.panels = a.panels[:n-1]
	}
}

// turn goes to another page.
func (a *app) turn(s screen) tea.Cmd {
	a.page, a.panels = s, nil
	return tea.Batch(a.begin(), a.catchUp())
}

// begin is the first command of the page, if it has one.
func (a *app) begin() tea.Cmd {
	if s, ok := a.page.(interface{ begin() tea.Cmd }); ok {
		return s.begin()
	}
	return nil
}

// pressed gives a key to the screen on top, after the keys that hold
// everywhere.
func (a *app) pressed(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyRunes && len(k.Runes) > 1 && !k.Paste && !a.top().typing() { // a held key, over a slow line
		first, rest := k, k
		first.Runes, rest.Runes = k.Runes[:1], k.Runes[1:]
		return tea.Batch(a.pressed(first), a.pressed(rest))
	}
	a.notice = ""
	switch {
	case key.Matches(k, a.k.Interrupt.Binding):
		return a.interrupt()
	case key.Matches(k, a.k.Suspend.Binding):
		return tea.Suspend
	case a.top().typing():
	case key.Matches(k, a.k.Quit.Binding) && len(a.panels) > 0:
		a.lift()
		return nil
	case key.Matches(k, a.k.Quit.Binding):
		return a.leave()
	case key.Matches(k, a.k.Help.Binding) && len(a.panels) == 0:
		return a.lay(a.help())
	case key.Matches(k, a.k.Log.Binding) && len(a.panels) == 0 && a.live != nil:
		return a.lay(a.logPanel())
	case key.Matches(k, a.k.Steps.Binding) && len(a.panels) == 0 && a.stepPage() != nil:
		return a.lay(newStepsPanel(a.stepPage()))
	case key.Matches(k, a.k.Hand.Binding) && len(a.panels) == 0 && a.live != nil && !a.run.busy():
		if panel := a.handoverPanel(); panel != nil {
			return a.lay(panel)
		}
	case key.Matches(k, a.k.Trouble.Binding) && len(a.panels) == 0 && a.live != nil:
		if panel := a.troublePanel(); panel != nil {
			return a.lay(panel)
		}
	case a.tooEarly(k):
		return nil
	}
	return a.top().update(k)
}

// interrupt cancels what runs; where nothing does, it leaves.
func (a *app) interrupt() tea.Cmd {
	if a.run.busy() && !a.run.stopping {
		a.run.stop()
		a.notice = "stopping; ctrl+c again leaves at once"
		return nil
	}
	a.left = interrupted
	return tea.Quit
}

// leave quits, unless something runs.
func (a *app) leave() tea.Cmd {
	if a.run.busy() {
		a.notice = "still at work: ctrl+c stops it"
		return nil
	}
	a.left = quit
	return tea.Quit
}

// pace is how fast the screen has to move by itself.
func (a *app) pace() time.Duration {
	p := a.top().pace()
	if a.run.busy() {
		p = faster(p, spinning)
	}
	return p
}

// View is the frame: as many lines as the terminal has, none wider than it.
func (a *app) View() string {
	if a.left != staying || a.w < 1 || a.h < 1 {
		return ""
	}
	frame := fill(a.top().view(), a.h)
	for i := range frame {
		frame[i] = clip(frame[i], a.w)
	}
	for _, l := range a.player.caption() {
		frame = append(frame, clip(l, a.w))
	}
	out := strings.Join(a.t.laid(frame, a.w), "\n")
	if a.t.plain != nil {
		out = a.t.plain.Replace(out)
	}
	return out
}
