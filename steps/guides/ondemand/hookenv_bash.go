package ondemand

import "strings"

// bashWord is the right side of an assignment. carrick parses it like bash, but does not run anything.
type bashWord struct {
	rest string // unparsed text; after bashValue, the next setting
	out  strings.Builder
	odd  string // why carrick cannot determine the value, or why bash changes it
	note string // comment after the value, including the whitespace before it
	sep  string // separator before the next setting on the same line; "" if there is none
}

func bashValue(text string) *bashWord {
	w := &bashWord{rest: text}
	for w.rest != "" && w.odd == "" {
		if w.step() {
			break
		}
	}
	return w
}

// step parses the next part of w.rest and reports whether the word ends.
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
		w.odd = "bash expands " + string(c) + " and the text after it"
		return true
	case ' ', '\t':
		w.after(strings.TrimLeft(w.rest, " \t"))
		return true
	case ';':
		if w.next(strings.TrimLeft(w.rest[1:], " \t")) {
			return true
		}
		w.odd = "the value ends at ;, and bash runs the rest of the line"
		return true
	case '&', '|', '<', '>', '(', ')':
		w.odd = "the value ends at " + string(c) + ", and bash runs the rest of the line"
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

// after parses rest, the text after the value and a space. It sets odd if bash would run this text as a command.
func (w *bashWord) after(rest string) {
	switch {
	case strings.HasPrefix(rest, ";") && w.next(strings.TrimLeft(rest[1:], " \t")):
	case !strings.HasPrefix(rest+" ", "export ") && w.next(rest):
	default:
		w.odd = "the value ends at the first space, and bash runs the rest of the line as a command: put the whole " +
			"value in quotes"
	}
}

// next reports whether rest is empty, a comment, or another setting. If so, next sets note or sep.
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
			w.odd = "bash expands " + string(c) + " and the text after it, even in double quotes: use single quotes"
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
