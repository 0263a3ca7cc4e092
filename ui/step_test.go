package ui

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func TestOpensAtTheFirstStepThatIsNotGreen(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.shows("step 2 of 3", "✗ FAIL", "there is no key pair", "tunnel keys --make")
	})
}

func TestApplyThenUndo(t *testing.T) {
	m := &tunnel{}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.shows("a apply 1 change")
		p.press("a")
		p.press("enter") // it stands on No
		if m.made() {
			t.Fatal("enter on No applied")
		}
		p.shows("nothing was changed")
		p.press("a", "y")
		p.after(2 * time.Second)
		p.shows("✓ applied Tunnel keys: 1 change")
		if !m.made() || p.verdict("pair", steps.Remote) != steps.Pass {
			t.Fatal("applied, and the board does not show it")
		}
		p.press("u")
		p.shows("Undo Tunnel keys?", "delete")
		p.press("right", "enter")
		p.after(2 * time.Second)
		if m.made() || p.verdict("pair", steps.Remote) != steps.Fail {
			t.Fatal("undone, and the board does not show it")
		}
		p.press("l")
		p.shows("create Secret tunnel/keys", "delete Secret tunnel/keys")
	})
}

// A yes before a confirmation is shown has no effect, neither on a step nor in the summary.
func TestAnEarlyYesIsHeldBack(t *testing.T) {
	m := &tunnel{}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		page := p.a.page.(*stepPage)
		page.asked = toApply
		p.press("y")
		p.shows("not yet: y once the changes are shown", "there is no key pair")
		p.press("S", "G", "enter")
		p.shows("summary")
		page.asked = toUndo
		p.press("y")
		p.hides("Copied")
		p.shows("not yet: y once the changes are shown")
		if m.made() {
			t.Error("something was made")
		}
	})
}

// If a check fails although its objects exist, the wizard does not offer to create them.
func TestWhatIsMadeIsNotOffered(t *testing.T) {
	m := &tunnel{items: []steps.Item{{Verb: steps.Leave, What: "Secret tunnel/keys"}}}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.shows("there is no key pair", "c  tunnel keys --make")
		p.hides("f  Make the keys")
		p.press("f")
		p.shows("everything that carrick creates here exists")
	})
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) { p.shows("f  Make the keys", "c  tunnel keys --make") })
}

func TestErrorOfApplyStaysReadable(t *testing.T) {
	m := &tunnel{fault: errors.New("the disk is full")}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.after(time.Second)
		p.shows("the disk is full")
		p.press("esc")
		p.hides("the disk is full")
		p.press("l")
		p.shows("the disk is full")
	})
}

func TestInterruptStopsTheRunFirst(t *testing.T) {
	m := &tunnel{slow: time.Minute}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.shows("applying Tunnel keys", "ctrl+c stop")
		p.press("q")
		p.shows("still running")
		p.press("ctrl+c")
		p.after(time.Second)
		if p.quit || m.made() {
			t.Fatal("ctrl+c did not just stop the run")
		}
		p.shows("stopped by you; nothing was changed")
		p.press("ctrl+c")
		if !p.quit || p.a.left != interrupted {
			t.Fatal("the second ctrl+c did not leave")
		}
	})
}

func TestConflictIsAskedByItself(t *testing.T) {
	m := &tunnel{
		items: []steps.Item{
			{
				Verb: steps.Update, What: "ConfigMap a/b", Hash: "1",
				Conflicts: []failure.Conflict{{Manager: "helm", Field: ".data.x"}},
			},
			{Verb: steps.Replace, What: "Role a/c", Hash: "2"},
		},
	}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.shows("Take over fields of helm?", "Helm 3 and kubectl apply overwrite them", ".data.x is set by helm", "▸ No")
		p.press("y")
		p.shows("Delete and recreate?", "Role a/c")
		p.hides("ConfigMap")
		p.press("n")
		p.shows("nothing was changed")
		if m.made() {
			t.Fatal("No to the last question applied")
		}
	})
}

// After answers have changed, the result of a run with the old answers is no longer shown.
func TestANewAnswerTakesAFailedRunOutOfSight(t *testing.T) {
	m := &tunnel{fault: errors.New("the disk is full")}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("a", "y")
		p.shows("the disk is full")
		p.press("e", "ctrl+s")
		p.shows("the disk is full") // nothing was changed
		p.press("e", "x", "ctrl+s")
		p.shows("1 answer saved")
		p.hides("the disk is full")
	})
}

// For existing objects, a confirmation shows which fields change.
func TestAConfirmSaysWhatChanges(t *testing.T) {
	labels := "@@ -1,2 +1,2 @@\n labels:\n-    level: restricted\n+    level: baseline\n"
	items := []steps.Item{
		{Verb: steps.Update, What: "Namespace tunnel", Diff: labels, Hash: "1"},
		{
			Verb: steps.Update, What: "ConfigMap tunnel/big", Diff: "@@ -1,1 +1,6 @@\n-one\n" + strings.Repeat("+two\n", 5),
			Hash: "2",
		},
		{Verb: steps.Create, What: "Secret tunnel/keys", Diff: "@@ -0,0 +1 @@\n+kind: Secret\n", Hash: "3"},
	}
	onStage(t, (&tunnel{items: items}).options(t), 80, 24, func(p *play) {
		p.press("2", "a")
		p.shows("change  Namespace tunnel", "- level: restricted", "+ level: baseline", "+5 -1 lines; d shows them")
		p.hides("labels:", "two", "kind: Secret", "scroll")
	})
	for range 20 {
		items = append(items, items[0])
	}
	onStage(t, (&tunnel{items: items}).options(t), 80, 24, func(p *play) {
		p.press("2", "a")
		p.shows("↑↓ scroll")
	})
}

// A text that is too long for the screen names the key that shows the rest.
func TestALongFixSaysWhereItsRestIs(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	pair := &o.Guides[0].Steps[1].Checks[0]
	run := pair.Run
	pair.Run = func(ctx context.Context, e steps.Env) steps.Result {
		r := run(ctx, e)
		if r.Fix != "" {
			r.Fix = strings.Repeat("tunnel keys --make\n", 30)
		}
		return r
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.press("2")
		p.shows("there is no key pair", "tunnel keys --make", "enter shows all")
		p.press("enter")
		p.hides("enter shows all")
	})
}

func TestDiff(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("d")
		p.shows("+ create  Secret tunnel/keys", "+kind: Secret", "1 create")
		p.press("esc")
		p.shows("step 2 of 3")
	})
}

func TestFormKeepsWhatWasTyped(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("1", "e")
		p.shows("Port of the gateway", "from WireGuard's own", "51820")
		p.press("0", "esc")
		p.shows("your input is kept")
		p.press("e")
		p.shows("518200")
		p.press("ctrl+s")
		p.shows("is not a port")
		p.press("backspace", "backspace", "ctrl+s")
		p.shows("1 answer saved")
		p.press("down")
		p.shows("port 5182")
		saved, err := os.ReadFile(p.a.live.Session.Link().Path)
		if err != nil || !strings.Contains(string(saved), "net.port: 5182") {
			t.Fatalf("the link file: %v\n%s", err, saved)
		}
		if strings.Contains(string(saved), "net.fast") {
			t.Fatal("a default that nobody touched was saved")
		}
	})
}

func TestFormOpensByItselfWhereAnAnswerIsMissing(t *testing.T) {
	o := (&tunnel{}).options(t)
	delete(o.Link.Answers, "keys.owner")
	onStage(t, o, 80, 24, func(p *play) {
		p.shows("Owner of the keys")
		p.press("esc")
		p.shows("1 answer missing")
		p.press("n", "b")
		p.shows("1 answer missing")
		p.hides("Owner of the keys")
		p.press("e", "b", "o", "b", "enter")
		p.shows("1 answer saved")
	})
}

// A key pressed before the answers are read is not lost.
func TestFormOpensOnceTheAnswersAreRead(t *testing.T) {
	o := (&tunnel{}).options(t)
	fast := &o.Guides[0].Steps[0].Ask[1]
	fast.Default = func(steps.Env) (any, string) {
		time.Sleep(3 * time.Second) // the clock is the bubble's
		return false, "most can't"
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.press("1", "e")
		p.shows("reading the answers")
		p.hides("Port of the gateway")
		p.after(5 * time.Second)
		p.shows("Port of the gateway")
		p.press("esc", "n", "b")
		p.hides("Port of the gateway")
	})
}

func TestFilter(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("/", "l", "o", "g", " ", "c")
		p.shows("1 of 4", "the log can be read")
		p.hides("the keys Secret")
		p.press("q", "?") // letters here
		p.shows("no row has this text")
		p.press("esc")
		p.shows("the keys Secret")
	})
}

func TestWaitingCountsAndOthersRest(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		m.came = time.Now()
		p.press("R")
		p.after(12 * time.Second)
		p.shows("◌ 12 s")
		p.after(20 * time.Second)
		if got := p.verdict("handshake", steps.Local); got != steps.Pass {
			t.Fatalf("handshake: %v", got)
		}
		if p.a.pace() != 0 {
			t.Fatalf("a screen at rest is drawn every %v", p.a.pace())
		}
	})
}

func TestNothingFromOutsideDrivesTheTerminal(t *testing.T) {
	m := &tunnel{shown: "\x1b]0;owned\x07\x1b[31mred\u202e"}
	o := m.options(t)
	onStage(t, o, 80, 24, func(p *play) {
		p.press("1")
		p.shows("red")
		if v := p.a.View(); strings.Contains(v, "owned") || strings.Contains(v, "\u202e") || strings.Contains(v, "\x07") {
			t.Fatalf("an escape sequence came through: %q", v)
		}
	})
}

func TestASCII(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.ASCII = true
	onStage(t, o, 60, 20, func(p *play) {
		p.shows("70x20 shows both")
		p.resize(120, 40)
		for i, r := range p.screen() {
			if r > 126 {
				t.Fatalf("%q at %d:\n%s", r, i, p.screen())
			}
		}
		p.shows("x FAIL", "+ ok")
	})
}

func TestManyRowsKeepTheSelectedOneInSight(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	o.Guides[0].Steps[0].Checks = append(o.Guides[0].Steps[0].Checks, numbered(40)...)
	onStage(t, o, 80, 24, func(p *play) {
		p.press("1", "G")
		p.shows("row 40 holds", "42 of 42")
		p.press("pgdown", "g")
		p.shows("the site is there", "1 of 42")
	})
}

func TestOpenFailsInWords(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Open = func(*linkfile.Link) (*engine.Session, error) {
		return nil, errors.New("provider: no context is called rome")
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.shows("✗ provider: no context is called rome", "q quit")
		p.press("q")
		if !p.quit {
			t.Fatal("q did not quit")
		}
	})
}

func TestCtxEndsAllCommands(t *testing.T) {
	// onStage fails by itself where a command outlives its context.
	onStage(t, (&tunnel{slow: time.Hour}).options(t), 80, 24, func(p *play) { p.press("a", "y") })
}

// On a slow connection, a held key arrives as one message with many characters.
func TestKeysThatArriveTogether(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("1", "j", "j")
		want := p.screen()
		p.press("k", "k")
		if p.screen() == want {
			t.Fatal("the keys move nothing: this proves nothing")
		}
		p.deliver(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("jj")})
		p.settle()
		if got := p.screen(); got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
	})
}

// A required question may have no default until another answer is saved. So the form can save the other answer first.
func TestAFormThatFillsItself(t *testing.T) {
	m := &tunnel{sitesAsk: []steps.Question{
		{Key: "net.over", Title: "Over what", Kind: steps.Name, Opt: true},
		{Key: "net.mtu", Title: "Largest packet", Kind: steps.Text, Default: func(e steps.Env) (any, string) {
			if e.Answers.Text("net.over") == "fibre" {
				return "9000", "fibre"
			}
			return nil, ""
		}},
	}}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("1", "ctrl+s") // what asks for an answer opens by itself
		p.shows("✗ Largest packet: an answer is required")
		for _, r := range "fibre" {
			p.press(string(r))
		}
		p.press("ctrl+s")
		p.shows("1 answer saved")
		p.press("e")
		p.shows("9000", "from fibre")
	})
}
