package ui

import (
	"context"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	_ "carrick/ui/background" // prevents bubbletea from querying the terminal's colors
	"carrick/ui/model"
)

// screen is one page of the wizard, or a panel over a page. While the screen is on top, update receives keys and all
// messages that no other part of the app handles. view returns as many lines as the terminal has.
type screen interface {
	update(tea.Msg) tea.Cmd
	view() []string
	typing() bool        // reports whether a text field has the focus, so that letters are text and not hotkeys
	pace() time.Duration // interval at which the screen must be redrawn without a message; 0 means never
}

// app is the bubbletea model. It contains the page, the panels over it, and the state that they share.
type app struct {
	o Options
	t theme
	k keyMap
	skin
	ticker

	ctx    context.Context
	w, h   int
	term   abilities
	editor []string // the user's editor with its arguments, for long answers; nil if unknown
	dir    string   // the working directory; "" if unknown
	now    func() time.Time
	send   func(tea.Msg) // for commands that send more than one message
	asks   bool          // whether to query the terminal for its background color
	asked  time.Time     // when the terminal was queried

	page     screen
	panels   []screen
	live     *model.Live // nil until a session is open
	run      *run        // the current or last apply or undo
	log      journal
	feed     journal // changes of states, without the first verdicts
	player   *player // runs the autoplay script; nil if autoplay is off
	showsOff bool    // rows that an answer turns off are shown
	undid    bool    // the last successful run was an undo
	notice   string  // shown instead of the check totals until the next key press
	left     leaving

	guarded string       // text that was not copied because it looks like a secret
	early   []tea.KeyMsg // keys pressed before the first step was on screen
}

// leaving is how the user left the wizard.
type leaving int

const (
	staying leaving = iota
	quit
	interrupted
)

// noticeMsg asks the app to show a temporary notice.
type noticeMsg struct {
	text string
	err  error
}

func (a *app) Init() tea.Cmd {
	cmd := tea.Batch(a.askGround(), a.begin())
	return tea.Batch(cmd, a.player.look(), a.ticker.at(a.pace()))
}

// Update implements tea.Model. It passes a message to the part of the app that handles it.
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

// session passes a message to the parts that exist only while a session is open. If one of them handled the message,
// mine is true.
func (a *app) session(msg tea.Msg) (cmd tea.Cmd, mine bool) {
	if a.live == nil {
		return nil, false
	}
	switch msg := msg.(type) {
	case turnedMsg:
		a.addTransition(msg.next.Changed)
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

// turnedMsg is sent when one iteration of a check loop is done. next is the next iteration (see model.Turn).
type turnedMsg struct{ next model.Turn }

// follow runs the given iterations of check loops in the background.
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

// again runs the checks of the given cells again at the user's request. Without cells it runs all checks.
func (a *app) again(cells ...steps.Cell) tea.Cmd { return a.follow(a.live.Again(cells...)...) }

// top returns the screen that receives the keys.
func (a *app) top() screen {
	if n := len(a.panels); n > 0 {
		return a.panels[n-1]
	}
	return a.page
}

func (a *app) lay(s screen) tea.Cmd {
	a.panels = append(a.panels, s)
	if s, ok := s.(interface{ begin() tea.Cmd }); ok {
		return s.begin()
	}
	return nil
}

func (a *app) lift() {
	if n := len(a.panels); n > 0 {
		a.panels = a.panels[:n-1]
	}
}

// turn replaces the page and closes all panels.
func (a *app) turn(s screen) tea.Cmd {
	a.page, a.panels = s, nil
	return tea.Batch(a.begin(), a.catchUp())
}

func (a *app) begin() tea.Cmd {
	if s, ok := a.page.(interface{ begin() tea.Cmd }); ok {
		return s.begin()
	}
	return nil
}

// pressed handles the global keys and passes other keys to the top screen.
func (a *app) pressed(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyRunes && len(k.Runes) > 1 && !k.Paste && !a.top().typing() { // key presses that arrived together
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
	case key.Matches(k, a.k.Map.Binding) && len(a.panels) == 0 && a.live != nil:
		if panel := a.mapPanel(); panel != nil {
			return a.lay(panel)
		}
	case key.Matches(k, a.k.Trouble.Binding) && a.overview() && a.live != nil:
		if panel := a.troublePanel(); panel != nil {
			return a.lay(panel)
		}
	case a.tooEarly(k):
		return nil
	}
	return a.top().update(k)
}

// overview reports whether no panel is shown but the map or the list of steps.
func (a *app) overview() bool {
	switch a.top().(type) {
	case *mapPanel, *stepsPanel:
		return true
	}
	return len(a.panels) == 0
}

// interrupt cancels the current run. If nothing is running, or the run is already being canceled, it quits the wizard.
func (a *app) interrupt() tea.Cmd {
	if a.run.busy() && !a.run.stopping {
		a.run.stop()
		a.notice = "stopping; press ctrl+c again to quit immediately"
		return nil
	}
	a.left = interrupted
	return tea.Quit
}

func (a *app) leave() tea.Cmd {
	if a.run.busy() {
		a.notice = "still running; press ctrl+c to stop"
		return nil
	}
	a.left = quit
	return tea.Quit
}

// pace returns the interval at which the screen must be redrawn without a message, or 0 if it need not be redrawn.
func (a *app) pace() time.Duration {
	p := a.top().pace()
	if a.run.busy() {
		p = faster(p, spinning)
	}
	return p
}

// View implements tea.Model. The frame has as many lines as the terminal, and no line is wider than the terminal.
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
