package ui

import (
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-runewidth"
)

// swept lists the sizes of the sweep, the largest first: some in regular steps, and every size at which the layout
// changes.
var swept = func() [][2]int {
	var out [][2]int
	few, many := sizes(20, 200, 60, bothFrom, wideFrom), sizes(5, 60, 9, 8, middleFrom, 14, tallFrom, 28, 36)
	for _, w := range few {
		for _, h := range many {
			out = append(out, [2]int{w, h})
		}
	}
	for _, w := range sizes(20, 200, 9) {
		for _, h := range []int{5, 10, 24} {
			out = append(out, [2]int{w, h})
		}
	}
	slices.Reverse(out)
	return out
}()

func sizes(from, to, step int, around ...int) []int {
	var out []int
	for n := from; n <= to; n += step {
		out = append(out, n)
	}
	for _, n := range append(around, from, to) {
		out = append(out, max(from, n-1), n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestNoSizeBreaksTheFrame(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			s.play(t, themeAuto, func(p *play) {
				for _, text := range s.stays {
					p.shows(text)
				}
				sweep(p, s.stays...)
			})
		})
	}
}

// sweep inspects the frame in many sizes, from the largest to the smallest and back. The content of a size must depend
// only on the size.
func sweep(p *play, stays ...string) {
	p.t.Helper()
	w, h := p.a.w, p.a.h
	before := p.a.View()
	for _, size := range swept {
		p.size(size[0], size[1])
		frame := p.unbroken()
		for _, text := range stays {
			if !strings.Contains(frame, text) {
				p.t.Fatalf("%d×%d: the screen lacks %q:\n%s", p.a.w, p.a.h, text, frame)
			}
		}
	}
	for _, size := range [][2]int{{20, 5}, {w, h}} {
		p.size(size[0], size[1])
	}
	if got := p.a.View(); got != before {
		p.t.Fatalf("it was\n%s\nand after all sizes it is\n%s", ansi.Strip(before), ansi.Strip(got))
	}
}

// size changes the size of the terminal without delivering other messages.
func (p *play) size(w, h int) {
	_, cmd := p.a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	p.do(cmd)
}

// When the selection moves, all parts of the screen keep their positions, and the selected row stays visible.
func TestNothingJumpsWhenTheSelectionMoves(t *testing.T) {
	onStage(t, everything(t, &tunnel{}), 80, 24, func(p *play) {
		for _, step := range []string{"1", "2"} {
			p.press(step)
			for _, size := range [][2]int{
				{60, 20}, {60, 50}, {80, 24}, {100, 30}, {120, 40}, {200, 60}, {300, 20}, {40, 12}, {20, 5},
			} {
				p.size(size[0], size[1])
				p.press("g")
				want := p.parts()
				for range 36 {
					p.press("j")
					if got := p.parts(); !slices.Equal(got, want) {
						t.Fatalf("%v: rules were at %v and are at %v:\n%s", size, want, got, p.screen())
					}
					if !strings.Contains(p.screen(), "▸") {
						t.Fatalf("%v: nothing is selected:\n%s", size, p.screen())
					}
				}
			}
		}
	})
}

// parts returns the indices of the separators in a frame.
func (p *play) parts() []int {
	var out []int
	for i, l := range strings.Split(p.screen(), "\n") {
		if strings.HasPrefix(l, "──") {
			out = append(out, i)
		}
	}
	return out
}

// Widths of characters: in most terminals, and in terminals for East Asian locales.
var (
	western = &runewidth.Condition{StrictEmojiNeutral: true}
	eastern = &runewidth.Condition{EastAsianWidth: true}
)

// columns returns the width of a line in a terminal that does not combine characters.
func columns(line string, c *runewidth.Condition) int {
	n := 0
	for _, r := range line {
		n += c.RuneWidth(r)
	}
	return n
}

// unbroken returns the frame without styles. It fails the test if a line is wider or the frame is higher than the
// screen, for any character set.
func (p *play) unbroken() string {
	p.t.Helper()
	plain := ansi.Strip(p.a.View())
	lines := strings.Split(plain, "\n")
	if len(lines) > p.a.h {
		p.t.Fatalf("%d×%d: the frame has %d lines:\n%s", p.a.w, p.a.h, len(lines), plain)
	}
	there, bare := strings.Split(plainLine.plain()(plain), "\n"), strings.Split(ascii.plain()(plain), "\n")
	for i, l := range lines {
		w := ansi.StringWidth(l)
		switch {
		case w > p.a.w:
			p.t.Fatalf("%d×%d: line %d is %d wide: %q\n%s", p.a.w, p.a.h, i+1, w, l, plain)
		case columns(l, western) != w:
			p.t.Fatalf("%d×%d: line %d is %d wide, and %d in a terminal: %q", p.a.w, p.a.h, i+1, w, columns(l, western), l)
		case columns(there[i], eastern) != w:
			p.t.Fatalf(
				"%d×%d: line %d is %d wide, and %d in East Asia: %q", p.a.w, p.a.h, i+1, w, columns(there[i], eastern), there[i],
			)
		case !isASCII(bare[i]) || len(bare[i]) != w:
			p.t.Fatalf("%d×%d: line %d is %d wide, and in ASCII %q", p.a.w, p.a.h, i+1, w, bare[i])
		}
	}
	return plain
}
