package ui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// recheck has what is not watched looked at once more where a verdict that is watched
// changes: the other may have changed with it, and a list of steps that is green
// would be believed.
type recheck struct {
	resting bool // it was done a short while ago
	again   bool // and is due once more
}

const (
	recheckAfter = time.Second      // what changes together has changed by then
	recheckPause = 15 * time.Second // from one time to the next
)

// recheckMsg is for live: look at what is not watched.
type recheckMsg struct{}

// restedMsg is for live: what is not watched may be looked at again.
type restedMsg struct{}

func (r *recheck) soon() tea.Cmd {
	if r.resting {
		r.again = true
		return nil
	}
	r.resting = true
	return tea.Batch(
		tea.Tick(recheckAfter, func(time.Time) tea.Msg { return recheckMsg{} }),
		tea.Tick(recheckPause, func(time.Time) tea.Msg { return restedMsg{} }),
	)
}

func (r *recheck) rested() tea.Cmd {
	due := r.again
	r.resting, r.again = false, false
	if !due {
		return nil
	}
	return r.soon()
}
