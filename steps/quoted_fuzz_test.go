package steps

import (
	"strings"
	"testing"

	"carrick/cluster/clustertest/hostile"
)

// A shell reads a quoted word as exactly one word with the same text.
func FuzzQuoted(f *testing.F) {
	for _, text := range hostile.Texts {
		f.Add(text)
	}
	for _, word := range []string{"", "a b", "'", `a'\''b`, "$(id)", "`id`", "a;b", "-n", "~", "a\\"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if got, ok := oneWord(Quoted(word)); !ok || got != word {
			t.Errorf("%q is quoted as %q: %q", word, Quoted(word), got)
		}
	})
}

// oneWord parses one word as a POSIX shell does, without expansions.
func oneWord(text string) (word string, ok bool) {
	if plainWord.MatchString(text) {
		return text, true
	}
	var out strings.Builder
	for quoted := false; text != ""; text = text[1:] {
		switch c := text[0]; {
		case c == '\'':
			quoted, ok = !quoted, true
		case quoted:
			out.WriteByte(c)
		case c == '\\' && len(text) > 1:
			text = text[1:]
			out.WriteByte(text[0])
		default:
			return out.String(), false
		}
	}
	return out.String(), ok
}
