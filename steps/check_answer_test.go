package steps

import "testing"

func TestACheckThatDoesNotApplyNamesTheAnswer(t *testing.T) {
	guide := &Guide{Steps: []Step{{Ask: []Question{{Key: "net.join", Kind: YesNo}, {Key: "net.mode", Kind: Text}}}}}
	env := Env{Answers: Answers{Lookup: func(key string) any {
		return map[string]any{"net.join": false, "net.mode": nil}[key]
	}}}
	joins := func(e Env) bool { return e.Answers.Bool("net.join") }
	for name, c := range map[string]struct {
		step, check func(Env) bool
		applies     bool
		says        string
	}{
		"no condition": {nil, nil, true, ""},
		"the step's":   {joins, nil, false, "not applicable with net.join: no"},
		"the check's":  {nil, joins, false, "not applicable with net.join: no"},
		"the last one decides": {
			nil, func(e Env) bool { return !joins(e) && e.Answers.Text("net.mode") != "" }, false,
			"not applicable with net.mode: empty",
		},
		"none is read, no answer": {nil, func(Env) bool { return false }, false, NotAsked},
	} {
		applies, answer := Applies(guide, &Step{When: c.step}, &Check{When: c.check}, env)
		if applies != c.applies {
			t.Errorf("%s: applies is %v", name, applies)
		}
		if r := (Result{Status: Skip, Found: NotAsked, Answer: answer}); !applies && r.Says() != c.says {
			t.Errorf("%s: it says %q, want %q", name, r.Says(), c.says)
		}
	}
}
