package stepstest

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/steps"
	"carrick/steps/engine"
)

// skews matches the difference between two clocks. A server's time has a resolution of one second.
var skews = regexp.MustCompile(`(?:\d+h)?\d+m\d+s (ahead of|behind)`)

// moments matches dates and long durations, which differ from day to day.
var moments = regexp.MustCompile(`\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?|\d+h\d+m\d+s|\d\d:\d\d:\d\d|\b[0-9a-f]{16}\b`)

// silences matches the messages about a side that does not answer. The order of requests determines which of these
// messages a check gets.
var silences = regexp.MustCompile(
	`no valid answer since \S+: |no answer within 10s|the API server (has not answered since \S+|did not answer in time.*)`,
)

var update = flag.Bool("update", false, "write what was found into the states' want sections")

// Play runs all checks of the guide on every state in dir and compares the verdicts with the state's want section.
// Every check, including shared ones, must pass in at least one state, and fail or warn in another. For a check that
// verifies that a side answers, the second verdict can be unknown.
//
// Play runs in parallel with tests on control planes, which mostly wait.
func Play(t *testing.T, g *steps.Guide, assets fs.FS, dir string) {
	t.Helper()
	t.Parallel()
	names, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no states in %s", dir)
	}
	good, bad, silent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	bases := map[string]map[steps.Cell]string{}
	for _, path := range names {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			p := play(t, g, assets, dir, name, bases)
			for c, r := range p.verdicts {
				switch r.Status {
				case steps.Pass:
					good[c.Check] = true
				case steps.Fail, steps.Warn:
					bad[c.Check] = true
				case steps.Unknown: // a side that does not answer makes every check unknown
					silent[c.Check] = true
				}
			}
			p.compare(t)
		})
	}
	if run := flag.Lookup("test.run"); run != nil && strings.Contains(run.Value.String(), "/") {
		return // only some states were run
	}
	for i := range g.Steps {
		for _, c := range g.Steps[i].Checks {
			if c.NotChecked == "" && !good[c.Name] {
				t.Errorf("check %s: no state in which it passes", c.Name)
			}
			asksForSide := (c.On == steps.Both || c.On.Peer() == hostSide(g)) && len(c.Needs) == 0
			if c.NotChecked == "" && !bad[c.Name] && (!asksForSide || !silent[c.Name]) {
				t.Errorf("check %s: no state that makes it fail or warn", c.Name)
			}
		}
	}
}

type played struct {
	guide    *steps.Guide
	state    *state
	verdicts map[steps.Cell]steps.Result
	said     map[steps.Cell]string
	base     map[steps.Cell]string
}

func play(
	t *testing.T, g *steps.Guide, assets fs.FS, dir, name string, bases map[string]map[steps.Cell]string,
) *played {
	t.Helper()
	p := &played{guide: g}
	p.look(t, assets, dir, name)
	if b := p.state.base; b != nil {
		if bases[b.name] == nil {
			base := &played{guide: g}
			base.look(t, assets, dir, b.name)
			bases[b.name] = base.said
		}
		p.base = bases[b.name]
	}
	return p
}

func (p *played) look(t *testing.T, assets fs.FS, dir, name string) {
	t.Helper()
	g := p.guide
	s, st, scrubbed := open(t, g, assets, dir, name, nil)
	board, _ := s.Look(t.Context(), g.Cells())
	p.state, p.verdicts, p.said = st, map[steps.Cell]steps.Result{}, map[steps.Cell]string{}
	for _, c := range g.Cells() {
		r := board.Verdict(c)
		p.verdicts[c] = r
		p.said[c] = fmt.Sprintf("%s %s %s", c.Side, c.Check, r.Status)
		if r.Status != steps.Pass {
			p.said[c] += ": " + scrub(scrubbed.Replace(r.Found)) + fixLines(scrubbed.Replace(r.Fix))
		}
	}
}

// Stand opens a session on the fake servers of a state. A test of a fact uses it to read the answer whose default is
// the fact.
func Stand(t *testing.T, g *steps.Guide, assets fs.FS, dir, name string) *engine.Session {
	t.Helper()
	s, _, _ := open(t, g, assets, dir, name, nil)
	return s
}

// StandWith is like Stand on a state without a base. sections are additional sections, such as "-- local --" with
// objects.
func StandWith(t *testing.T, g *steps.Guide, assets fs.FS, dir, name, sections string) *engine.Session {
	t.Helper()
	base, err := os.ReadFile(filepath.Join(dir, name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for file, text := range map[string]string{name: string(base), "with": "-- base --\n" + name + "\n" + sections} {
		if err := os.WriteFile(filepath.Join(dir, file+".txtar"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Stand(t, g, assets, dir, "with")
}

// open opens a session on the fake servers of a state, with additional answers. The replacer removes values that differ
// from run to run.
func open(
	t *testing.T, g *steps.Guide, assets fs.FS, dir, name string, more map[string]any,
) (*engine.Session, *state, *strings.Replacer) {
	t.Helper()
	f := newFakes(t, g, assets, dir, name)
	maps.Copy(f.state.answers, more)
	s := f.session(t)
	t.Cleanup(s.Close)
	return s, f.state, strings.NewReplacer(f.scrub...)
}

func (p *played) compare(t *testing.T) {
	t.Helper()
	got := p.lines()
	if *update {
		if err := p.state.rewrite(got); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(p.state.want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", p.state.path, d)
	}
}

// lines returns the verdicts as in a want section. For a state with a base, it returns only the verdicts that differ
// from the base.
func (p *played) lines() string {
	var out []string
	for _, c := range p.guide.Cells() {
		if p.base == nil || p.said[c] != p.base[c] {
			out = append(out, p.said[c])
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// fixPrefix begins each line of a fix in a want section. The lines follow the verdict.
const fixPrefix = "fix: "

// fixLines returns the lines of a fix as in a want section. Each begins with a line break.
func fixLines(fix string) string {
	var out strings.Builder
	for line := range strings.Lines(moments.ReplaceAllString(fix, "…")) {
		out.WriteString(strings.TrimRight("\n  "+fixPrefix+strings.TrimRight(line, "\n"), " "))
	}
	return out.String()
}

// scrub removes everything from a finding that differs from run to run.
func scrub(found string) string {
	found = strings.Join(strings.Fields(found), " ")
	found = silences.ReplaceAllStringFunc(found, func(m string) string {
		if strings.HasSuffix(m, ": ") {
			return "" // the finding continues with the cause
		}
		return "(no answer)"
	})
	return moments.ReplaceAllString(skews.ReplaceAllString(found, "… ${1}"), "…")
}
