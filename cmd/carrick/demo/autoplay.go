package demo

import (
	"strconv"

	"github.com/spf13/pflag"

	"carrick/cmd/carrick/exit"
	"carrick/ui"
)

// Autoplay contains the flags for automatic playback of a demo.
type Autoplay struct {
	On, undo bool
	pace     string
}

// Add registers the flags.
func (w *Autoplay) Add(to *pflag.FlagSet) {
	to.BoolVar(&w.On, "autoplay", false, "play the guide automatically, with captions; space pauses")
	to.StringVar(&w.pace, "pace", "normal", "with --autoplay: slow, normal, fast, or a factor such as 1.5")
	to.BoolVar(&w.undo, "undo", false, "with --autoplay: undo everything at the end")
}

// paces maps the named values of --pace to factors. A factor of 2 is twice as fast as normal.
var paces = map[string]float64{"slow": 0.7, "normal": 1, "fast": 2}

const slowest, fastest = 0.1, 100

func (w *Autoplay) factor() (f float64, ok bool) {
	if f, ok = paces[w.pace]; ok {
		return f, true
	}
	f, err := strconv.ParseFloat(w.pace, 64)
	return f, err == nil && f >= slowest && f <= fastest
}

// Valid returns an error for conflicting flags or an invalid pace.
func (w *Autoplay) Valid(flags *pflag.FlagSet) error {
	for _, name := range []string{"pace", "undo"} {
		if flags.Changed(name) && !w.On {
			return exit.Usagef("--%s requires --autoplay", name)
		}
	}
	if flags.Changed("list") && w.On {
		return exit.Usagef("--list and --autoplay cannot be used together")
	}
	if _, ok := w.factor(); !ok {
		return exit.Usagef("--pace %q: must be slow, normal, fast, or a factor from %v to %v", w.pace, slowest, fastest)
	}
	return nil
}

// Plan returns the autoplay configuration, or nil without --autoplay.
func (w *Autoplay) Plan(answers map[string]string) *ui.Walk {
	if !w.On {
		return nil
	}
	pace, _ := w.factor()
	return &ui.Walk{Pace: pace, Answers: answers, Undo: w.undo, Helped: "In this demo, a stand-in does this for you."}
}
