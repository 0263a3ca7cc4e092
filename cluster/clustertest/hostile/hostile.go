// Package hostile provides strings that an attacker could put into names, messages and logs. It also finds characters
// and sequences that must not appear in any output.
package hostile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts maps the description of an attack to a string that attempts it.
var Texts = map[string]string{
	"clears the screen":       "\x1b[2J\x1b[1;1Hall is green",
	"sets the title":          "\x1b]0;owned\x07title",
	"writes to the clipboard": "\x1b]52;c;cm0gLXJmIC8K\x07copied",
	"makes a link":            "\x1b]8;;https://evil.example.org\x1b\\here\x1b]8;;\x1b\\",
	"asks the terminal":       "\x1b[6n\x1b[c\x1bP$qm\x1b\\answer",
	"8-bit controls":          "\u009b31mred\u009d0;t\u009c\u0090q\u009c",
	"bare bytes":              "\x9b31m\xff\xfe\x80bytes",
	"turns the direction":     "safe\u202egnp.exe\u2066\u2069\u200f\u061c",
	"goes back over a line":   "pass\rFAIL\b\b\b\bok  ",
	"a line of its own":       "ok\n  ✓ pass    local    forged row\r\n",
	"tags and marks":          "\U000e0041\ufeff\u2028line\u2029paragraph",
	"can't be seen":           "ad\u200bmin\u3164\u00ad\u2060\ufe0f\u115f\u2800",
	"ends a string":           "\x00after\x7f",
	"never ends":              "\x1b]0;never ends",
	"a long line":             strings.Repeat("x", 100<<10),
	"looks like markup":       "</failure>]]><a/>&#27;[31m{{.}} %s %n ${link.name}",
}

// All joins most of Texts into one line that is short enough for an annotation.
func All() string {
	var all strings.Builder
	for _, name := range []string{
		"clears the screen", "sets the title", "writes to the clipboard", "makes a link", "asks the terminal",
		"8-bit controls",
		"turns the direction", "goes back over a line", "tags and marks", "can't be seen", "looks like markup", "never ends",
	} {
		all.WriteString(Texts[name] + " ")
	}
	return strings.ToValidUTF8(all.String(), "")
}

// Unfit describes the first part of text that must not reach a terminal, file or log. It returns "" if there is none.
func Unfit(text string) string {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if what := unfit(r, size); what != "" {
			return fmt.Sprintf("%s at byte %d: %q", what, i, text[max(0, i-60):min(len(text), i+60)])
		}
		i += size
	}
	return ""
}

func unfit(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "a byte that is not valid UTF-8"
	case r == 0x1b:
		return "an escape character"
	case r < 0x20 && r != '\n' && r != '\t', r == 0x7f:
		return "a control character"
	case r >= 0x80 && r < 0xa0:
		return "an 8-bit control character"
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return "a character that changes the text direction"
	case unicode.In(
		r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	), r == 0x2800:
		return "an invisible character"
	}
	return ""
}

// Lines splits text into lines. It ignores newlines at the end.
func Lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }
