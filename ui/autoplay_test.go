package ui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"carrick/steps"
)

// walking plays a walk through the tunnel guide.
func walking(t *testing.T, m *tunnel, w Walk, width, height int, scene func(*play)) {
	t.Helper()
	o := m.options(t)
	o.Walk = &w
	onStage(t, o, width, height, func(p *play) {
		p.resize(width, height)
		scene(p)
	})
}

// says returns the text of the caption as one line.
func (p *play) says() string {
	var words []string
	for _, l := range p.a.player.caption() {
		words = append(words, strings.Fields(ansi.Strip(l))...)
	}
	return strings.Join(words, " ")
}

// until advances the time until the caption contains the text, and returns how long that took. It fails the test after
// an hour.
func (p *play) until(text string) time.Duration {
	p.t.Helper()
	var heard []string
	began := time.Now()
	for time.Since(began) < time.Hour {
		said := p.says()
		if strings.Contains(said, text) {
			return time.Since(began)
		}
		if n := len(heard); n == 0 || heard[n-1] != said {
			heard = append(heard, said)
		}
		p.after(100 * time.Millisecond)
	}
	p.t.Fatalf("the caption never said %q, but:\n%s\n%s", text, strings.Join(heard, "\n"), p.screen())
	return 0
}

// never fails the test if the caption contains the text within a time.
func (p *play) never(text string, within time.Duration) {
	p.t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); p.after(100 * time.Millisecond) {
		if strings.Contains(p.says(), text) {
			p.t.Fatalf("it says %q", p.says())
		}
	}
}

func TestAWalkGoesFromTheFirstOpenStepToTheSummary(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {60, 20}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			m := &tunnel{slow: 2 * time.Second}
			walking(t, m, Walk{Pace: 1}, size[0], size[1], func(p *play) {
				p.until("Step 2 of 3, Tunnel keys.")
				p.until("Each side proves itself with a key pair of its own.")
				p.until("d diff")
				p.until("On the provider: make the keys.")
				p.shows("+ create  Secret tunnel/keys")
				p.until("a apply")
				p.until("Yes creates 1 resource on the provider.")
				p.shows("Make the keys", "No")
				if m.made() {
					t.Fatal("it applied before it was confirmed")
				}
				p.until("Applying Tunnel keys …")
				p.until("On the consumer this check is unknown: the log can be read.")
				if !m.made() {
					t.Fatal("nothing was applied")
				}
				p.until("It has to be fixed manually. The demo goes on.")
				p.until("The result of this step: 3 ok, 1 unknown, 1 warning.")
				p.until("Step 3 is green: 2 ok.")
				p.until("Not all checks pass: 8 ok")
				p.until("The demo ends here, and some checks still fail")
				p.shows("summary")
				p.press("b")
				p.shows("step 3 of 3")
				p.press("q")
				if !p.quit {
					t.Fatal("q does not leave after the walk")
				}
			})
		})
	}
}

func TestACaptionStaysAsLongAsItTakesToReadIt(t *testing.T) {
	took := map[float64]time.Duration{}
	for _, pace := range []float64{0.5, 1, 4} {
		walking(t, &tunnel{}, Walk{Pace: pace}, 80, 24, func(p *play) {
			p.until("Step 2 of 3")
			said := p.says()
			began := time.Now()
			for p.says() == said {
				p.after(50 * time.Millisecond)
			}
			took[pace] = time.Since(began)
			if want := reading(strings.TrimPrefix(said, "▸ "), pace); took[pace] < want-300*time.Millisecond ||
				took[pace] > want+300*time.Millisecond {
				t.Errorf("pace %v: %q was on show for %s, and takes %s to read", pace, said, took[pace], want)
			}
		})
	}
	if took[0.5] < 3*time.Second || took[4] > took[1]/3 {
		t.Errorf("the paces make no difference: %v", took)
	}
}

func TestAWalkPausesAndGoesOn(t *testing.T) {
	m := &tunnel{}
	walking(t, m, Walk{Pace: 1}, 80, 24, func(p *play) {
		p.until("Step 2 of 3")
		p.press(" ")
		p.until("paused: space resumes")
		p.after(10 * time.Minute)
		p.shows("step 2 of 3")
		if m.made() || len(p.a.panels) > 0 {
			t.Fatal("it went on while it was paused")
		}
		p.press(" ")
		p.hides("paused")
		p.until("d diff")

		p.press("left") // a person's key works, and pauses
		p.shows("step 1 of 3")
		p.until("paused: space resumes")
		p.after(10 * time.Minute)
		p.shows("step 1 of 3")
		p.press("?")
		p.shows("During autoplay", "space")
		p.press(" ")
		p.until("Step 1 of 3, Sites.") // from wherever the screen stands
		p.until("Step 1 is green: 3 ok.")
		p.until("On the provider: make the keys.")
		p.press("ctrl+c")
		if !p.quit || p.a.left != interrupted {
			t.Fatal("ctrl+c does not leave")
		}
	})
}

func TestWhilePausedASpaceIsASpaceInAField(t *testing.T) {
	walking(t, &tunnel{}, Walk{Pace: 1}, 80, 24, func(p *play) {
		p.until("Step 2 of 3")
		p.press("1", "e", "tab", "tab", "a", " ", "b")
		p.shows("> a b")
		p.until("paused: press esc to leave the field, then space")
		p.press("esc", " ")
		p.until("Step 1 of 3, Sites.")
	})
}

func TestAWalkSaysWhatTakesLong(t *testing.T) {
	walking(t, &tunnel{slow: 3 * time.Minute}, Walk{Pace: 1}, 80, 24, func(p *play) {
		p.until("Applying Tunnel keys …")
		p.never("Still waiting", 55*time.Second)
		p.until("Still waiting, for 1 min now: provider: making the keys")
		p.until("On the consumer this check is unknown")
	})
}

func TestAWalkWaitsForTheChecksBeforeItGoesOn(t *testing.T) {
	// the bubble's clock begins with that day; it is answered 30 s after
	m := &tunnel{came: time.Date(2000, 1, 1, 0, 0, 20, 0, time.UTC)}
	walking(t, m, Walk{Pace: 20}, 80, 24, func(p *play) {
		p.until("The workloads are starting.")
		p.never("is unknown", 15*time.Second)
		p.until("On the consumer this check is unknown")
		if p.verdict("handshake", steps.Local) != steps.Pass {
			t.Fatal("it did not wait for the handshake")
		}
	})
}

func TestAWalkGoesOnWhereApplyingFails(t *testing.T) {
	m := &tunnel{fault: errors.New("the disk is full")}
	walking(t, m, Walk{Pace: 4}, 80, 24, func(p *play) {
		p.until("The run failed:")
		p.shows("step 2 of 3", "the disk is full")
		p.until("On the provider this check fails: the keys Secret holds one key pair.")
		p.until("f runs only the action that fixes this check: make the keys.")
		p.until("The run failed:")
		p.until("f did not fix this check. It has to be fixed manually. The demo goes on.")
		p.until("The demo ends here, and some checks still fail")
	})
}

func TestAWalkStopsWhereThereIsNoPlan(t *testing.T) {
	m := &tunnel{blind: errors.New("the API server is away")}
	walking(t, m, Walk{Pace: 4}, 80, 24, func(p *play) {
		p.until("carrick stops here; the screen shows the reason. Nothing was changed.")
		p.shows("The changes could not be planned", "the API server is away")
		p.after(10 * time.Minute)
		p.shows("The changes could not be planned")
	})
}

func TestAWalkBeginsWhereTheFaultShows(t *testing.T) {
	m := &tunnel{}
	w := Walk{
		Pace: 2, Fault: "Somebody deleted the keys.", Broken: []steps.Cell{{Step: "keys", Check: "pair", Side: steps.Remote}},
	}
	walking(t, m, w, 80, 24, func(p *play) {
		p.until("On the provider this check fails: the keys Secret holds one key pair. Finding: there is no key pair.")
		p.until("Why it matters: a half pair answers nobody.")
		p.until("f runs only the action that fixes this check: make the keys.")
		p.until("Yes creates 1 resource on the provider.")
		p.until("The check passes now, after 1 change. The fault affects no other check")
		if !m.made() {
			t.Fatal("nothing was made")
		}
		p.until("Now the demo goes through all steps from the start.")
		p.until("Step 1 of 3, Sites.")
		p.until("Step 2 of 3, Tunnel keys.")
	})
}

func TestAWalkGivesTheAnswersItWasGiven(t *testing.T) {
	w := Walk{Pace: 2, Answers: map[string]string{"net.fast": "true", "net.port": "4500", "keys.owner": "ben"}}
	walking(t, &tunnel{}, w, 80, 24, func(p *play) {
		p.until("Step 2 of 3")
		p.press("1", " ")
		p.until("Open in both firewalls. The answer in this demo is 4500.")
		p.until("Port of the gateway: 4500.")
		p.until("Use jumbo frames: yes.")
		p.until("ctrl+s saves the answers")
		p.until("Step 1 is green")
		if got := p.a.live.Session.Link().Answers; fmt.Sprint(got["net.port"], got["net.fast"]) != "4500 true" {
			t.Fatalf("the answers are %v", got)
		}
		p.until("Owner of the keys: ben.")
		p.until("Yes creates 1 resource")
		if got := p.a.live.Session.Link().Answers["keys.owner"]; got != "ben" {
			t.Fatalf("the owner is %v", got)
		}
	})
}

func TestAWalkAsksAPersonForWhatItWasNotGiven(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	delete(o.Link.Answers, "keys.owner")
	o.Walk = &Walk{Pace: 2}
	onStage(t, o, 80, 24, func(p *play) {
		p.resize(80, 24)
		p.until("Your answer is required: Owner of the keys.")
		p.after(10 * time.Minute)
		p.press("a", "n", "a", "ctrl+s", " ")
		p.until("Yes creates 1 resource on the provider.")
		if got := o.Link.Answers["keys.owner"]; got != "ana" {
			t.Fatalf("the owner is %v", got)
		}
	})
}

func TestAWalkTakesEverythingBack(t *testing.T) {
	m := &tunnel{keys: true}
	walking(t, m, Walk{Pace: 4, Undo: true}, 80, 24, func(p *play) {
		p.until("It has to be fixed manually. The demo goes on.")
		p.until("carrick can undo everything")
		p.until("Yes deletes 1 resource on the provider.")
		p.until("Undone: 1 change.")
		p.until("That was the demo.")
		p.shows("summary")
		if m.made() {
			t.Fatal("the keys are still there")
		}
	})
}

func TestNewLinkIsWalkedFromItsFirstPage(t *testing.T) {
	o := clusters(t)
	o.Guide, o.Name = o.Guides[0].Name, "demo"
	o.Sides = map[steps.Side]string{steps.Local: "kind-milan", steps.Remote: "kind-rome"}
	o.Walk = &Walk{Pace: 2, Fault: "A cable was cut."}
	onStage(t, o, 80, 24, func(p *play) {
		p.resize(80, 24)
		p.until("This demo starts with a fault: A cable was cut.")
		p.until("enter begin")
		p.until("Step 1 of")
	})
}

func TestCaptionsBreakAtSentences(t *testing.T) {
	walking(t, &tunnel{}, Walk{Pace: 1}, 80, 24, func(p *play) {
		text := "One is short. Two is short, too. " + strings.Repeat("Three is longer than both of them are. ", 4) +
			strings.Repeat("four never ends and ", 20) + "ends. Liqo 1.2.0 is no end."
		parts := p.a.player.inParts(move{text: text})
		if got := strings.Join(
			strings.Fields(strings.ReplaceAll(strings.Join(parts, " "), "…", "")), " ",
		); got != strings.TrimSpace(text) {
			t.Errorf("what is shown is\n%s\nnot\n%s", got, text)
		}
		if !strings.HasSuffix(parts[0], ".") || len(parts) < 4 {
			t.Errorf("the parts are %q", parts)
		}
		for _, part := range parts {
			if len(wrap(part, p.a.player.captionRoom(""))) > 2 {
				t.Errorf("this part does not fit: %q", part)
			}
		}
	})
}

func TestNoSizeBreaksAWalk(t *testing.T) {
	walking(t, &tunnel{}, Walk{Pace: 1}, 80, 24, func(p *play) {
		p.until("Step 2 of 3")
		p.press(" ")
		for w := 20; w <= 200; w += 9 {
			for h := 3; h <= 60; h += 3 {
				p.resize(w, h)
				lines := strings.Split(p.a.View(), "\n")
				if len(lines) != h {
					t.Fatalf("%d×%d: the frame has %d lines:\n%s", w, h, len(lines), p.screen())
				}
				for _, l := range lines {
					if ansi.StringWidth(l) > w {
						t.Fatalf("%d×%d: %q is too wide", w, h, ansi.Strip(l))
					}
				}
			}
		}
	})
}

func TestAWalkDeletesSomethingAndRepairsIt(t *testing.T) {
	m := &tunnel{readable: true}
	var ran []string
	w := Walk{Pace: 4, Expendable: []string{"RoleBinding", "Secret"}}
	w.Shell = func(_ context.Context, line string) error {
		ran = append(ran, line)
		m.set(false)
		return nil
	}
	walking(t, m, w, 80, 24, func(p *play) {
		p.until("m shows both sides")
		p.until("It runs: kubectl -n tunnel delete secret keys")
		if len(ran) > 0 {
			t.Fatal("it deleted something before it said so")
		}
		p.until("after kubectl started.")
		p.shows("map")
		p.until("enter opens the row.")
		p.until("f runs only the action that fixes this check")
		p.until("Secret tunnel/keys is back, and the check passes again.")
		if !m.made() {
			t.Error("the keys are not back")
		}
		p.until("That was the demo.")
		p.shows("summary")
	})
	if len(ran) != 1 || ran[0] != "kubectl -n tunnel delete secret keys" {
		t.Errorf("it ran %q", ran)
	}
}

func TestAWalkSaysThatNothingCouldBeDeleted(t *testing.T) {
	w := Walk{Pace: 4, Expendable: []string{"Secret"}}
	w.Shell = func(context.Context, string) error { return errors.New("no kubectl here") }
	walking(t, &tunnel{readable: true}, w, 80, 24, func(p *play) {
		p.until("Nothing was deleted: no kubectl here")
		p.until("That was the demo.")
	})
}

func TestAWalkRunsThePrintedFix(t *testing.T) {
	const command = "kubectl -n tunnel scale deployment log --replicas=1"
	seen := steps.Cell{Step: "keys", Check: "seen", Side: steps.Local}
	for _, tc := range []struct {
		situation string
		err       error
		mends     bool
		says      string
	}{
		{"it mends the check", nil, true, "The check passes now."},
		{"it fails", errors.New("no such deployment"), false, "The command failed: no such deployment. The demo goes on."},
		{"it changes nothing", nil, false, "The check still fails. The demo goes on."},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			m := &tunnel{byHand: command + "    # 0 replicas write no log"}
			ran := 0
			w := Walk{Pace: 4, Fault: "Somebody switched the log off.", Broken: []steps.Cell{seen}}
			w.Shell = func(_ context.Context, line string) error {
				if ran++; line != command {
					t.Errorf("it ran %q", line)
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				m.readable = tc.mends
				return tc.err
			}
			walking(t, m, w, 80, 24, func(p *play) {
				p.until("On the consumer this check fails: the log can be read. Finding: the log is off.")
				p.until("prints what to run. The demo runs it: " + command)
				p.until(tc.says)
				p.until("Now the demo goes through all steps from the start.")
			})
			if ran != 1 {
				t.Errorf("it ran %d times", ran)
			}
		})
	}
}

func TestWhichPrintedFixesAreRun(t *testing.T) {
	for fix, want := range map[string]string{
		"":                                  "",
		"set the answer":                    "",
		"kubectl -n a get pods":             "",
		"kubectl -n a edit role b":          "",
		"helm upgrade a b":                  "",
		"kubectl delete secret NAME":        "",
		"kubectl delete secret SECRET_NAME": "",
		"kubectl delete secret a\nthen sign in again":                        "",
		"kubectl delete job a && carrick apply l --step test":                "kubectl delete job a",
		"kubectl --context c label --dry-run=server namespace a b=c":         "",
		"kubectl --context c -n a delete secret b    # then carrick apply l": "kubectl --context c -n a delete secret b",
		"kubectl apply -f - <<'EOF'\nkind: A\nEOF":                           "kubectl apply -f - <<'EOF'\nkind: A\nEOF",
	} {
		if got := commandsOf(fix); got != want {
			t.Errorf("of %q: %q", fix, got)
		}
	}
}
