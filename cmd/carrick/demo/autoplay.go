package demo

import (
	"strconv"

	"github.com/spf13/pflag"

	"carrick/cmd/carrick/exit"
	"carrick/ui"
)

// Autoplay has the flags of a demo that plays automatically.
type Autoplay struct {
	On, undo bool
	pace     string
}

// Add adds the flags to a flag set.
func (w *Autoplay) Add(to *pflag.FlagSet) {
	to.BoolVar(&w.On, "autoplay", false, "play the guide automatically, with captions; space pauses")
	to.StringVar(&w.pace, "pace", "normal", "with --autoplay: slow, normal, fast, or a factor such as 1.5")
	to.BoolVar(&w.undo, "undo", false, "with --autoplay: undo everything at the end")
}

// paces are the named values of --pace. 1 is normal speed, 2 is twice as fast.
var paces = map[string]float64{"slow": 0.7, "normal": 1, "fast": 2}

// The minimum and maximum factor of --pace.
const slowest, fastest = 0.1, 100

// factor returns the pace as a number. ok is false if it is invalid.
func (w *Autoplay) factor() (f float64, ok bool) {
	if f, ok = paces[w.pace]; ok {
		return f, true
	}
	f, err := strconv.ParseFloat(w.pace, 64)
	return f, err == nil && f >= slowest && f <= fastest
}

// Valid rejects conflicting flags and an invalid pace.
func (w *Autoplay) Valid(flags *pflag.FlagSet) error {
	for _, name := range []string{"pace", "undo"} {
		if flags.Changed(name) && !w.On {
			return exit.Usagef("--%s requires --autoplay", name)
		}
	}
	if flags.Changed("list") && w.On {
		return exit.Usagef("--list and --autoplay exclude each other")
	}
	if _, ok := w.factor(); !ok {
		return exit.Usagef("--pace %q: want slow, normal, fast, or a factor from %v to %v", w.pace, slowest, fastest)
	}
	return nil
}

// Plan returns the configuration of autoplay with those answers; nil: the wizard waits for keys.
func (w *Autoplay) Plan(answers map[string]string) *ui.Walk {
	if !w.On {
		return nil
	}
	pace, _ := w.factor()
	return &ui.Walk{Pace: pace, Answers: answers, Undo: w.undo, Helped: "In this demo a stand-in answers."}
}
