package clean_test

import (
	"strings"
	"testing"

	"carrick/cluster/clean"
)

func TestCleanLeavesNothingThatMovesATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünïcode 漢字 🙂\n\tx":                  "plain ünïcode 漢字 🙂\n\tx",
		"\x1b[31mred\x1b[0m":                       "red",
		"\x1b[2J\x1b[1;1Hgone":                     "gone",
		"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y": "xy",
		"\x1bP1$r\x1b\\x":                          "x",
		"\x1b(Bx\x1b=y\x1bcz":                      "xyz",
		"\u009b31mred\u009d0;t\u009cx":             "redx",
		"a\rb\bc\x00d\x7fe":                        "abcde",
		"over\u202eride\u2066x\u200f":              "overridex",
		"bad\xff\xfeutf":                           "bad\ufffd\ufffdutf",
		"\x1b":                                     "",
		"\x1b[":                                    "",
		"\x1b]never ends":                          "never ends",
		"":                                         "",
	} {
		if got := clean.Text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mx\x1b]0;t\x07\u202e\xff")
	f.Fuzz(func(t *testing.T, in string) {
		out := clean.Text(in)
		if clean.Text(out) != out {
			t.Errorf("%q is not clean: %q", in, out)
		}
		if strings.ContainsAny(out, "\x1b\r\x00\x07\u009b\u202e") {
			t.Errorf("%q becomes %q", in, out)
		}
	})
}
