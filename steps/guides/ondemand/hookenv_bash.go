package ondemand

import "strings"

// bashWord is the right side of an assignment, parsed as bash does, but without running anything.
type bashWord struct {
	rest string // unparsed rest: finally the next setting
	out  strings.Builder
	odd  string // why the value cannot be determined, or why bash reads another value than the apparent one
	note string // the comment after it, with the whitespace before it
	sep  string // separator before another setting on the same line; "": there is none
}

// bashValue parses the right side of an assignment.
func bashValue(text string) *bashWord {
	w := &bashWord{rest: text}
	for w.rest != "" && w.odd == "" {
		if w.step() {
			break
		}
	}
	return w
}

// step parses one piece of the word and reports whether the word ends there.
func (w *bashWord) step() (ends bool) {
	c := w.rest[0]
	switch c {
	case '\'':
		return w.single()
	case '"':
		return w.double()
	case '\\':
		if len(w.rest) == 1 {
			w.odd = "a trailing backslash joins the next line to the value"
			return true
		}
		w.take(w.rest[1], 2)
		return false
	case '$', '`':
		w.odd = "bash expands " + string(c) + " and what follows it"
		return true
	case ' ', '\t':
		w.after(strings.TrimLeft(w.rest, " \t"))
		return true
	case ';':
		if w.next(strings.TrimLeft(w.rest[1:], " \t")) {
			return true
		}
		w.odd = "the value ends at ;, and bash runs what follows"
		return true
	case '&', '|', '<', '>', '(', ')':
		w.odd = "the value ends at " + string(c) + ", and bash runs what follows"
		return true
	case '~':
		if w.out.Len() == 0 {
			w.odd = "bash expands ~ to a home directory"
			return true
		}
	}
	w.take(c, 1)
	return false
}

func (w *bashWord) take(c byte, n int) {
	w.out.WriteByte(c)
	w.rest = w.rest[n:]
}

// after checks the rest of the line after the value.
func (w *bashWord) after(rest string) {
	switch {
	case strings.HasPrefix(rest, ";") && w.next(strings.TrimLeft(rest[1:], " \t")):
	case !strings.HasPrefix(rest+" ", "export ") && w.next(rest):
	default:
		w.odd = "the value ends at the first space, and bash runs what follows as a command: put all of it in quotes"
	}
}

// next reports whether the rest of the line is empty, a comment, or another setting.
func (w *bashWord) next(rest string) bool {
	switch {
	case rest == "" || strings.HasPrefix(rest, "#"):
		w.note, w.rest = w.rest, ""
	case envSetting.MatchString(rest):
		w.sep, w.rest = w.rest[:len(w.rest)-len(rest)], rest
	default:
		return false
	}
	return true
}

func (w *bashWord) single() bool {
	inner, rest, closed := strings.Cut(w.rest[1:], "'")
	if !closed {
		w.odd = "a quote (') is not closed on its line"
		return true
	}
	w.out.WriteString(inner)
	w.rest = rest
	return false
}

func (w *bashWord) double() bool {
	w.rest = w.rest[1:]
	for w.rest != "" {
		switch c := w.rest[0]; {
		case c == '"':
			w.rest = w.rest[1:]
			return false
		case c == '$' || c == '`':
			w.odd = "bash expands " + string(c) + " and what follows it, even in double quotes: use single quotes"
			return true
		case c == '\\' && len(w.rest) > 1 && strings.ContainsRune("\"\\$`", rune(w.rest[1])):
			w.take(w.rest[1], 2)
		default:
			w.take(c, 1)
		}
	}
	w.odd = `a quote (") is not closed on its line`
	return true
}
