package steps

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
)

// Answers gives checks and actions the current answers. If a question has no answer, its default applies. Reading an
// answer that has neither is recorded as missing.
type Answers struct {
	Lookup func(key string) any
}

// Masked returns the answer to a secret question, or the zero Value if there is none.
func (a Answers) Masked(key string) masked.Value {
	m, _ := a.Value(key).(masked.Value)
	return m
}

// Text returns an answer as a string, or "" if it was left empty. For a secret answer it returns a placeholder.
func (a Answers) Text(key string) string {
	switch v := a.Value(key).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Int returns an answer as a number, or 0 if the answer was left empty.
func (a Answers) Int(key string) int {
	n, _ := strconv.Atoi(a.Text(key))
	return n
}

// Bool returns a yes-or-no answer, or false if the answer was left empty.
func (a Answers) Bool(key string) bool { return a.Text(key) == "true" }

// List returns an answer with several values, or nil if the answer was left empty.
func (a Answers) List(key string) []string { return ListOf(a.Value(key)) }

// Value returns the answer as nil, string, bool, int, []string or masked.Value.
func (a Answers) Value(key string) any {
	if a.Lookup == nil {
		return nil
	}
	return a.Lookup(key)
}

// Given are the answers in a link file, by question key.
type Given map[string]any

// Has reports whether a question has a non-empty answer.
func (g Given) Has(key string) bool { v := g[key]; return v != nil && v != LeftEmpty }

// Empties reports whether a question was deliberately left empty.
func (g Given) Empties(key string) bool { v, ok := g[key]; return ok && v == LeftEmpty }

// LeftEmpty is the answer to an optional question that was deliberately left empty. The question's default then does
// not apply.
const LeftEmpty = ""

// MissingError lists the questions that have neither an answer nor a default.
type MissingError struct {
	Questions []Question
	Proposed  []string // what the other admin's facts file proposes for each question, as "KEY: …"
}

func (e *MissingError) Error() string {
	var b strings.Builder
	b.WriteString("not answered yet: ")
	for i, q := range e.Questions {
		if i > 0 {
			b.WriteString(", ")
		}
		how := q.Title
		if q.Secret {
			how += "; --secret " + q.Key + "=@FILE"
		}
		fmt.Fprintf(&b, "%s (%s)", q.Key, how)
	}
	for _, p := range e.Proposed {
		b.WriteString("; for " + p + ": set it if the value is correct")
	}
	return b.String()
}

// Parse converts typed text into an answer. It returns an error if the text is invalid. Several values are separated by
// commas or white space.
func (q *Question) Parse(typed string) (any, error) {
	if q.Kind != YAML || blank(typed) { // leading blanks are part of the indentation of YAML
		typed = strings.TrimSpace(typed)
	}
	if typed == "" {
		if q.Opt {
			return nil, nil
		}
		return nil, fmt.Errorf("an answer is required")
	}
	if !q.Many {
		return q.one(typed)
	}
	var out []string
	for _, part := range strings.FieldsFunc(typed, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		v, err := q.one(part)
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprint(v))
	}
	if len(out) == 0 { // only separators
		return q.Parse("")
	}
	return out, nil
}

// Accept validates an answer from a link file and converts it to the Go type of the question's kind.
func (q *Question) Accept(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return q.Parse("")
	case []any, []string:
		if q.Kind == YAML {
			return nil, errNoText
		}
		if !q.Many {
			return nil, fmt.Errorf("expected one %s, not a list", q.Kind)
		}
		out := []string{}
		if len(ListOf(v)) == 0 && !q.Opt {
			return q.Parse("")
		}
		for _, item := range ListOf(v) {
			one, err := q.one(strings.TrimSpace(item))
			if err != nil {
				return nil, err
			}
			out = append(out, fmt.Sprint(one))
		}
		return out, nil
	case map[string]any, Given:
		if q.Kind == YAML {
			return nil, errNoText
		}
		return nil, fmt.Errorf("expected a %s, not a mapping", q.Kind)
	case string:
		if v == "" && q.Opt {
			return LeftEmpty, nil
		}
		if q.Many {
			return nil, fmt.Errorf("expected a list of %ss, not a single value; write [%s]", q.Kind, v)
		}
		return q.Parse(v)
	default:
		if q.Kind != Port && q.Kind != Number && q.Kind != YesNo {
			return nil, fmt.Errorf("%v is not a string; put it in quotes to use it as a %s", v, q.Kind)
		}
		return q.Parse(fmt.Sprint(v))
	}
}

var errNoText = errors.New(
	"expected YAML as text: write | after the colon, and the YAML indented below",
)

func (q *Question) one(typed string) (any, error) {
	v, err := q.Kind.parse(typed, q.Of)
	if err == nil && q.Kind != Text && q.Kind != YAML {
		err = checkShown(typed)
	}
	if err == nil && q.Check != nil {
		if q.Kind == YAML {
			typed = fmt.Sprint(v) // so that the line numbers of Check refer to the normalized text
		}
		err = q.Check(typed)
	}
	return v, err
}

// checkShown rejects characters that cannot be displayed within a line. These are control characters, invisible
// characters and invalid UTF-8.
func checkShown(s string) error {
	if clean.Name(s) != s {
		return fmt.Errorf("%q contains characters that cannot be displayed", s)
	}
	return nil
}

// Show returns an answer as text for a form field. It hides secrets.
func (q *Question) Show(v any) string {
	if q.Secret {
		if v == nil {
			return ""
		}
		return "(hidden)"
	}
	switch v := v.(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ", ")
	default:
		return fmt.Sprint(v)
	}
}

// ListOf converts v to a list. v is nil, a []string, or a []any from a decoded file.
func ListOf(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []string:
		return v
	case []any:
		out := make([]string, len(v))
		for i := range v {
			out[i] = fmt.Sprint(v[i])
		}
		return out
	case string:
		if v == "" {
			return nil
		}
		return []string{v}
	default:
		return []string{fmt.Sprint(v)}
	}
}
