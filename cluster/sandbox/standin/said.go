package standin

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Said is the in-memory log of a fake. It replaces the log of the real program. The zero value is ready to use.
type Said struct {
	mu    sync.Mutex
	lines []string
	once  map[string]bool
}

// saidAtMost is the maximum number of lines.
const saidAtMost = 500

// Say appends a line.
func (s *Said) Say(level, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(level, fmt.Sprintf(format, args...))
}

// Once is like Say, but skips lines that are already in the log. Use it for messages that repeat in every pass.
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

// String returns the complete log.
func (s *Said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "")
}

// Text collects the output of a program. The zero value is ready to use.
type Text struct {
	mu  sync.Mutex
	all []byte
}

// textAtMost is the maximum size in bytes. Older output is dropped.
const textAtMost = 1 << 20

// Write appends output. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, p...)
	t.all = t.all[max(0, len(t.all)-textAtMost):]
	return len(p), nil
}

// String returns the output.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.all)
}
