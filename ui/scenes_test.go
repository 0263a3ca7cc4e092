package ui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/cluster/host"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// scene leads to a screen or a panel, for tests that apply to all of them.
type scene struct {
	name  string
	stage func(*testing.T, *tunnel) Options // nil: an existing link of a guide with everything
	keys  []string
	then  func(*play)
	stays []string // what no size may hide
}

// Realistic cluster names: long names, and names with characters that are two columns wide.
const (
	longName = "arn:aws:eks:eu-central-1:123456789012:cluster/production-milan"
	wideName = "日本語-クラスタ-👩‍👩‍👧-e\u0301-🇮🇹-1\ufe0f\u20e3-👍🏽-Ελλάς"
)

// everything returns a tunnel with failures, long texts and names in many scripts.
func everything(t *testing.T, m *tunnel) Options {
	t.Helper()
	m.long = true
	m.shown = "a finding that is long enough to be broken over some lines, " +
		"with-a-word-that-has-no-space-in-it-whatsoever-and-goes-on " + wideName
	o := m.options(t)
	first := &o.Guides[0].Steps[0]
	first.Ask = append(first.Ask,
		steps.Question{
			Key: "net.token", Title: "A token of the registry " + wideName, Help: "Where the images come from.",
			Kind: steps.Text, Secret: true, Opt: true,
		},
		steps.Question{
			Key: "net.mode", Title: "Mode", Help: "How packets go.", Kind: steps.Pick,
			Of: []steps.Choice{
				{Value: "a", Title: "straight"},
				{Value: "b", Title: "through a relay that somebody else runs, which takes its time and its price"},
			},
			Default: steps.Fixed("a", "the guide"),
		},
		steps.Question{
			Key: "net.hosts", Title: "Hosts", Help: "All that may connect.", Kind: steps.HostName, Many: true,
			Default: steps.Fixed([]string{"a.example.org", "b.example.org"}, "the certificate"),
		},
	)
	first.Checks = append(first.Checks, numbered(30)...)
	guide := o.Guides[0]
	ends := map[steps.Side]engine.Endpoint{}
	for side, name := range map[steps.Side]string{steps.Local: longName, steps.Remote: wideName} {
		h, err := host.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		ends[side] = engine.Endpoint{Host: h, Name: name}
	}
	o.Open = func(l *linkfile.Link) (*engine.Session, error) {
		return engine.NewSession(engine.SessionOptions{Guide: guide, Link: l, Endpoints: ends}), nil
	}
	return o
}

// strangers returns the options for a new link between clusters, one of which does not respond.
func strangers(t *testing.T, _ *tunnel) Options {
	o := clusters(t)
	o.Notes = []string{"a note of whoever started this, which is long enough to be wrapped in a terminal"}
	o.Banner = "demo: two local control planes"
	list, _ := o.Candidates()
	for i := range 30 {
		list = append(
			list,
			engine.Candidate{
				Context: fmt.Sprintf("%s-%d", longName, i),
				Server:  "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-central-1.eks.amazonaws.com",
			},
		)
	}
	list = append(list, engine.Candidate{Context: wideName, Server: "https://" + wideName})
	o.Candidates = func() ([]engine.Candidate, error) { return list, nil }
	return o
}

// closed returns the options for a link that can't be opened.
func closed(t *testing.T, m *tunnel) Options {
	o := m.options(t)
	o.Open = func(*linkfile.Link) (*engine.Session, error) {
		return nil, errors.New("provider: no context is called " + longName + "; the kubeconfig " + wideName + " has kind-milan, kind-rome and others")
	}
	return o
}

// planned returns a tunnel whose plan changes fields of other managers.
func planned(t *testing.T, m *tunnel) Options {
	for i := range 40 {
		m.items = append(m.items, steps.Item{
			Verb: steps.Update, What: fmt.Sprintf("ConfigMap %s/%d", wideName, i), Hash: "1",
			Diff:      "@@ -1 +1 @@\n-a: " + wideName + "\n+a: " + longName + longName + "\n",
			Conflicts: []failure.Conflict{{Manager: "helm", Field: ".data.x"}},
		}, steps.Item{Verb: steps.Replace, What: "Role " + longName, Hash: "2"})
	}
	return everything(t, m)
}

func askingFor(t *testing.T, m *tunnel) Options {
	*m = *login()
	m.slow = time.Hour
	m.asks = append(
		m.asks, "https://例え.example.org/"+strings.Repeat("日本語", 40)+" 日本語", "see (https://example.org/a). Then go on",
	)
	return everything(t, m)
}

func failing(t *testing.T, m *tunnel) Options {
	m.fault = errors.New("the disk is full on " + longName + " and on " + wideName)
	return everything(t, m)
}

func unanswered(t *testing.T, m *tunnel) Options {
	o := everything(t, m)
	delete(o.Link.Answers, "keys.owner")
	return o
}

// scenes lists all screens and panels.
var scenes = []scene{
	{name: "guides", stage: strangers, stays: []string{"Tunnel"}},
	{name: "sides", stage: strangers, keys: []string{"enter", "down"}, stays: []string{"▸ kind-rome"}},
	{name: "second side", stage: strangers, keys: []string{"enter", "G", "enter"}, stays: []string{"▸"}},
	{name: "one side twice", stage: strangers, keys: []string{"enter", "enter", "g", "enter"}, stays: []string{"!"}},
	{name: "link's name", stage: strangers, keys: []string{"enter", "enter", "enter", "x"}, stays: []string{"▸ name"}},
	{name: "no link opens", stage: closed, stays: []string{"✗"}},
	{name: "step", stays: []string{"▸"}},
	{name: "many rows", keys: []string{"1", "G"}, stays: []string{"▸ row"}},
	{name: "filtered", keys: []string{"1", "/", "r", "o", "w", " ", "1", "enter", "down"}, stays: []string{"▸ row"}},
	{name: "filtering", keys: []string{"/", "x"}},
	{name: "form", keys: []string{"1", "e"}, stays: []string{"Answers"}},
	{name: "form, list", keys: []string{"1", "e", "tab", "tab", "tab", "tab", "tab"}, stays: []string{"Answers"}},
	{name: "form, long text", keys: []string{"1", "e", "tab", "tab", "tab", "down", "x"}, stays: []string{"Answers"}},
	{name: "form, wrong", keys: []string{"1", "e", "0", "0", "enter"}, stays: []string{"Answers", "✗"}},
	{name: "form, no editor", keys: []string{"1", "e", "tab", "tab", "tab", "ctrl+e"}, stays: []string{"Answers", "✗"}},
	{name: "form by itself", stage: unanswered, stays: []string{"Answers"}},
	{name: "diff", stage: planned, keys: []string{"d", "pgdown"}, stays: []string{"Changes"}},
	{name: "confirm", stage: planned, keys: []string{"a", "pgdown"}, stays: []string{"Apply", "No ", " Yes"}},
	{name: "take over", stage: planned, keys: []string{"a", "y"}, stays: []string{"Take over", "No ", " Yes"}},
	{name: "replace", stage: planned, keys: []string{"a", "y", "y", "right"}, stays: []string{"Delete", "No ", " Yes"}},
	{name: "running", stage: askingFor, keys: []string{"a", "y"}},
	{name: "applied", keys: []string{"a", "y"}},
	{name: "failed", stage: failing, keys: []string{"a", "y"}},
	{name: "log", stage: failing, keys: []string{"a", "y", "l"}, stays: []string{"Log"}},
	{name: "detail", keys: []string{"1", "enter"}, stays: []string{"the site is there"}},
	{name: "steps", keys: []string{"S", "down"}, stays: []string{"Steps", "▸ · 3 Ca"}},
	{name: "map", keys: []string{"m", "down"}, stays: []string{"map"}},
	{name: "help", keys: []string{"?", "pgdown"}, stays: []string{"Keys"}},
	{name: "page", keys: []string{"o"}, stays: []string{"References"}},
	{name: "error", then: func(p *play) {
		p.a.lay(p.a.errorPanel("This can't be planned", errors.New(strings.Repeat(longName+" "+wideName+"\n", 20))))
	}, stays: []string{"This"}},
	{name: "rights", then: func(p *play) {
		var lack engine.Missing
		for _, verb := range []string{"get", "create", "patch"} {
			r := permission.Rule{Verb: verb, Resource: "secrets", Namespace: longName}
			lack.Missing, lack.Needed = append(lack.Missing, cluster.Decision{Rule: r}), append(lack.Needed, r)
		}
		p.a.lay(p.a.lackingPanel(engine.MissingPermissions{steps.Remote: lack}))
	}, stays: []string{"Missing permissions"}},
	{name: "copied", keys: []string{"d", "c"}, stays: []string{"Changes"}},
	{name: "summary", keys: []string{"3", "n"}},
	{name: "summary's end", keys: []string{"3", "n", "G"}},
}

// play runs the wizard up to the scene, with that theme, and calls look.
func (s scene) play(t *testing.T, theme string, look func(*play)) {
	t.Helper()
	m, stage := &tunnel{}, s.stage
	if stage == nil {
		stage = everything
	}
	o := stage(t, m)
	o.Theme = theme
	onStage(t, o, 80, 24, func(p *play) {
		p.press(s.keys...)
		p.after(200 * time.Millisecond)
		if s.then != nil {
			s.then(p)
		}
		look(p)
		if p.a.run.busy() {
			p.press("ctrl+c")
		}
		p.after(time.Second)
	})
}
