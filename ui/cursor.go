package ui

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// cursor is the selected row of a list that scrolls in a window. The zero value selects the first row. Only keys scroll
// the window. A temporarily smaller screen does not.
type cursor struct{ at, from, shown int }

// move handles a movement key. It reports whether k is a movement key.
func (c *cursor) move(k tea.KeyMsg, keys keyMap, rows, window int) bool {
	switch {
	case key.Matches(k, keys.Up.Binding):
		c.at--
	case key.Matches(k, keys.Down.Binding):
		c.at++
	case key.Matches(k, keys.PageUp.Binding):
		c.at -= max(1, window-1)
	case key.Matches(k, keys.PageDown.Binding):
		c.at += max(1, window-1)
	case key.Matches(k, keys.Top.Binding):
		c.at = 0
	case key.Matches(k, keys.Bottom.Binding):
		c.at = rows - 1
	default:
		return false
	}
	c.at = max(0, min(c.at, rows-1))
	c.from = c.shown
	return true
}

// span returns the visible part of a list whose rows have different heights. The visible part contains the selected row
// and scrolls as little as possible.
func (c *cursor) span(heights []int, room int) (from, to int) {
	at := max(0, min(c.at, len(heights)-1))
	from = max(0, min(c.from, at))
	used := func(from, to int) (n int) {
		for _, h := range heights[from:to] {
			n += h
		}
		return n
	}
	for from < at && used(from, at+1) > room {
		from++
	}
	for from > 0 && used(from-1, len(heights)) <= room {
		from--
	}
	c.shown = from
	for to = from; to < len(heights) && used(from, to+1) <= room; to++ {
	}
	return from, max(to, min(len(heights), from+1))
}

func (c *cursor) window(rows, height int) (from, to int) {
	at := max(0, min(c.at, rows-1))
	from = min(c.from, at)
	if at >= from+height {
		from = at - height + 1
	}
	from = max(0, min(from, rows-height))
	c.shown = from
	return from, min(rows, from+max(0, height))
}
