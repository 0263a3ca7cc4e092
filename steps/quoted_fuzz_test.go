package steps

import (
	"strings"
	"testing"

	"carrick/cluster/clustertest/hostile"
)

// A word for a shell is one word there, and the same.
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

// oneWord reads a word as a POSIX shell does, where nothing in it is special.
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
