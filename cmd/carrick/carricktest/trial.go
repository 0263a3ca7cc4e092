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

// trialMain is carrick with an additional guide that needs no cluster: both its sides are folders. The guide has
// features that no real guide may need today: a secret, a login that waits for a user, a file, a long answer.
func trialMain() {
	RunProgram(commands.Program{Guides: append(guides.All(), trial()), Assets: assets.FS})
}

// TrialToken is the only token that the trial accepts.
const TrialToken = "let-me-in-4711"

func trial() *steps.Guide {
	return &steps.Guide{
		Name: "trial", Title: "Trial", About: "Two folders, and a token between them.", Page: "https://example.org/trial",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "desk", Kind: steps.Host}, steps.Remote: {Name: "shelf", Kind: steps.Host},
		},
		Steps: []steps.Step{{
			Name: "login", Title: "Login", Why: "Writing to the shelf requires a token.",
			Ask: []steps.Question{
				{
					Key: "trial.token", Title: "Token", Help: "of an account that can write", Kind: steps.Text, Secret: true,
					Opt: true,
				},
				{Key: "trial.pin", Title: "PIN", Help: "a number", Kind: steps.Number, Secret: true, Opt: true},
				{Key: "trial.port", Title: "Port", Help: "any", Kind: steps.Port, Default: steps.Fixed(80, "the usual one")},
			},
			Actions: []steps.Action{
				{
					Name: "sign-in", Title: "Log in", On: steps.Local,
					Doer: action.Call{Preview: loginPreview, Make: loginMake, Keeps: "it ends with this session"},
				},
			},
			Checks: []steps.Check{{
				Name: "token-works", Title: "the shelf takes the token", On: steps.Local, Why: "nothing can be written without",
				FixedBy: "sign-in", Run: tokenWorks,
			}},
		}, {
			Name: "write", Title: "Write", Why: "The shelf holds one file.",
			Ask: []steps.Question{{
				Key: "trial.rules", Title: "Rules", Help: "for readers", Kind: steps.YAML,
				Default: steps.Fixed("# who may read\nopen: true\n", "an example"),
				Check: func(text string) error {
					if at := strings.Index(text, "closed"); at >= 0 {
						return fmt.Errorf("line %d: closed is no rule", strings.Count(text[:at], "\n")+1)
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
					Name: "note-there", Title: "the note is there", On: steps.Remote, Why: "it is all there is", FixedBy: "note",
					Run: noteThere,
				},
			},
		}},
	}
}

func tokenWorks(_ context.Context, e steps.Env) steps.Result {
	switch token := e.Answers.Masked("trial.token"); {
	case token.IsZero():
		return steps.Failed("there is no token", "")
	case token.Reveal() != TrialToken:
		return steps.Failed("the token is refused", "")
	}
	return steps.Passed("token taken, port %d", e.Answers.Int("trial.port"))
}

func noteThere(ctx context.Context, e steps.Env) steps.Result {
	switch _, err := e.Host.Read(ctx, "/etc/note.conf"); {
	case errors.Is(err, fs.ErrNotExist):
		return steps.Failed("there is no note", "")
	case err != nil:
		return steps.Errored(err)
	}
	return steps.Passed("one note")
}

func loginPreview(_ context.Context, e steps.Env) (steps.Change, error) {
	verb := steps.Run
	if !e.Answers.Masked("trial.token").IsZero() {
		verb = steps.Leave
	}
	return steps.Change{Items: []steps.Item{{Verb: verb, What: "login at the shelf", Hash: "login"}}}, nil
}

// loginMake is a fake device login. It prints an address and a code, and polls until the user has approved the login.
// The file /approved in the desk represents the approval.
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
		say.Say("not approved yet, asked %d times", i+1)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	say(steps.Event{Verb: steps.Run, What: "login at the shelf", Text: "logged in at the shelf"})
	return e.Keep("trial.token", masked.New(TrialToken))
}
