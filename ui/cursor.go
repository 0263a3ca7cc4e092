package ui

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// cursor is a place in a list of which a window is shown. The zero value is
// the first row.
type cursor struct{ at, from int }

// move moves by a key and tells whether the key was one that moves.
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
	return true
}

// span is the part of a list of rows of different heights that is shown: the
// row of the cursor is in it, and it moves no more than it must.
func (c *cursor) span(heights []int, room int) (from, to int) {
	c.at = max(0, min(c.at, len(heights)-1))
	c.from = max(0, min(c.from, c.at))
	used := func(from, to int) (n int) {
		for _, h := range heights[from:to] {
			n += h
		}
		return n
	}
	for c.from < c.at && used(c.from, c.at+1) > room {
		c.from++
	}
	for c.from > 0 && used(c.from-1, len(heights)) <= room {
		c.from--
	}
	for to = c.from; to < len(heights) && used(c.from, to+1) <= room; to++ {
	}
	return c.from, max(to, min(len(heights), c.from+1))
}

// window is the part of a list that is shown: the row of the cursor is in it,
// and it moves no more than it must.
func (c *cursor) window(rows, height int) (from, to int) {
	c.at = max(0, min(c.at, rows-1))
	if c.at < c.from {
		c.from = c.at
	}
	if c.at >= c.from+height {
		c.from = c.at - height + 1
	}
	c.from = max(0, min(c.from, rows-height))
	return c.from, min(rows, c.from+max(0, height))
}
