package carricktest

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"carrick/assets"
	"carrick/cluster/masked"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/action"
)

// duoMain is carrick with a guide for two admins that needs no cluster: both sides are folders, and each needs values
// that the other one shares, one of them a secret.
func duoMain() {
	RunProgram(commands.Program{Guides: append(guides.All(), Duo(), twin()), Assets: assets.FS})
}

// Duo returns the guide for two admins.
func Duo() *steps.Guide {
	return &steps.Guide{
		Name: "duo", Title: "Duo", About: "Two folders that tell each other a name and a word.",
		Page: "https://example.org/duo",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "guest", Kind: steps.Host}, steps.Remote: {Name: "house", Kind: steps.Host},
		},
		Steps: []steps.Step{{
			Name: "names", Title: "Names", Why: "Each side knows the other by name.",
			Ask: []steps.Question{
				{Key: "duo.room", Title: "Room", Help: "any", Kind: steps.Port, Default: steps.Fixed(7, "the usual one")},
			},
			Facts: []steps.Fact{
				{Name: "name", Title: "the name", On: steps.Both, Shared: true, Learn: line("etc/name")},
				{Name: "word", Title: "the word", On: steps.Remote, Shared: true, Secret: true, Learn: word},
			},
			Actions: []steps.Action{
				{Name: "greet", Title: "Note the house's name", On: steps.Local, Doer: noted("/etc/greeting", "name")},
				{
					Name: "enter", Title: "Note the house's word", On: steps.Local, Needs: []string{"greeted"},
					Doer: noted("/etc/entry", "word"),
				},
			},
			Checks: []steps.Check{
				{Name: "named", Title: "it has a name", On: steps.Both, Why: "it is called by it", Run: there("/etc/name")},
				{
					Name: "greeted", Title: "the guest knows the house", On: steps.Local, Why: "it asks for it", FixedBy: "greet",
					Needs: []string{"peer/named"}, Run: there("/etc/greeting"),
				},
				{
					Name: "entered", Title: "the guest knows the word", On: steps.Local, Why: "it is asked for it", FixedBy: "enter",
					Needs: []string{"greeted"}, Run: there("/etc/entry"),
				},
			},
		}},
	}
}

// twin returns the guide of Duo under another name.
func twin() *steps.Guide {
	g := Duo()
	g.Name, g.Title = "twin", "Twin"
	return g
}

func line(path string) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) {
		text, err := e.Host.Read(ctx, "/"+path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, steps.Absent("the %s has no %s", e.SideName(), path)
		}
		return strings.TrimSpace(string(text)), err
	}
}

func word(ctx context.Context, e steps.Env) (any, error) {
	v, err := line("etc/word")(ctx, e)
	if err != nil {
		return nil, err
	}
	return masked.New(v.(string)), nil
}

func noted(path, fact string) steps.Doer {
	return action.File{Path: path, Mode: 0o600, Content: func(_ context.Context, e steps.Env) (masked.Value, error) {
		if fact == "word" {
			return e.Peer.Masked(fact)
		}
		text, err := e.Peer.Text(fact)
		return masked.New(text + "\n"), err
	}}
}

func there(path string) func(context.Context, steps.Env) steps.Result {
	return func(ctx context.Context, e steps.Env) steps.Result {
		text, err := e.Host.Read(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return steps.Failed("there is no "+path, "write it")
		case err != nil:
			return steps.Errored(err)
		}
		return steps.Passed("%s has %d bytes", path, len(text))
	}
}
