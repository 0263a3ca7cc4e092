package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"carrick/cluster/host"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// A token that an action obtained becomes a secret answer. Requests to the API use it, and no output shows it.
func TestAnActionKeepsASecretForTheAPI(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		_, _ = fmt.Fprint(w, `{"name":"jane"}`)
	}))
	defer server.Close()
	g := guide(
		"login", steps.Role{Name: "local", Kind: steps.Host}, steps.Role{Name: "remote", Kind: steps.Cluster}, steps.Step{
			Ask: []steps.Question{
				{Key: "token", Title: "Token", Help: "of an admin", Kind: steps.Text, Secret: true, Opt: true},
			},
			Actions: []steps.Action{{Name: "sign-in", Title: "Sign in", On: steps.Local, Doer: action.Call{
				Preview: func(_ context.Context, e steps.Env) (steps.Change, error) {
					if !e.Answers.Masked("token").IsZero() {
						return steps.Change{}, nil
					}
					return steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "a login"}}}, nil
				},
				Make: func(_ context.Context, e steps.Env, _ steps.Progress) error {
					if e.Keep("no-such", masked.New("x")) == nil {
						return fmt.Errorf("an answer to no question was kept")
					}
					return e.Keep("token", masked.New("t0ken"))
				},
				Keeps: "it ends with this session",
			}}},
			Checks: []steps.Check{
				{
					Name: "signed-in", Title: "signed in", Why: "w", On: steps.Local,
					Run: func(ctx context.Context, e steps.Env) steps.Result {
						api, err := e.API()
						if err != nil {
							return steps.Errored(err)
						}
						var who struct{ Name string }
						if _, err := api.JSON(ctx, "GET", "/user", nil, &who); err != nil {
							return steps.Errored(err)
						}
						return steps.Passed("%s, %s", who.Name, e.Answers.Text("token"))
					},
				},
			},
		},
	)
	g.API = func(_ context.Context, e steps.Env) (web.Address, error) {
		if _, err := e.API(); err == nil {
			t.Error("what says where the API is was given the API")
		}
		return web.Address{Base: server.URL, Token: e.Answers.Masked("token")}, nil
	}
	host, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := engine.NewSession(engine.SessionOptions{
		Guide: g, Link: linkfile.New("login", "a"), Endpoints: map[steps.Side]engine.Endpoint{steps.Local: {Host: host}},
		Assets: fstest.MapFS{},
	})
	defer s.Close()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	r, _ := s.Probe(t.Context(), steps.Cell{Step: "one", Check: "signed-in", Side: steps.Local})
	if r.Found != "jane, (hidden)" || asked != "Bearer t0ken" {
		t.Errorf("found %q, asked as %q", r.Found, asked)
	}
	if again, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
		t.Errorf("it would sign in again: %v %v", again, err)
	}
	if len(s.Link().Answers) > 0 {
		t.Errorf("the link file got it: %v", s.Link().Answers)
	}
}
