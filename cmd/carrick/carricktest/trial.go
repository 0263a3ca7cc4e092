package carricktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"carrick/assets"
	"carrick/cluster/masked"
	"carrick/cmd/carrick/commands"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/action"
)

// trialMain runs carrick with an additional guide that needs no cluster: both sides are directories. The guide tests
// features that real guides do not always use: a secret, a login that waits for a user, a file and a long answer.
func trialMain() {
	RunProgram(commands.Program{Guides: append(guides.All(), trial()), Assets: assets.FS})
}

// TrialToken is the only token that the guide trial accepts.
const TrialToken = "let-me-in-4711"

func trial() *steps.Guide {
	return &steps.Guide{
		Name: "trial", Title: "Trial", About: "Writes to another directory, which requires a token.",
		Page: "https://example.org/trial",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "desk", Kind: steps.Host}, steps.Remote: {Name: "shelf", Kind: steps.Host},
		},
		Steps: []steps.Step{{
			Name: "login", Title: "Login", Why: "Writing to the shelf requires a token.",
			Ask: []steps.Question{
				{
					Key: "trial.token", Title: "Token", Help: "The token of an account that is allowed to write.", Kind: steps.Text,
					Secret: true,
					Opt:    true,
				},
				{Key: "trial.pin", Title: "PIN", Help: "a number", Kind: steps.Number, Secret: true, Opt: true},
				{Key: "trial.port", Title: "Port", Help: "any", Kind: steps.Port, Default: steps.Fixed(80, "the default")},
			},
			Actions: []steps.Action{
				{
					Name: "sign-in", Title: "Log in", On: steps.Local,
					Doer: action.Call{Preview: loginPreview, Make: loginMake, Keeps: "it expires with this session"},
				},
			},
			Checks: []steps.Check{{
				Name: "token-works", Title: "The shelf accepts the token", On: steps.Local,
				Why:     "Without a valid token carrick cannot write to the shelf.",
				FixedBy: "sign-in", Run: tokenWorks,
			}},
		}, {
			Name: "write", Title: "Write", Why: "The shelf contains one file.",
			Ask: []steps.Question{{
				Key: "trial.rules", Title: "Rules", Help: "The rules for readers, as YAML.", Kind: steps.YAML,
				Default: steps.Fixed("# who may read\nopen: true\n", "an example"),
				Check: func(text string) error {
					if at := strings.Index(text, "closed"); at >= 0 {
						return fmt.Errorf("line %d: closed is not a rule", strings.Count(text[:at], "\n")+1)
					}
					return nil
				},
			}},
			Actions: []steps.Action{{Name: "note", Title: "Write the note", On: steps.Remote, Doer: action.File{
				Path: "/etc/note.conf", Mode: 0o644, Content: func(_ context.Context, e steps.Env) (masked.Value, error) {
					return masked.New(fmt.Sprintf("port = %d\n", e.Answers.Int("trial.port"))), nil
				},
			}}},
			Checks: []steps.Check{
				{
					Name: "note-there", Title: "The note exists", On: steps.Remote, Why: "Without the note the shelf is empty.",
					FixedBy: "note",
					Run:     noteThere,
				},
			},
		}},
	}
}

func tokenWorks(_ context.Context, e steps.Env) steps.Result {
	switch token := e.Answers.Masked("trial.token"); {
	case token.IsZero():
		return steps.Failed("the token is not set", "")
	case token.Reveal() != TrialToken:
		return steps.Failed("the shelf rejects the token", "")
	}
	return steps.Passed("the shelf accepts the token, port %d", e.Answers.Int("trial.port"))
}

func noteThere(ctx context.Context, e steps.Env) steps.Result {
	switch _, err := e.Host.Read(ctx, "/etc/note.conf"); {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Failed("/etc/note.conf does not exist", "")
	case err != nil:
		return steps.Errored(err)
	}
	return steps.Passed("/etc/note.conf exists")
}

func loginPreview(_ context.Context, e steps.Env) (steps.Change, error) {
	verb := steps.Run
	if !e.Answers.Masked("trial.token").IsZero() {
		verb = steps.Leave
	}
	return steps.Change{Items: []steps.Item{{Verb: verb, What: "login at the shelf", Hash: "login"}}}, nil
}

// loginMake is a fake device login. It prints a URL and a code, and polls until the user approves the login. To approve
// it, a test creates the file /approved on the side desk.
func loginMake(ctx context.Context, e steps.Env, say steps.Progress) error {
	if !e.Attended {
		return errors.New("no terminal to log in on; give a token: --secret trial.token=@FILE")
	}
	say.Say("to log in, open https://login.example.org/realms/Trial/device?user_code=WDJB-MJHT in a browser")
	say.Say("or open https://login.example.org/device and type the code WDJB-MJHT there")
	for i := 0; ; i++ {
		if _, err := e.Host.Read(ctx, "/approved"); err == nil {
			break
		}
		say.Say("not approved yet after %d requests", i+1)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	say(steps.Event{Verb: steps.Run, What: "login at the shelf", Text: "logged in at the shelf"})
	return e.Keep("trial.token", masked.New(TrialToken))
}
