package standin

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Said is the log of a stand-in in place of a program. The zero value is an empty log.
type Said struct {
	mu    sync.Mutex
	lines []string
	once  map[string]bool
}

// saidAtMost is the maximum number of lines kept.
const saidAtMost = 500

// Say appends a line.
func (s *Said) Say(level, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(level, fmt.Sprintf(format, args...))
}

// Once is Say for a message that repeats in every look: a line that is already in the log is not added again.
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

// String returns the log.
func (s *Said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "")
}

// Text is the output of a program. The zero value is empty.
type Text struct {
	mu  sync.Mutex
	all []byte
}

// textAtMost is the maximum number of bytes kept. The last ones are kept.
const textAtMost = 1 << 20

// Write appends to the text.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, p...)
	t.all = t.all[max(0, len(t.all)-textAtMost):]
	return len(p), nil
}

// String returns the kept text.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.all)
}
