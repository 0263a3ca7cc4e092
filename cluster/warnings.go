package cluster

import (
	"fmt"
	"io"
	"sync"

	"carrick/cluster/failure"
)

const mostWarnings = 200 // maximum number of different warnings that are written

// warnings writes the warnings of an API server in a form that is safe to display. It writes equal warnings only once.
type warnings struct {
	mu   sync.Mutex
	to   io.Writer
	said map[string]bool
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	const miscellaneous = 299 // the only code that Kubernetes uses
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != miscellaneous || text == "" || w.said[text] || len(w.said) >= mostWarnings {
		return
	}
	w.said[text] = true
	_, _ = fmt.Fprintln(w.to, "Warning: "+failure.Sentence(text))
}
