package ui

import (
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"carrick/steps"
	"carrick/steps/engine"
)

// Walk makes the wizard walk through its guide by itself, with captions. What
// it presses and says comes from the guide and from what is on screen, so every
// guide has a walk.
type Walk struct {
	Pace    float64           // 1: a speaker's; 2: twice as fast
	Answers map[string]string // typed where the question of that key comes up
	Fault   string            // what is broken from the start, in a sentence; "": nothing is
	Broken  []steps.Cell      // where that shows, as far as it was found out
	Helped  string            // said where a person is asked to do something, such as to sign in; "": nothing
	Undo    bool              // take everything back at the end
}

// keystroke is how long a key takes that nothing is said of.
const keystroke = 150 * time.Millisecond

// stalledAfter is how long something is waited for before the caption says
// what that is.
const stalledAfter = time.Minute

// player presses the keys of a walk. After each message it looks at the screen
// and decides from what stands there what comes next; it remembers only what it
// has said already. A nil player does nothing.
type player struct {
	a       *app
	w       Walk
	told    map[string]bool   // by the id of a move: it was made
	lessons map[string]string // what is explained once: in which step it was
	lines   int               // of the screen, for the caption
	paused  bool
	ended   bool

	move  move
	last  string    // what was pressed last; "": a person has gone on from it
	parts []string  // the caption, as it is shown one after the other
	part  int       // the one on show
	began time.Time // since when the move is on show
	due   time.Time // when the part was read
	tick  time.Time // the moment for which a tick is under way; zero: none is

	step   string        // whose counts these are
	counts engine.Counts // of the step on screen
	still  time.Time     // since when they are so
}

// move is the next thing to do, and what is said of it.
type move struct {
	id   string // what it is: the same as long as it is on show
	text string
	key  string // what is pressed then; "": nothing, it was only said
	hint hint   // the key, for the eye; zero: it is not shown
	kind moveKind
	what func() string // what is waited for, once that takes long
}

type moveKind int

const (
	say  moveKind = iota // and then press
	at1                  // press at once: it only moves the cursor
	wait                 // for the screen: nothing is pressed
	hold                 // as wait, and the caption on show stays
	halt                 // a person has to go on
	end
)

// walkMsg is for the player: a caption was read, or something takes long.
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

// heard takes a message before all others do, and tells whether it was the
// player's alone. A key of a person's pauses the walk; space goes on.
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

// person handles a key that a person has pressed, and tells whether it was for
// the player alone.
func (p *player) person(k tea.KeyMsg) bool {
	typing := p.paused && p.a.top().typing() // then a space is a space
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

// space pauses, or goes on from where the screen stands.
func (p *player) space() {
	switch {
	case p.move.kind == halt:
		p.told[p.move.id] = true
	case !p.paused:
		p.paused = true
		return
	}
	p.paused, p.last, p.move = false, "", move{} // what is on show is read from its start
}

// look does what is due now, and has itself called when the next thing is.
func (p *player) look() tea.Cmd {
	if p == nil || p.paused || p.ended || p.a.left != staying {
		return nil
	}
	var cmds []tea.Cmd
	for range 100 { // more than that without time going by would be a loop
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

// count notes since when the step on screen stands as it does.
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

// later has the player looked at again when something is due.
func (p *player) later() tea.Cmd {
	due := p.due
	switch {
	case p.ended || p.paused || (p.move.kind == halt && p.part+1 >= len(p.parts)):
		return nil
	case !p.a.now().Before(due):
		due = p.a.now().Add(time.Second) // a wait: its caption may have to say for what
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

// stalled tells whether what is on show has been waited for too long.
func (p *player) stalled() bool {
	return (p.move.kind == wait || p.move.kind == hold) && p.a.now().Sub(p.began) >= stalledAfter
}

// walkKeys are the keys of a walk that are no letters.
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
