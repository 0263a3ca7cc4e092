package failure

import (
	"strings"
	"testing"
	"unicode/utf8"

	"carrick/cluster/clean"
	"carrick/cluster/clustertest/hostile"
)

// For any input, the output contains nothing that controls a terminal.
func FuzzCleanTexts(f *testing.F) {
	addTexts(f, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		out := clean.Text(text)
		if bad := hostile.Unfit(out); bad != "" {
			t.Errorf("%q: %s", text, bad)
		}
		if clean.Text(out) != out {
			t.Errorf("%q is not clean: %q", text, out)
		}
		if hostile.Unfit(text) == "" && out != text {
			t.Errorf("%q was fit, and became %q", text, out)
		}
		if line := Sentence(text); strings.ContainsAny(line, "\n\t") || utf8.RuneCountInString(line) > LongestSentence {
			t.Errorf("%q is no sentence: %q", text, line)
		}
	})
}

func addTexts(f *testing.F, add func(string)) {
	f.Helper()
	for name, text := range hostile.Texts {
		if name != "a long line" { // mutations of it cost time, and find nothing
			add(text)
		}
	}
}
