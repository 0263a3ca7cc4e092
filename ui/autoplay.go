package ui

import (
	"context"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// Walk configures autoplay. In autoplay, the wizard goes through its guide automatically and explains the guide in
// captions. The keys and captions are derived from the guide and the screen, so autoplay works for every guide.
type Walk struct {
	Pace    float64           // 1 is normal reading speed, 2 is twice as fast
	Answers map[string]string // what to type for each question, by question key
	Fault   string            // sentence that describes what is broken from the start, or ""
	Broken  []steps.Cell      // cells that show the fault, as far as known
	Helped  string            // added to the caption while the user must act, for example sign in; can be ""
	Undo    bool              // undo everything at the end
	// Shell runs shell commands that use the demo's clusters. The script runs fixes with it that carrick prints and cannot
	// apply. Without a fault, the script uses it to delete an object at the end, and shows how carrick notices and repairs
	// that. If Shell is nil, the script does neither. Expendable lists the kinds of objects that it may delete; the first
	// kind that the link has created is used.
	Shell      func(ctx context.Context, commands string) error
	Expendable []string
}

// keystroke is the delay before the player presses a key that has no caption, at pace 1.
const keystroke = 150 * time.Millisecond

// stalledAfter is the waiting time after which the caption names what the player waits for.
const stalledAfter = time.Minute

// player runs the autoplay script. After each message it derives the next step of the script from the screen. It
// records which steps of the script and which explanations it has shown. A nil player does nothing.
type player struct {
	a       *app
	w       Walk
	told    map[string]bool   // IDs of the steps of the script that have run
	lessons map[string]string // for each explanation, the guide step that gave it
	lines   int               // lines of the screen reserved for the caption
	paused  bool
	ended   bool

	move  move
	last  string    // ID of the last step of the script; "" if the user has intervened since
	parts []string  // the caption, in parts that are shown one after another
	part  int       // index of the current part
	began time.Time // when the current step of the script was first shown
	due   time.Time // when the current part has been shown long enough
	tick  time.Time // when the pending tick is due; zero if there is none

	step   string        // name of the guide step that counts belongs to
	counts engine.Counts // check counts of the guide step on screen
	still  time.Time     // when counts last changed

	deleted *deletion              // what the script deletes at the end; nil before that
	ran     map[steps.Cell]*fixRun // the printed fixes that the script announced
}

// move is one step of the autoplay script: a caption and the key to press.
type move struct {
	id   string // identifies the step of the script
	text string
	key  string         // the key to press after the caption, or ""
	hint hint           // the key as the caption shows it; zero if it is not shown
	do   func() tea.Cmd // runs after the caption, or nil
	kind moveKind
	what func() string // returns what the player waits for; shown if the wait is long
}

type moveKind int

const (
	say  moveKind = iota // show the caption, then press the key
	at1                  // press the key without a caption
	wait                 // wait for the screen and press nothing
	hold                 // like wait, but keep the current caption
	halt                 // stop until the user continues
	end
)

// walkMsg wakes the player when a caption has been shown long enough or a wait has become long.
type walkMsg struct{ due time.Time }

func newPlayer(a *app, w *Walk) *player {
	if w == nil {
		return nil
	}
	p := &player{a: a, w: *w, told: map[string]bool{}, lessons: map[string]string{}, ran: map[steps.Cell]*fixRun{}}
	if p.w.Pace <= 0 {
		p.w.Pace = 1
	}
	return p
}

// heard receives every message before the rest of the app. It reports whether the message is only for the player. Any
// key that the user presses pauses autoplay. The space bar pauses or continues autoplay.
func (p *player) heard(msg tea.Msg) bool {
	if p == nil {
		return false
	}
	switch msg := msg.(type) {
	case walkMsg:
		if msg.due.Equal(p.tick) {
			p.tick = time.Time{}
		}
		return true
	case deletedMsg:
		p.deleted.err = msg.err
		return true
	case fixRanMsg:
		msg.run.done, msg.run.err = p.a.now(), msg.err
		return true
	case tea.KeyMsg:
		return p.person(msg)
	}
	return false
}

// person handles a key that the user pressed. It reports whether the key is only for the player.
func (p *player) person(k tea.KeyMsg) bool {
	typing := p.paused && p.a.top().typing() // in a text field, a space is text
	switch {
	case p.ended:
	case key.Matches(k, p.a.k.Pause.Binding) && !typing:
		p.space()
		return true
	case key.Matches(k, p.a.k.Interrupt.Binding, p.a.k.Suspend.Binding):
	default:
		p.paused = true
	}
	return false
}

// space pauses autoplay, or continues it from the current screen.
func (p *player) space() {
	switch {
	case p.move.kind == halt:
		p.told[p.move.id] = true
	case !p.paused:
		p.paused = true
		return
	}
	p.paused, p.last, p.move = false, "", move{} // the current caption starts again
}

// look runs the steps of the script that are due, and schedules the next call.
func (p *player) look() tea.Cmd {
	if p == nil || p.paused || p.ended || p.a.left != staying {
		return nil
	}
	var cmds []tea.Cmd
	for range 100 { // more steps without a pause would mean an endless loop
		p.count()
		m := p.next()
		if m.kind == hold && p.move.kind == say && p.move.id != "" {
			break
		}
		if m.id != p.move.id || m.kind != p.move.kind {
			p.show(m)
		}
		p.ended = m.kind == end
		if p.a.now().Before(p.due) {
			break
		}
		if p.part+1 < len(p.parts) {
			p.turnTo(p.part + 1)
			break
		}
		if m.kind != say && m.kind != at1 {
			break
		}
		p.told[m.id] = true
		p.move, p.last = move{}, m.id
		if m.key != "" {
			cmds = append(cmds, p.a.pressed(walkKey(m.key)))
		}
		if m.do != nil {
			cmds = append(cmds, m.do())
		}
	}
	return tea.Batch(append(cmds, p.later())...)
}

func (p *player) count() {
	s, ok := p.a.page.(*stepPage)
	if !ok {
		return
	}
	n := p.a.live.Board.Count(s.step().Name)
	if p.step != s.step().Name || p.counts != n || p.still.IsZero() {
		p.step, p.counts, p.still = s.step().Name, n, p.a.now()
	}
}

func (p *player) show(m move) {
	p.move, p.began = m, p.a.now()
	p.parts = p.inParts(m)
	p.turnTo(0)
}

func (p *player) turnTo(part int) {
	p.part = part
	d := reading(p.parts[part], p.w.Pace)
	if p.move.kind == at1 {
		d = time.Duration(float64(keystroke) / p.w.Pace)
	}
	p.due = p.a.now().Add(d)
}

func (p *player) later() tea.Cmd {
	due := p.due
	switch {
	case p.ended || p.paused || (p.move.kind == halt && p.part+1 >= len(p.parts)):
		return nil
	case !p.a.now().Before(due):
		due = p.a.now().Add(time.Second) // the caption might have to name what the player waits for
	}
	if s := p.still.Add(sure); p.a.now().Before(s) && s.Before(due) {
		due = s
	}
	if !p.tick.IsZero() && !due.Before(p.tick) {
		return nil
	}
	p.tick = due
	return tea.Tick(due.Sub(p.a.now()), func(time.Time) tea.Msg { return walkMsg{due} })
}

func (p *player) stalled() bool {
	return (p.move.kind == wait || p.move.kind == hold) && p.a.now().Sub(p.began) >= stalledAfter
}

// walkKeys maps the names of special keys in an autoplay script to their key types.
var walkKeys = map[string]tea.KeyType{
	"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
	"right":  tea.KeyRight,
	"pgdown": tea.KeyPgDown, "ctrl+s": tea.KeyCtrlS, "ctrl+u": tea.KeyCtrlU,
}

func walkKey(name string) tea.KeyMsg {
	if t, ok := walkKeys[name]; ok {
		return tea.KeyMsg{Type: t}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}
