package ui

import (
	"strings"
	"testing"

	"carrick/cluster/clustertest/hostile"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/ui/model"
)

// Untrusted text stays within its width, and has no effect on the terminal.
func FuzzLines(f *testing.F) {
	for name, text := range hostile.Texts {
		if name != "a long line" {
			f.Add(text, uint8(20))
			f.Add(text, uint8(1))
		}
	}
	f.Add("日本語 a-b-c 👨‍👩‍👧 e\u0301\u200b\u00ad", uint8(3))
	f.Fuzz(func(t *testing.T, text string, wide uint8) {
		w := int(wide%200) + 1
		line := oneLine(text)
		if bad := hostile.Unfit(line); bad != "" || strings.ContainsAny(line, "\n\t") {
			t.Errorf("%s: %q", bad, line)
		}
		fits := func(what, l string, w int) {
			if bad := hostile.Unfit(l); bad != "" || strings.ContainsAny(l, "\n\t") {
				t.Errorf("%s: %s: %q", what, bad, l)
			}
			if n := width(l); n > w {
				t.Errorf("%s: %q is %d wide, not %d", what, l, n, w)
			}
		}
		fits("clip", clip(line, w), w)
		fits("pad", pad(line, w), w)
		if w > 1 { // a letter may be two wide
			for _, l := range wrap(line, w) {
				fits("wrap", l, w)
			}
			fits("spread", spread(line, "x", w), w)
			for _, many := range manyLines(text) {
				for _, l := range wrap(many, w) {
					fits("wrapped lines", l, w)
				}
			}
		}
		for _, l := range squeeze([][]string{wrap(line, w+1), {line}}, 2, w+1) {
			if strings.Contains(l, "\n") {
				t.Errorf("squeeze: %q", l)
			}
		}
	})
}

// An address in a request becomes a link to exactly that address.
func FuzzAsked(f *testing.F) {
	for name, text := range hostile.Texts {
		if name != "a long line" {
			f.Add("open https://login.example.org/" + text + " and type the code ABCD-EFGH")
			f.Add(text)
		}
	}
	f.Add("https://a\\b;c?x=\x07\x1b]8;;https://evil\x1b\\ https://b")
	f.Fuzz(func(t *testing.T, text string) {
		r := &run{Run: model.NewRun(&engine.Plan{})}
		r.Heard(steps.Event{Action: "sign-in", Asks: true, Text: text})
		for _, l := range r.askedView(&app{}, 60) {
			for rest := l; strings.Contains(rest, "\x1b"); {
				rest = rest[strings.Index(rest, "\x1b"):]
				if !strings.HasPrefix(rest, "\x1b]8;") {
					t.Fatalf("another sequence than a link: %q", l)
				}
				end := strings.IndexAny(rest[1:], "\x07\x1b")
				if end < 0 {
					t.Fatalf("a link without an end: %q", l)
				}
				rest = strings.TrimPrefix(strings.TrimPrefix(rest[1+end:], "\x07"), "\x1b\\")
			}
			if n := width(l); n > 60 {
				t.Errorf("%q is %d wide", l, n)
			}
		}
		if bad := hostile.Unfit(r.Asked.Address()); bad != "" {
			t.Error(bad)
		}
	})
}
