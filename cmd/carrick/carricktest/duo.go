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

// duoMain runs carrick with an additional guide for two admins. The guide needs no cluster: both sides are directories.
// Each side needs values from the other side, and one of them is a secret.
func duoMain() {
	RunProgram(commands.Program{Guides: append(guides.All(), TwoAdmins()...), Assets: assets.FS})
}

// TwoAdmins returns all guides for two admins: Duo, and the same guide with another name.
func TwoAdmins() []*steps.Guide {
	twin := Duo()
	twin.Name, twin.Title = "twin", "Twin"
	return []*steps.Guide{Duo(), twin}
}

// Duo returns a guide for two admins whose sides are directories.
func Duo() *steps.Guide {
	return &steps.Guide{
		Name: "duo", Title: "Duo", About: "Exchanges a name and a word between two directories.",
		Page: "https://example.org/duo",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "guest", Kind: steps.Host}, steps.Remote: {Name: "house", Kind: steps.Host},
		},
		Steps: []steps.Step{{
			Name: "names", Title: "Names", Why: "Each side requires the name of the other side.",
			Ask: []steps.Question{
				{Key: "duo.room", Title: "Room", Help: "any", Kind: steps.Port, Default: steps.Fixed(7, "the default")},
			},
			Facts: []steps.Fact{
				{Name: "name", Title: "the name", On: steps.Both, Shared: true, Learn: line("etc/name")},
				{Name: "word", Title: "the word", On: steps.Remote, Shared: true, Secret: true, Learn: word},
			},
			Actions: []steps.Action{
				{Name: "greet", Title: "Write the house's name to a file", On: steps.Local, Doer: noted("/etc/greeting", "name")},
				{
					Name: "enter", Title: "Write the house's word to a file", On: steps.Local, Needs: []string{"greeted"},
					Doer: noted("/etc/entry", "word"),
				},
			},
			Checks: []steps.Check{
				{
					Name: "named", Title: "The side has a name", On: steps.Both,
					Why: "Without a name the other side cannot refer to this side.", Run: there("/etc/name"),
				},
				{
					Name: "greeted", Title: "The guest has the house's name", On: steps.Local,
					Why: "Without the name the guest cannot contact the house.", FixedBy: "greet",
					Needs: []string{"peer/named"}, Run: there("/etc/greeting"),
				},
				{
					Name: "entered", Title: "The guest has the house's word", On: steps.Local,
					Why: "Without the word the house rejects the guest.", FixedBy: "enter",
					Needs: []string{"greeted"}, Run: there("/etc/entry"),
				},
			},
		}},
	}
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
			return steps.Failed("there is no "+path, "write the file")
		case err != nil:
			return steps.Errored(err)
		}
		return steps.Passed("%s has %d bytes", path, len(text))
	}
}
