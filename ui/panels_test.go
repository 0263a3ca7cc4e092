package ui

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
)

// many returns many items of a plan, some of which are unchanged.
func many() []steps.Item {
	long := "+  note: " + strings.Repeat("a-long-value ", 12) + "end-of-it\n"
	return []steps.Item{
		{
			Verb: steps.Create, What: "Secret a/keys", Diff: "@@ -0,0 +1,2 @@\n+kind: Secret\n+data: (hidden, 3 bytes)\n" + long,
			Hash: "1",
		},
		{Verb: steps.Leave, What: "Role a/as-it-is", Note: "is unchanged", Hash: "2"},
		{
			Verb: steps.Update, What: "ConfigMap a/settings", Diff: "@@ -1,2 +1,2 @@\n kind: ConfigMap\n-port: 1\n+port: 2\n",
			Hash: "3",
		},
		{Verb: steps.Delete, What: "Pod a/old", Hash: "4"},
		{Verb: steps.Leave, What: "Role a/too", Hash: "5"},
	}
}

func TestDiffGoesFromObjectToObject(t *testing.T) {
	onStage(t, (&tunnel{items: many()}).options(t), 80, 16, func(p *play) {
		p.press("d")
		p.shows(
			"object 1 of 3", "provider  1 create · 1 change · 1 delete · 2 unchanged", "1 secret value masked",
			"▸ + create  Secret a/keys",
		)
		p.hides("as-it-is")
		p.press("]")
		p.shows("object 2 of 3", "▸ ~ change  ConfigMap a/settings")
		p.press("tab")
		p.shows("object 3 of 3", "▸ - delete  Pod a/old", "2 more resources unchanged; . shows them")
		p.press("]")
		p.shows("this is the last object", "object 3 of 3")
		p.press("[", "[", "[")
		p.shows("this is the first object", "object 1 of 3")
		p.press(".")
		p.press("]")
		p.shows("object 2 of 5", "▸ · leave   Role a/as-it-is", "only changes")
		p.press(".", "g")
		p.shows("object 1 of 3")
		p.hides("as-it-is")
		p.press("G")
		p.shows("object ")
		sweep(p)
	})
}

func TestNothingOfADiffIsHidden(t *testing.T) {
	onStage(t, (&tunnel{items: many()}).options(t), 60, 40, func(p *play) {
		p.press("d")
		p.shows("end-of-it", "    …")
		var whole string
		for _, l := range strings.Split(p.screen(), "\n") {
			if rest, ok := strings.CutPrefix(l, "     …"); ok {
				whole += rest
			} else if strings.Contains(l, "+  note:") {
				whole = strings.TrimPrefix(l, "     ")
			}
		}
		if want := strings.Count(whole, "a-long-value"); want != 12 {
			t.Fatalf("%d of 12 words are there: %q", want, whole)
		}
	})
}

func TestSearchInEveryPanel(t *testing.T) {
	for name, c := range map[string]struct{ open, text string }{
		"diff": {"d", "KIND: secret"}, "detail": {"enter", "half pair"}, "help": {"?", "open the details"},
		"log": {"l", "was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, (&tunnel{}).options(t), 60, 20, func(p *play) {
				p.press(c.open, "/")
				p.shows("type the text to find")
				for _, r := range c.text {
					p.press(string(r))
				}
				p.shows("enter keeps it", "/ "+c.text)
				p.press("enter")
				p.shows("n next (line 1 of ", "esc end the search")
				sweep(p)
				p.resize(60, 20)
				p.press("n")
				p.press("esc")
				p.hides("end the search")
				p.press("esc")
				p.shows("step 2 of 3")
			})
		})
	}
}

func TestSearchGoesForthAndBack(t *testing.T) {
	onStage(t, (&tunnel{items: many()}).options(t), 80, 12, func(p *play) {
		p.press("d", "/", "k", "i", "n", "d", "q") // q is a letter here
		p.shows("no line has this text")
		p.press("backspace", "enter")
		p.shows("line 1 of 2")
		p.press("n")
		p.shows("line 2 of 2", "kind: ConfigMap")
		p.press("n")
		p.shows("from the start again")
		p.press("N")
		p.shows("from the end again", "kind: ConfigMap")
		if !strings.Contains(p.a.View(), p.a.t.selected.Render("kind")) {
			t.Fatalf("the place in hand does not stand out: %q", p.a.View())
		}
	})
}

// Search finds a phrase that wrapping has split into two lines.
func TestSearchFindsWhatIsBroken(t *testing.T) {
	s := newSearch(newTheme(skin{}))
	s.input.SetValue("two  words")
	if got := s.lines([]string{"one", " here are two", "   words and", "two words"}); fmt.Sprint(got) != "[1 3]" {
		t.Fatalf("found in %v", got)
	}
}

func TestPlanIsSaved(t *testing.T) {
	o := (&tunnel{items: many()}).options(t)
	o.Version = "v9"
	t.Chdir(t.TempDir())
	onStage(t, o, 80, 24, func(p *play) {
		p.press("d", "s")
		p.shows("saved carrick-milan-rome-plan-")
		p.press("s")
		p.shows("-2.txt")
	})
	files, err := os.ReadDir(".")
	if err != nil || len(files) != 2 {
		t.Fatalf("files: %v, %v", files, err)
	}
	text, err := os.ReadFile(files[1].Name())
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := files[0].Info(); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, want := range []string{
		"# Changes that carrick would make", "# link      milan-rome (", "# guide     Tunnel (tunnel)",
		"# created   2000-01-01T00:00:00Z, by carrick v9", "# consumer  milan", "# provider  rome",
		"# total: 1 create · 1 change · 1 delete · 2 unchanged", "## provider: Make the keys",
		"# create Secret a/keys", "+data: (hidden, 3 bytes)", "# leave Role a/as-it-is (is unchanged)",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
}

func TestCopyRefusesWhatIsTooLong(t *testing.T) {
	items := many()
	items[0].Diff = strings.Repeat("+a line of a very long object\n", 3000)
	onStage(t, (&tunnel{items: items}).options(t), 80, 24, func(p *play) {
		p.press("d")
		p.out.Reset()
		p.press("c")
		p.shows("90 kB is too much for a terminal's clipboard; s saves the plan to a file")
		if p.out.Len() != 0 {
			t.Fatal("it was sent all the same")
		}
	})
}

func TestCopyOfWhatLooksSecretNeedsASecondPress(t *testing.T) {
	o := (&tunnel{}).options(t)
	onStage(t, o, 80, 24, func(p *play) {
		for _, text := range []string{
			"-----BEGIN EC PRIVATE KEY-----", "token: abcdefghij0123456789",
			"Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJrdWJlcm5ldGVz.x",
		} {
			p.out.Reset()
			p.do(p.a.copy(text))
			p.settle()
			p.shows("c again to copy it")
			if p.out.Len() != 0 {
				t.Fatalf("%q was sent at once", text)
			}
			p.do(p.a.copy(text))
			p.settle()
			p.shows("copied: ")
			if p.out.Len() == 0 {
				t.Fatalf("%q was not sent", text)
			}
		}
		p.do(p.a.copy("carrick apply x.yaml --secret renku.token=@FILE"))
		p.settle()
		p.shows("copied: carrick apply")
	})
}

func TestWhatTheTerminalKnows(t *testing.T) {
	for name, c := range map[string]struct {
		env   map[string]string
		links bool
		clip  clipboard
	}{
		"a terminal":           {map[string]string{"TERM": "xterm-256color"}, true, direct},
		"the console of Linux": {map[string]string{"TERM": "linux"}, false, noClipboard},
		"dumb":                 {map[string]string{"TERM": "dumb"}, false, noClipboard},
		"nothing is said":      {nil, false, noClipboard},
		"screen":               {map[string]string{"TERM": "screen.xterm-256color", "STY": "1.x"}, false, inScreen},
		"screen under another": {map[string]string{"TERM": "xterm-256color", "STY": "1.x"}, false, inScreen},
		"tmux":                 {map[string]string{"TERM": "screen-256color", "TMUX": "/tmp/x,1,0"}, true, inTmux},
	} {
		got := environment(func(n string) string { return c.env[n] }).abilities()
		if got.links != c.links || got.clip != c.clip {
			t.Errorf("%s: links %v, clipboard %v", name, got.links, got.clip)
		}
	}
}

func TestClipboardOfTmux(t *testing.T) {
	for name, c := range map[string]struct {
		options  string
		load     error
		seq, say string
	}{
		"tmux takes it":        {"on/off", nil, "\x1b]52;c;aGk=\x07", "copied"},
		"tmux lets it through": {"external/on", nil, "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\", "copied"},
		"its own command":      {"external/off", nil, "", "copied, also into tmux: prefix ] pastes the text"},
		"no way": {
			"off/off", errors.New("no server"), "",
			`not copied: tmux does not allow it (set-clipboard is "off"); select the text with the mouse`,
		},
	} {
		var given string
		term := abilities{clip: inTmux, mux: func(stdin string, args ...string) (string, error) {
			if args[0] == "display-message" {
				return c.options, nil
			}
			given = stdin
			return "", c.load
		}}
		seq, say := term.sequence("hi")
		if seq != c.seq || say != c.say {
			t.Errorf("%s: %q, %q", name, seq, say)
		}
		if seq == "" && given != "hi" {
			t.Errorf("%s: tmux was given %q", name, given)
		}
	}
}

func TestAddressesAreLinksWhereTheyAreWhole(t *testing.T) {
	term := abilities{links: true}
	line := "see https://example.org/a. It says " + "https://example.org/b"
	got := term.linked(line, false)
	for _, url := range []string{"https://example.org/a", "https://example.org/b"} {
		if !strings.Contains(got, ansi.SetHyperlink(url)+url) {
			t.Errorf("%s is no link: %q", url, got)
		}
	}
	if ansi.Strip(got) != line {
		t.Errorf("the text became %q", ansi.Strip(got))
	}
	if got := term.linked(line, true); strings.Contains(got, ansi.SetHyperlink("https://example.org/b")) {
		t.Error("an address that may go on in the next line is a link")
	}
	if got := (abilities{}).linked(line, false); got != line {
		t.Errorf("a terminal without links gets %q", got)
	}
}
