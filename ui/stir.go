package ui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// stir has what is not watched looked at once more where a verdict that is watched
// changes: the other may have changed with it, and a list of steps that is green
// would be believed.
type stir struct {
	resting bool // it was done a short while ago
	again   bool // and is due once more
}

const (
	stirAfter = time.Second      // what changes together has changed by then
	stirPause = 15 * time.Second // from one time to the next
)

// stirMsg is for live: look at what is not watched.
type stirMsg struct{}

// restedMsg is for live: it may be stirred again.
type restedMsg struct{}

func (s *stir) up() tea.Cmd {
	if s.resting {
		s.again = true
		return nil
	}
	s.resting = true
	return tea.Batch(
		tea.Tick(stirAfter, func(time.Time) tea.Msg { return stirMsg{} }),
		tea.Tick(stirPause, func(time.Time) tea.Msg { return restedMsg{} }),
	)
}

func (s *stir) rested() tea.Cmd {
	due := s.again
	s.resting, s.again = false, false
	if !due {
		return nil
	}
	return s.up()
}
