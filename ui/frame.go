package ui

import (
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/engine"
)

// The layout changes at these terminal sizes.
const (
	wideFrom   = 120 // columns; list of steps on the left
	bothFrom   = 70  // columns; both sides next to each other
	tallFrom   = 20  // lines; everything fits
	middleFrom = 12  // lines; sides and detail fit
	proseWidth = 96  // columns; longer lines of text are hard to read
)

// narrow reports whether only one side is shown at a time.
func (a *app) narrow() bool { return a.w < bothFrom || a.h < tallFrom }

// wide reports whether the list of steps is shown to the left of the checks.
func (a *app) wide() bool { return a.w >= wideFrom && a.h >= tallFrom }

func (a *app) rule() string { return a.foldRule(0, a.w) }

// foldRule returns a separator below rows of which some are hidden.
func (a *app) foldRule(hidden, w int) string {
	text := ""
	if hidden > 0 {
		text = fmt.Sprintf("── ↓ %d more ", hidden)
	}
	return a.t.faint.Render(clip(text+strings.Repeat("─", max(0, w-width(text))), w))
}

// headline returns the first line, with the title on the left and the location on the right.
func (a *app) headline(title, where string) string {
	left := " " + a.t.title.Render("carrick") + " · " + oneLine(title)
	banner, _, _ := strings.Cut(oneLine(a.o.Banner), ":")
	if room := a.w - width(left) - width(where) - 7; width(oneLine(a.o.Banner)) <= room {
		banner = oneLine(a.o.Banner)
	}
	if banner != "" && width(left+banner+where)+7 <= a.w {
		left += a.t.faint.Render(" · " + banner)
	}
	if where == "" {
		return clip(left, a.w)
	}
	return spread(left, where+" ", a.w)
}

// sidesLine shows the name, context, version and latency of the given sides. Without arguments it shows both sides.
func (a *app) sidesLine(shown ...steps.Side) string {
	if len(shown) == 0 {
		shown = steps.Sides
	}
	guide := a.live.Guide()
	share := a.w/len(shown) - 1
	line := ""
	for i, side := range shown {
		line = pad(line, i*(share+1)) + " " + a.sideLiveness(guide.Sides[side].Name, a.live.Liveness(side), share-1)
	}
	return line
}

// sideLiveness formats one side in at most w columns. If it does not fit, the version is dropped first.
func (a *app) sideLiveness(role string, p engine.Liveness, w int) string {
	head := a.t.title.Render(role) + " "
	p.Name = oneLine(p.Name)
	room := w - width(head)
	switch {
	case p.Absent != "":
		return head + a.t.faint.Render(clip("- "+oneLine(p.Absent), room))
	case p.Trouble != "":
		trouble := oneLine(p.Trouble)
		if width(p.Name+trouble)+3 > room {
			trouble = "bad answer"
		}
		name := clipName(p.Name, max(8, room-width(trouble)-3))
		return head + name + " " + a.t.bad.Render("✗ "+clip(trouble, room-width(name)-3))
	case p.Name == "":
		return head + a.t.accent.Render("◌")
	case p.Version == "":
		return head + clipName(p.Name, room-2) + " " + a.t.good.Render("✓")
	}
	tail := " " + a.t.good.Render("✓") + fmt.Sprintf(" %d ms", max(1, p.Latency.Milliseconds()))
	if len(p.Version) < room { // a very long version string must not be measured for each frame
		if version := " " + a.t.faint.Render(p.Version); width(p.Name+version)+len(" ✓ 99 ms") <= room {
			tail = version + tail
		}
	}
	return head + clipName(p.Name, room-width(tail)) + tail
}

// where returns the text at the right end of a step's headline. The text contains the step's number and, if it fits,
// the name of the link.
func (a *app) where(step int) string {
	guide, link := a.live.Guide(), oneLine(a.live.Session.Link().Name())
	at := "summary"
	if step < len(guide.Steps) {
		at = fmt.Sprintf("step %d of %d", step+1, len(guide.Steps))
	}
	if width(guide.Title+at+link)+18 > a.w {
		return at
	}
	return at + " · " + link
}

// panelFrame returns a panel with a title, a body, and a footer of hints. right is shown at the right end of the title
// line if it fits.
func (a *app) panelFrame(title, right string, body []string, foot string) []string {
	head := " " + a.t.title.Render(title)
	if width(head)+width(right)+3 <= a.w {
		head = spread(head, a.t.faint.Render(right)+" ", a.w)
	}
	lines := []string{clip(head, a.w)}
	if a.h < 8 {
		return append(fill(append(lines, body...), a.h-1), foot)
	}
	lines = append(append(lines, a.rule()), fill(body, a.panelHeight())...)
	return append(lines, a.rule(), foot)
}

func (a *app) panelHeight() int {
	if a.h < 8 {
		return max(0, a.h-2)
	}
	return a.h - 4
}
