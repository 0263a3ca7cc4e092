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

// Answers are the answers as an action or check sees them: what was given,
// else the question's default. Reading one that has neither marks what reads
// it as waiting for that answer.
type Answers struct {
	Lookup func(key string) any
}

// Masked is the answer to a secret question; zero where there is none.
func (a Answers) Masked(key string) masked.Value {
	m, _ := a.Value(key).(masked.Value)
	return m
}

// Text is an answer as a string; "" where it was left empty. Of a secret one
// it says that it is hidden.
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

// Int is an answer as a number; 0 where it was left empty.
func (a Answers) Int(key string) int {
	n, _ := strconv.Atoi(a.Text(key))
	return n
}

// Bool is a yes-or-no answer; false where it was left empty.
func (a Answers) Bool(key string) bool { return a.Text(key) == "true" }

// List is an answer with many values; nil where it was left empty.
func (a Answers) List(key string) []string { return ListOf(a.Value(key)) }

// Value is the answer as it stands: nil, string, bool, int, []string or
// masked.Value.
func (a Answers) Value(key string) any {
	if a.Lookup == nil {
		return nil
	}
	return a.Lookup(key)
}

// Given are the answers of a link file, by question key.
type Given map[string]any

// Has reports whether a question has an answer that was not left empty.
func (g Given) Has(key string) bool { v := g[key]; return v != nil && v != LeftEmpty }

// Empties reports whether a question was left empty on purpose.
func (g Given) Empties(key string) bool { v, ok := g[key]; return ok && v == LeftEmpty }

// LeftEmpty is the answer to an optional question that was left empty on
// purpose: its default does not stand.
const LeftEmpty = ""

// MissingError says which questions have no answer and no default.
type MissingError struct {
	Questions []Question
	Proposed  []string // what another admin's facts file proposes for them, "KEY: …"
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
		b.WriteString("; for " + p + ": answer it if that is right")
	}
	return b.String()
}

// Parse turns what somebody typed into an answer, or says what is wrong with
// it. Many values are separated by commas or white space.
func (q *Question) Parse(typed string) (any, error) {
	if q.Kind != YAML || blank(typed) { // the blanks before its first line are part of its form
		typed = strings.TrimSpace(typed)
	}
	if typed == "" {
		if q.Opt {
			return nil, nil
		}
		return nil, fmt.Errorf("an answer is needed")
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
	if len(out) == 0 { // nothing but separators
		return q.Parse("")
	}
	return out, nil
}

// Accept checks an answer out of a link file and gives it its shape.
func (q *Question) Accept(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return q.Parse("")
	case []any, []string:
		if q.Kind == YAML {
			return nil, errNoText
		}
		if !q.Many {
			return nil, fmt.Errorf("a list stands where one %s belongs", q.Kind)
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
		return nil, fmt.Errorf("a mapping stands where a %s belongs", q.Kind)
	case string:
		if v == "" && q.Opt {
			return LeftEmpty, nil
		}
		if q.Many {
			return nil, fmt.Errorf("one value stands where a list of %ss belongs; write [%s]", q.Kind, v)
		}
		return q.Parse(v)
	default:
		if q.Kind != Port && q.Kind != Number && q.Kind != YesNo {
			return nil, fmt.Errorf("%v is not text; put it in quotes if it is meant as a %s", v, q.Kind)
		}
		return q.Parse(fmt.Sprint(v))
	}
}

var errNoText = errors.New(
	"a text that is YAML itself belongs here: write | after the colon, and the text indented below",
)

// one validates a single value by kind and by the question's own rule.
func (q *Question) one(typed string) (any, error) {
	v, err := q.Kind.parse(typed, q.Of)
	if err == nil && q.Kind != Text && q.Kind != YAML {
		err = checkShown(typed)
	}
	if err == nil && q.Check != nil {
		if q.Kind == YAML {
			typed = fmt.Sprint(v) // lines are counted in the form that is kept
		}
		err = q.Check(typed)
	}
	return v, err
}

// checkShown refuses characters that cannot be shown within a line: controls, invisible ones, bytes that are not UTF-8.
func checkShown(s string) error {
	if clean.Name(s) != s {
		return fmt.Errorf("%q has characters that cannot be shown", s)
	}
	return nil
}

// Show is an answer as text for a form field; secrets are hidden.
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

// ListOf is an answer as a list: nil, a []string, or the []any of a file.
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
