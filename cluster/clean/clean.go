// Package clean makes text from clusters and other untrusted sources safe to print to a terminal, a log or a file.
package clean

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text makes untrusted text safe to display. It removes escape sequences, control characters except \n and \t, and
// characters that are invisible or change the writing direction. It replaces invalid UTF-8 with U+FFFD.
func Text(text string) string {
	if fit(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for i := 0; i < len(text); {
		if n := escape(text[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if shown(r) {
			out.WriteRune(r)
		}
		i += size
	}
	return out.String()
}

// Name makes a name from a cluster safe to display within a line. Names of RBAC objects, users and groups can contain
// any character, including line breaks. If the name contains an unsafe character, Name returns it quoted as in Go
// source.
func Name(name string) string {
	if fit(name) && !strings.ContainsAny(name, "\n\t") {
		return name
	}
	return strconv.QuoteToASCII(name)
}

func fit(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !shown(r) {
			return false
		}
	}
	return true
}

// shown reports whether a rune is safe to print on a terminal.
func shown(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return false
	case r < 0x7f:
		return true
	case r == 0x2800: // BRAILLE PATTERN BLANK, which Unicode does not count as white space
		return false
	}
	return !unicode.In(
		r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	)
}

// escape returns the length of the escape sequence at the start of text, or 0 if there is none. If the sequence is not
// terminated, the length covers only the introducer.
func escape(text string) int {
	var rest string
	switch {
	case len(text) >= 2 && text[0] == 0x1b:
		rest = text[1:]
	case strings.HasPrefix(text, "\u009b"):
		return final(text, 2)
	case strings.HasPrefix(text, "\u0090"), strings.HasPrefix(text, "\u009d"), strings.HasPrefix(text, "\u009e"), strings.HasPrefix(text, "\u009f"):
		return terminated(text, 2)
	case text[0] == 0x1b:
		return 1
	default:
		return 0
	}
	switch rest[0] {
	case '[':
		return final(text, 2)
	case ']', 'P', 'X', '^', '_':
		return terminated(text, 2)
	}
	if rest[0] >= 0x20 && rest[0] < 0x7f {
		n := 1
		for n < len(text)-1 && text[n] >= 0x20 && text[n] <= 0x2f {
			n++
		}
		return n + 1
	}
	return 1
}

// final returns the length of the control sequence at the start of text. The sequence ends with a byte from @ to ~.
func final(text string, from int) int {
	for i := from; i < len(text); i++ {
		if text[i] >= 0x40 && text[i] <= 0x7e {
			return i + 1
		}
		if text[i] < 0x20 || text[i] >= 0x7f {
			return i
		}
	}
	return from
}

// terminated returns the length of the control string at the start of text. The string ends with BEL or ST.
func terminated(text string, from int) int {
	for i := from; i < len(text); i++ {
		switch {
		case text[i] == 0x07:
			return i + 1
		case strings.HasPrefix(text[i:], "\x1b\\"), strings.HasPrefix(text[i:], "\u009c"):
			return i + 2
		}
	}
	return from
}
