package ui

import (
	"os"
	"strings"
	"testing"
)

// onRoutes opens the form with its multi-line field focused.
func onRoutes(t *testing.T, w, h int, scene func(p *play, o Options)) {
	t.Helper()
	o := (&tunnel{long: true}).options(t)
	onStage(t, o, w, h, func(p *play) {
		p.press("1", "e", "tab", "tab", "tab")
		p.shows("Routes", "# what it carries", "  - 10.1.0.0/16", "tab next")
		scene(p, o)
	})
}

func TestALongAnswerIsTyped(t *testing.T) {
	onRoutes(t, 80, 24, func(p *play, o Options) {
		p.golden("form-long-80x24")
		p.press("ctrl+end", " ", " ", "-", " ")
		for _, r := range "0.0.0.0/0" {
			p.press(string(r))
		}
		p.press("tab") // the last field: it would be saved
		p.shows("line 4: not everything may go through", "  - 0.0.0.0/0")
		p.press("ctrl+s")
		p.shows("✗ Routes: line 4: not everything may go through", "  - 0.0.0.0/0")
		p.press("esc")
		p.shows("not saved; your input is kept")
		p.press("e", "tab", "tab", "tab", "ctrl+end")
		p.shows("  - 0.0.0.0/0")
		for range "0.0.0.0/0" {
			p.press("backspace")
		}
		for _, r := range "10.2.0.0/16" {
			p.press(string(r))
		}
		p.press("ctrl+s")
		p.shows("1 answer saved")
		text, err := os.ReadFile(o.Link.Path)
		if err != nil ||
			!strings.Contains(
				string(text), "  net.routes: |\n    # what it carries\n    routes:\n      - 10.1.0.0/16\n      - 10.2.0.0/16\n",
			) {
			t.Fatalf("%v, saved:\n%s", err, text)
		}
	})
}

func TestALongAnswerThatIsNotTouched(t *testing.T) {
	onRoutes(t, 60, 20, func(p *play, o Options) {
		p.press("ctrl+s")
		p.shows("the answers are unchanged")
	})
}

func TestNoEditor(t *testing.T) {
	onRoutes(t, 80, 24, func(p *play, _ Options) {
		p.press("ctrl+e")
		p.shows("no editor is set: set VISUAL or EDITOR")
		p.press("x")
		p.hides("no editor is set")
		sweep(p)
	})
}

// A tab is shown as blanks, which is not a change of the answer.
func TestATabIsKept(t *testing.T) {
	draft := "a: b\t# c\n"
	l := longText{&draft}
	l.Set("a: b    # c\n")
	if l.Get() != "a: b\t# c\n" {
		t.Errorf("it became %q", draft)
	}
	l.Set("a: x    # c\n")
	if l.Get() != "a: x    # c\n" {
		t.Errorf("it stayed %q", draft)
	}
}
