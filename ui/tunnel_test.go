package ui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"carrick/cluster/host"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
	"carrick/ui/model"
)

// tunnel is a small guide for two machines, which are empty folders. Its actions and checks use only memory.
type tunnel struct {
	mu         sync.Mutex
	keys       bool                                        // the keys were made
	slow       time.Duration                               // how long making takes
	fault      error                                       // what making them ends with
	blind      error                                       // what planning that ends with
	items      []steps.Item                                // what the plan says; nil: what is true
	shown      string                                      // what the first check finds
	came       time.Time                                   // since when the handshake is waited for
	asks       []string                                    // what making asks of the person, before it waits
	makes      func(context.Context, steps.Progress) error // in the place of making the keys; nil: they are made
	long       bool                                        // the first step asks for a long answer
	sitesAsk   []steps.Question                            // what the first step asks; nil: its own
	readable   bool                                        // the log can be read
	byHand     string                                      // the printed fix while it can't be read; "": nothing answers
	needsOwner bool                                        // planning reads the owner of the keys
}

func (m *tunnel) made() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys
}

func (m *tunnel) set(keys bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys = keys
}

// there is the Run function of the first check.
func (m *tunnel) there(context.Context, steps.Env) steps.Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	return steps.Passed("%s", m.shown)
}

// soon makes a check run again shortly, because its reads can't be watched.
func soon(r steps.Result) steps.Result {
	r.Again = time.Now().Add(500 * time.Millisecond)
	return r
}

func (m *tunnel) guide() *steps.Guide {
	return &steps.Guide{
		Name: "tunnel", Title: "Tunnel", About: "Joins two sites by a tunnel, and proves that it carries.",
		Page: "https://example.org/tunnel",
		Sides: map[steps.Side]steps.Role{
			steps.Local: {Name: "consumer", Kind: steps.Host}, steps.Remote: {Name: "provider", Kind: steps.Host},
		},
		Steps: []steps.Step{m.sites(), m.tunnelKeys(), {
			Name: "carry", Title: "Carry", Why: "What the tunnel is for.",
			Checks: []steps.Check{
				{
					Name: "carries", Title: "the tunnel carries", On: steps.Both, Needs: []string{"handshake"},
					Run: fixed(steps.Passed("12 ms")),
				},
			},
		}},
	}
}

func fixed(r steps.Result) func(context.Context, steps.Env) steps.Result {
	return func(context.Context, steps.Env) steps.Result { return r }
}

func (m *tunnel) sites() steps.Step {
	s := m.twoSites()
	if m.sitesAsk != nil {
		s.Ask, s.Checks = m.sitesAsk, s.Checks[:1]
	}
	if m.long {
		s.Ask = append(s.Ask, steps.Question{
			Key: "net.routes", Title: "Routes", Help: "What the tunnel carries.", Kind: steps.YAML,
			Default: steps.Fixed("# what it carries\nroutes:\n  - 10.1.0.0/16\n", "an example"),
			Check: func(text string) error {
				for i, l := range strings.Split(text, "\n") {
					if strings.Contains(l, "0.0.0.0/0") {
						return fmt.Errorf("line %d: not everything may go through", i+1)
					}
				}
				return nil
			},
		})
	}
	return s
}

func (m *tunnel) twoSites() steps.Step {
	return steps.Step{
		Name: "sites", Title: "Sites", Why: "Both sites must be there before they can be joined.",
		Ask: []steps.Question{
			{
				Key: "net.port", Title: "Port of the gateway", Kind: steps.Port, Help: "Open in both firewalls.",
				Default: steps.Fixed(51820, "WireGuard's own"),
			},
			{
				Key: "net.fast", Title: "Use jumbo frames", Kind: steps.YesNo, Help: "Only where all between can.",
				Default: steps.Fixed(false, "most can't"),
			},
			{Key: "net.note", Title: "A note", Kind: steps.Text, Opt: true},
		},
		Checks: []steps.Check{
			{Name: "there", Title: "the site is there", Why: "nothing else can be looked at", On: steps.Both, Run: m.there},
			{
				Name: "port", Title: "the port is free or ours", On: steps.Local,
				Run: func(_ context.Context, e steps.Env) steps.Result {
					return steps.Passed("port %d", e.Answers.Int("net.port"))
				},
			},
		},
	}
}

func (m *tunnel) tunnelKeys() steps.Step {
	return steps.Step{
		Name: "keys", Title: "Tunnel keys", Why: "Each side proves itself with a key pair of its own.",
		Ask: []steps.Question{
			{Key: "keys.owner", Title: "Owner of the keys", Kind: steps.Name, Help: "Who is told before they end."},
		},
		Actions: []steps.Action{{Name: "keys", Title: "Make the keys", On: steps.Remote, Doer: m.call()}},
		Checks: []steps.Check{
			{
				Name: "pair", Title: "the keys Secret holds one key pair", Why: "a half pair answers nobody", On: steps.Both,
				FixedBy: "keys", References: []string{"example/tunnel: docs/keys.md"},
				Run: func(_ context.Context, e steps.Env) steps.Result {
					if e.Side == steps.Local || m.made() {
						return soon(steps.Passed("one pair"))
					}
					r := steps.Failed("there is no key pair", "tunnel keys --make")
					r.Made = true // so that it is broken, not to do
					return soon(r)
				},
			},
			{
				Name: "handshake", Title: "the gateway answers a WireGuard handshake on the address that the other side knows",
				On: steps.Local, From: "this machine", Needs: []string{"pair", "peer/pair"},
				Run: func(context.Context, steps.Env) steps.Result {
					if time.Since(m.came) < 30*time.Second {
						return soon(steps.Waits(m.came, "sent, no answer yet"))
					}
					return steps.Passed("answered")
				},
			},
			{
				Name: "age", Title: "the credential lives for 30 days more", On: steps.Remote,
				Run: fixed(steps.Warned("it ends in 6 days", "tunnel keys --renew")),
			},
			{
				Name: "seen", Title: "the log can be read", On: steps.Local,
				Run: func(context.Context, steps.Env) steps.Result {
					m.mu.Lock()
					defer m.mu.Unlock()
					switch {
					case m.readable:
						return steps.Passed("read")
					case m.byHand != "":
						return soon(steps.Failed("the log is off", m.byHand))
					}
					return steps.Errored(errors.New("connection refused"))
				},
			},
		},
	}
}

func (m *tunnel) call() action.Call {
	item := func(v steps.Verb) (steps.Change, error) {
		if m.blind != nil {
			return steps.Change{}, m.blind
		}
		if m.items != nil {
			return steps.Change{Items: m.items}, nil
		}
		if m.made() == (v == steps.Create) {
			v = steps.Leave
		}
		return steps.Change{
			Items: []steps.Item{{Verb: v, What: "Secret tunnel/keys", Diff: "@@ -0,0 +1 @@\n+kind: Secret\n", Hash: "1"}},
		}, nil
	}
	return action.Call{
		Preview: func(_ context.Context, e steps.Env) (steps.Change, error) {
			if m.needsOwner {
				e.Answers.Text("keys.owner")
			}
			return item(steps.Create)
		},
		Make: func(ctx context.Context, _ steps.Env, say steps.Progress) error {
			for _, l := range m.asks {
				say.Say("%s", l)
			}
			if m.makes != nil {
				return m.makes(ctx, say)
			}
			say.Say("making the keys")
			select {
			case <-time.After(m.slow):
			case <-ctx.Done():
				return ctx.Err()
			}
			if m.fault != nil {
				return m.fault
			}
			m.set(true)
			say(steps.Event{Verb: steps.Create, What: "Secret tunnel/keys", Text: "create Secret tunnel/keys"})
			return nil
		},
		Left: func(context.Context, steps.Env) (steps.Change, error) { return item(steps.Delete) },
		Revert: func(_ context.Context, _ steps.Env, say steps.Progress) error {
			m.set(false)
			say(steps.Event{Verb: steps.Delete, What: "Secret tunnel/keys", Text: "delete Secret tunnel/keys"})
			return nil
		},
	}
}

// options returns the options of the wizard on an existing link of that guide.
func (m *tunnel) options(t *testing.T) Options {
	t.Helper()
	if m.shown == "" {
		m.shown = "it is there"
	}
	dir, guide := t.TempDir(), m.guide()
	ends := map[steps.Side]engine.Endpoint{}
	for side, name := range map[steps.Side]string{steps.Local: "milan", steps.Remote: "rome"} {
		h, err := host.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		ends[side] = engine.Endpoint{Host: h, Name: name}
	}
	link := linkfile.New("tunnel", "milan-rome")
	link.Path = filepath.Join(dir, "milan-rome.yaml")
	link.Local.Host, link.Remote.Host = &linkfile.HostSpec{Root: "/"}, &linkfile.HostSpec{Root: dir}
	link.Answers["keys.owner"] = "ana"
	return Options{Options: model.Options{
		Guides: []*steps.Guide{guide}, Link: link,
		Open: func(l *linkfile.Link) (*engine.Session, error) {
			return engine.NewSession(engine.SessionOptions{Guide: guide, Link: l, Endpoints: ends}), nil
		},
		Candidates: func() ([]engine.Candidate, error) {
			return []engine.Candidate{
				{Context: "kind-milan", Server: "https://10.0.0.1", Current: true},
				{Context: "kind-rome", Server: "https://10.0.0.2"},
				{Context: "rome-again", Server: "https://10.0.0.2"},
				{Context: "gone", Server: "https://10.0.0.9"},
			}, nil
		},
		Preflight: func(_ context.Context, name string) (engine.Preflight, error) {
			switch name {
			case "gone":
				return engine.Preflight{}, errors.New("nothing listens there")
			case "rome-again":
				name = "kind-rome"
			}
			return engine.Preflight{Version: "v1.36.3", UID: "of " + name, Latency: 12 * time.Millisecond}, nil
		},
		Folder: dir,
	}}
}

// numbered returns n checks.
func numbered(n int) []steps.Check {
	var out []steps.Check
	for i := range n {
		out = append(
			out,
			steps.Check{
				Name: fmt.Sprintf("row-%d", i+1), Title: fmt.Sprintf("row %d holds", i+1), On: steps.Both,
				Run: fixed(steps.Passed("yes")),
			},
		)
	}
	return out
}
