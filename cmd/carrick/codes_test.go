package main

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"carrick/assets"
	"carrick/cluster/masked"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/action"
)

// codesMain is carrick with an additional guide, whose checks and actions give verdicts and errors that a guide between
// two folders otherwise cannot give.
func codesMain() {
	carricktest.RunProgram(commands.Program{Guides: append(guides.All(), codes()), Assets: assets.FS})
}

// keptSecret must not occur in any output.
const keptSecret = "hunter2-4711"

func codes() *steps.Guide {
	content := func(text string) func(context.Context, steps.Env) (masked.Value, error) {
		return func(context.Context, steps.Env) (masked.Value, error) { return masked.New(text), nil }
	}
	return &steps.Guide{
		Name: "codes", Title: "Codes", About: "Two folders.", Page: "https://example.org/codes",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "desk", Kind: steps.Host}, steps.Remote: {Name: "shelf", Kind: steps.Host},
		},
		Steps: []steps.Step{{
			Name: "first", Title: "First", Why: "It is done.",
			Actions: []steps.Action{
				{
					Name: "note", Title: "Write the note", On: steps.Local,
					Doer: action.File{Path: "/note.conf", Mode: 0o644, Content: content("port = 1\n")},
				},
				{
					Name: "key", Title: "Write the key", On: steps.Local,
					Doer: action.File{Path: "/key", Mode: 0o600, Secret: true, Content: content(keptSecret)},
				},
			},
			Checks: []steps.Check{{
				Name: "worn", Title: "the desk is new", On: steps.Local, Why: "old desks break",
				Run: func(context.Context, steps.Env) steps.Result { return steps.Warned("it is 9 years old", "buy one") },
			}},
		}, {
			Name: "second", Title: "Second", Why: "It breaks.",
			Actions: []steps.Action{{Name: "lamp", Title: "Light the lamp", On: steps.Remote, Doer: action.Call{
				Preview: func(context.Context, steps.Env) (steps.Change, error) {
					return steps.Change{Items: []steps.Item{{Verb: steps.Run, What: "the lamp", Hash: "lamp"}}}, nil
				},
				Make: func(context.Context, steps.Env, steps.Progress) error { return errors.New("the lamp is broken") },
			}}},
			Checks: []steps.Check{{
				Name: "light", Title: "there is light", On: steps.Remote, Why: "nobody sees otherwise", FixedBy: "lamp",
				Run: func(context.Context, steps.Env) steps.Result { return steps.Failed("it is dark", "") },
			}},
		}},
	}
}

// A script provokes every exit code in the table, and the scripts expect no other codes.
func TestScriptsProvokeEveryExitCode(t *testing.T) {
	provoked := map[string]bool{}
	files, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := carricktest.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:exits|refuses) (\d+) `).FindAllStringSubmatch(text, -1) {
			provoked[m[1]] = true
		}
	}
	known := rowNames(exitRows())
	for _, code := range known {
		if !provoked[code] {
			t.Errorf("no script provokes exit code %s", code)
		}
	}
	for code := range provoked {
		if !slices.Contains(known, code) {
			t.Errorf("scripts provoke %s, which the table does not know", code)
		}
	}
}
