package lines

import (
	"fmt"
	"io"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// voice writes lines. It removes control characters and escape sequences.
type voice struct {
	w     io.Writer
	plain *strings.Replacer // nil if nothing is replaced
	err   error             // the first write error; later output is dropped
}

// asciiOf replaces the non-ASCII characters that guides use.
var asciiOf = []string{
	"…", "...", "·", "-", "→", "->", "←", "<-", "×", "x", "–", "-", "—", "-", "’", "'", "“", `"`, "”", `"`,
}

func (v *voice) say(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	v.write(model.OneLine(text) + "\n")
}

func (v *voice) sentence(format string, args ...any) {
	v.say("%s", ended(model.OneLine(fmt.Sprintf(format, args...))))
}

// raw writes multi-line text, such as YAML, a diff or a command.
func (v *voice) raw(text string) {
	for _, l := range manyLines(text) {
		v.write(strings.TrimRight(l, " ") + "\n")
	}
}

// prompt writes a prompt. The answer follows on the same line.
func (v *voice) prompt(text string) { v.write(model.OneLine(text) + " ") }

func (v *voice) write(text string) {
	if v.plain != nil {
		text = v.plain.Replace(text)
	}
	if _, err := io.WriteString(v.w, text); err != nil && v.err == nil {
		v.err = fmt.Errorf("write: %w", err)
	}
}

// manyLines makes untrusted text safe for a terminal. It keeps the line breaks.
func manyLines(s string) []string {
	s = strings.ReplaceAll(strings.TrimRight(clean.Text(s), "\n"), "\t", "    ")
	return strings.Split(s, "\n")
}

func ended(s string) string {
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?:") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// these formats a count with a noun for a question, such as "this change" or "these 3 changes".
func these(n int, word string) string {
	if n == 1 {
		return "this " + word
	}
	return fmt.Sprintf("these %d %ss", n, word)
}

// listed joins words as in a sentence, such as "a, b and c".
func listed(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

func tally(n engine.Counts) string {
	var parts []string
	for _, one := range n.List() {
		parts = append(parts, one.String())
	}
	if len(parts) == 0 {
		return "no checks"
	}
	return listed(parts)
}

// word returns the word for a state in full.
func word(s engine.State) string {
	switch s {
	case engine.Warning:
		return "warning"
	case engine.Skipped:
		return "skipped"
	case engine.Checking:
		return "not checked yet"
	}
	return s.String()
}

// span formats a duration, such as "20 seconds" or "3 minutes".
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return steps.Plural(int(d.Round(time.Second)/time.Second), "second")
	case d < time.Hour:
		return steps.Plural(int(d.Round(time.Minute)/time.Minute), "minute")
	case d < 48*time.Hour:
		return steps.Plural(int(d/time.Hour), "hour")
	}
	return steps.Plural(int(d/(24*time.Hour)), "day")
}

func quoted(s string) string { return `"` + model.OneLine(s) + `"` }
