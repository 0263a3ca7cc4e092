package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipped "carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// mapStates lists the states of a setup in which maps are compared. passes is the number of steps that are complete.
var mapStates = []struct {
	name   string
	passes func(steps int) int
	broken bool // an arrow is broken
}{
	{"fresh", func(int) int { return 1 }, false},
	{"half-way", func(n int) int { return n / 2 }, false},
	{"green", func(n int) int { return n }, false},
	{"one arrow broken", func(n int) int { return n }, true},
}

// TestMaps compares the map of each guide in each state and size with a file.
func TestMaps(t *testing.T) {
	for _, g := range shipped.All() {
		t.Run(g.Name, func(t *testing.T) {
			var out strings.Builder
			for _, state := range mapStates {
				for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}} {
					fmt.Fprintf(&out, "== %s, %d×%d\n", state.name, size[0], size[1])
					onMap(t, g, size[0], size[1], func(p *play) {
						p.put(state.passes(len(g.Steps)), state.broken)
						out.WriteString(p.screen())
					})
				}
			}
			path := filepath.Join("testdata", "map-"+g.Name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("%s (-want +got; go test ./ui -update rewrites it):\n%s", path, diff)
			}
		})
	}
}

// onMap shows the map of a guide that has no verdicts yet.
func onMap(t *testing.T, g *steps.Guide, w, h int, scene func(*play)) {
	t.Helper()
	link := linkfile.New(g.Name, "milan-rome")
	p := &play{t: t}
	p.a = newApp(t.Context(), Options{}, func(name string) string {
		return map[string]string{"LANG": "en_US.UTF-8", "TERM": "xterm-256color"}[name]
	})
	p.a.w, p.a.h = w, h
	p.a.live = model.NewLive(t.Context(), engine.NewSession(engine.SessionOptions{Guide: g, Link: link}))
	p.a.page = newStepPage(p.a, 0)
	p.a.lay(p.a.mapPanel())
	scene(p)
}

// put sets all verdicts. The given number of steps passes. If broken is true, a check of the last arrow fails.
func (p *play) put(passes int, broken bool) {
	g, board := p.a.live.Guide(), p.a.live.Board
	breaks := -1
	for i := range g.Steps {
		if g.Steps[i].Map.Arrow != "" && broken {
			breaks = i
		}
	}
	for i := range g.Steps {
		for k, c := range g.CellsOf(i) {
			check, _ := g.Check(c.Check)
			r := steps.Passed("as it should be")
			switch act, _ := g.FixingAction(check, c.Side); {
			case i == breaks && k == 0:
				r = steps.Failed("it does not answer", "")
			case i < passes:
			case act != nil:
				r = steps.Undone("it does not exist")
			default:
				r = steps.Skipped("there is nothing to check yet")
			}
			board.Put(c, r)
		}
	}
}

// Every step of every guide is on the map, and its texts fit into the box of the smallest screen that has boxes.
func TestMapLabelsFit(t *testing.T) {
	for _, g := range shipped.All() {
		for _, s := range g.Steps {
			if s.Map.Local+s.Map.Remote == "" {
				t.Errorf("%s, step %s: there is nothing on the map", g.Name, s.Name)
			}
			for _, side := range steps.Sides {
				if l := s.Map.Label(side); len(l) > 21 {
					t.Errorf("%s, step %s: %q is longer than 21 characters", g.Name, s.Name, l)
				}
			}
		}
	}
}

func TestTheMapLeadsToWhatIsBroken(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, m.options(t), 80, 24, func(p *play) {
		p.press("2", "m")
		p.shows("map of both sides", "consumer", "provider", "2 of 3 steps")
		m.set(false)
		p.after(2 * time.Second)
		p.shows("1 of 3 steps", "│ Tunnel keys           ✗ │")
		p.press("enter")
		p.shows("step 2 of 3", "▸ the keys Secret holds one key pair")
		p.press("m", "t")
		p.shows("Broken", "esc back")
		p.press("esc", "esc", "S", "t")
		p.shows("Broken")
		p.press("esc", "esc", "m", "esc")
		p.shows("step 2 of 3")
	})
}

func TestAMoveOnTheMapShowsTheRowAgain(t *testing.T) {
	onStage(t, (&tunnel{}).options(t), 80, 24, func(p *play) {
		p.press("m", "A", "y")
		p.after(time.Minute)
		p.shows("✓ applied all steps")
		p.press("down")
		p.hides("✓ applied all steps")
		p.shows("3 Carry, consumer: Carry")
	})
}

func TestTheMapNamesWhatWasCreated(t *testing.T) {
	m := &tunnel{keys: true}
	onStage(t, m.options(t), 120, 40, func(p *play) {
		p.press("2", "m")
		p.shows("Secret tunnel/keys", "Events", "Nothing has changed since the wizard")
		m.set(false)
		p.after(2 * time.Second)
		p.shows("✗ provider: the keys Secret", "holds one key pair: FAIL")
	})
}
