package stepstest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
)

// Harmless names mutants that are allowed to stay green, with the reason. Their change has no effect or is detected
// elsewhere.
type Harmless struct {
	Where string // a regular expression that must match the whole name of a mutant
	Why   string
}

// goal is the minimum percentage of mutants that a check must detect.
const goal = 98

// Mutants changes one thing at a time in a guide's green state. It fails the test if too few of the changes alter the
// verdict of a passing check. It prints the score and the names of the undetected mutants. harmless lists mutants that
// don't count. Each of them must in fact stay green.
//
// The green state is "healthy" plus everything that the configured actions write, in the form that apply writes, and
// the drift checks (action.WithDrift). The mutants are the same each time:
//
//   - For each object, file and line that an action writes: each field, element and line deleted and altered, one more
//     element in each list and in each map of strings, other modes and owners, and fields that disable an object
//     (addedFields).
//   - For other objects, files and pages that a check reads: objects read by name deleted, pages deleted, and the
//     changes in faults, with other values.
//   - For each namespace with objects that an action writes: one more object of each kind in extraObjects.
//
// Not covered are objects of a chart, which count as read only, Jobs and Pods of trials, outputs of commands, and the
// inventory of the link. No controllers run, so the consequences of a change are not covered.
func Mutants(t *testing.T, g *steps.Guide, assets fs.FS, dir string, harmless []Harmless) {
	t.Helper()
	t.Parallel()
	defer func() { cases.Note(t, "fault", t.Name(), !t.Failed()) }()
	action.WithDrift(g)
	const workers = 2
	alive, all := make([][]string, workers), 0
	var wait sync.WaitGroup
	for w := range workers {
		b := newMutantBase(t, g, assets, dir)
		list := b.mutants(t)
		all = len(list)
		wait.Go(func() {
			killers := map[string][]steps.Cell{}
			for i := w; i < len(list); i += workers {
				if !b.killed(t, list[i], killers) {
					alive[w] = append(alive[w], list[i].name)
				}
			}
		})
	}
	wait.Wait()
	score(t, all, slices.Sorted(slices.Values(slices.Concat(alive...))), harmless)
}

// killed reports whether a mutant changes the verdict of a passing check. It first runs the checks that have killed
// mutants of the same thing.
func (b *mutantBase) killed(t *testing.T, m mutant, killers map[string][]steps.Cell) bool {
	defer m.put(t)()
	s := b.session(t)
	defer s.Close()
	order := slices.Clone(killers[m.of])
	for _, c := range m.cells {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	for _, c := range order {
		r := probed(t, s, c)
		if r.Status == steps.Pass || late(r) {
			continue
		}
		known := slices.DeleteFunc(killers[m.of], func(k steps.Cell) bool { return k == c })
		killers[m.of] = append([]steps.Cell{c}, known...)
		return true
	}
	return false
}

// probed returns the verdict of a check. It probes again after a timeout on a busy machine.
func probed(t *testing.T, s *engine.Session, c steps.Cell) (r steps.Result) {
	for range 3 {
		if r, _ = s.Probe(t.Context(), c); !late(r) {
			break
		}
	}
	return r
}

// late reports whether a verdict is a timeout, which says nothing about the mutant.
func late(r steps.Result) bool {
	return r.Status == steps.Unknown && silences.MatchString(r.Found)
}

// score prints the results of the mutants. It fails the test if too many survive.
func score(t *testing.T, all int, alive []string, harmless []Harmless) {
	t.Helper()
	used := make([]bool, len(harmless))
	survivors := slices.DeleteFunc(slices.Clone(alive), func(name string) bool {
		for i, h := range slices.Concat(harmless, alwaysHarmless) {
			if regexp.MustCompile("^(?:" + h.Where + ")$").MatchString(name) {
				if i < len(harmless) {
					used[i] = true
				}
				return true
			}
		}
		return false
	})
	for i, h := range harmless {
		if strings.TrimSpace(h.Why) == "" {
			t.Errorf("harmless %q has no reason", h.Where)
		}
		if !used[i] {
			t.Errorf("harmless %q matches no mutant that survives", h.Where)
		}
	}
	counted := all - (len(alive) - len(survivors))
	percent := math.Round(1000*float64(counted-len(survivors))/float64(counted)) / 10 // as printed
	t.Logf("mutants: %d, killed %d, harmless %d, survivors %d, score %.1f %%",
		all, all-len(alive), len(alive)-len(survivors), len(survivors), percent)
	for _, name := range survivors {
		t.Logf("survivor: %s", name)
	}
	if percent < goal {
		t.Errorf("score %.1f %% is below %d %%", percent, goal)
	}
}

// alwaysHarmless lists fields that have no effect in any object.
var alwaysHarmless = []Harmless{
	{
		Where: `.*: metadata\.(labels|annotations) one more`,
		Why:   "other tools label and annotate objects; no one reads an unknown key",
	},
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(fmt.Errorf("encode %v: %w", v, err))
	}
	return text
}
