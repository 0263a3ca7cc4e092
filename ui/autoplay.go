package ui

import (
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// Walk makes the wizard play its guide automatically, with captions. Keys and captions come from the guide and from the
// screen, so every guide has a walk.
type Walk struct {
	Pace    float64           // 1: a speaker's pace; 2: twice as fast
	Answers map[string]string // typed for the question of that key
	Fault   string            // what is broken from the start, as a sentence; "": nothing
	Broken  []steps.Cell      // cells that show the fault, as far as known
	Helped  string            // caption while a user is asked to act, such as to sign in; "": none
	Undo    bool              // undo everything at the end
}

// keystroke is the duration of a key without a caption.
const keystroke = 150 * time.Millisecond

// stalledAfter is how long the player waits before the caption names what it waits for.
const stalledAfter = time.Minute

// player presses the keys of a walk. After each message it derives the next move from the screen; it remembers only
// which captions it has shown. A nil player does nothing.
type player struct {
	a       *app
	w       Walk
	told    map[string]bool   // by move ID: the move was made
	lessons map[string]string // explanations that are given once, with the step that gave them
	lines   int               // lines of the screen for the caption
	paused  bool
	ended   bool

	move  move
	last  string    // last pressed key; "": a user has taken over
	parts []string  // the caption, in parts that are shown in turn
	part  int       // the current part
	began time.Time // when the current move was first shown
	due   time.Time // when the part has been read
	tick  time.Time // when the pending tick is due; zero: none

	step   string        // the step that counts is of
	counts engine.Counts // of the step on screen
	still  time.Time     // since when counts is unchanged
}

// move is the next action of the player with its caption.
type move struct {
	id   string // identifies the move while it is shown
	text string
	key  string // the key to press afterwards; "": none
	hint hint   // the key as shown; zero: hidden
	kind moveKind
	what func() string // what is awaited, for when it takes long
}

type moveKind int

const (
	say  moveKind = iota // show the caption, then press
	at1                  // press immediately: only moves the cursor
	wait                 // wait for the screen; press nothing
	hold                 // like wait, but keep the current caption
	halt                 // a user must continue
	end
)

// walkMsg is for the player: a caption has been read, or something takes long.
type walkMsg struct{ due time.Time }

func newPlayer(a *app, w *Walk) *player {
	if w == nil {
		return nil
	}
	p := &player{a: a, w: *w, told: map[string]bool{}, lessons: map[string]string{}}
	if p.w.Pace <= 0 {
		p.w.Pace = 1
	}
	return p
}

// heard receives every message first, and reports whether it was for the player alone. A user's key pauses the walk;
// space continues.
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
	case tea.KeyMsg:
		return p.person(msg)
	}
	return false
}

// person handles a user's key, and reports whether it was for the player alone.
func (p *player) person(k tea.KeyMsg) bool {
	typing := p.paused && p.a.top().typing() // then a space is text
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

// space pauses, or continues from the current screen.
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

// look does what is due now, and schedules the next call.
func (p *player) look() tea.Cmd {
	if p == nil || p.paused || p.ended || p.a.left != staying {
		return nil
	}
	var cmds []tea.Cmd
	for range 100 { // more steps at one moment would be an endless loop
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
	}
	return tea.Batch(append(cmds, p.later())...)
}

// count records since when the counts of the step on screen are unchanged.
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

// later schedules the next call of look.
func (p *player) later() tea.Cmd {
	due := p.due
	switch {
	case p.ended || p.paused || (p.move.kind == halt && p.part+1 >= len(p.parts)):
		return nil
	case !p.a.now().Before(due):
		due = p.a.now().Add(time.Second) // while waiting: the caption may have to name what it waits for
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

// stalled reports whether the current move has waited too long.
func (p *player) stalled() bool {
	return (p.move.kind == wait || p.move.kind == hold) && p.a.now().Sub(p.began) >= stalledAfter
}

// walkKeys are the non-letter keys of a walk.
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
