package standin

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Said is a log: what a stand-in has said in the place of a program. The zero value
// is an empty one.
type Said struct {
	mu    sync.Mutex
	lines []string
	once  map[string]bool
}

// saidAtMost is how many lines are kept.
const saidAtMost = 500

// Say appends a line.
func (s *Said) Say(level, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(level, fmt.Sprintf(format, args...))
}

// Once is Say for what is true again at every look: the same words are said once.
func (s *Said) Once(level, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if s.once[text] {
		return
	}
	if s.once == nil {
		s.once = map[string]bool{}
	}
	s.once[text] = true
	s.say(level, text)
}

func (s *Said) say(level, text string) {
	s.lines = append(s.lines, fmt.Sprintf("time=%q level=%s msg=%q\n", time.Now().UTC().Format(time.RFC3339), level, text))
	s.lines = s.lines[max(0, len(s.lines)-saidAtMost):]
}

// String is the log.
func (s *Said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "")
}
