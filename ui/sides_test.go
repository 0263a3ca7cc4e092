package ui

import (
	"testing"

	"carrick/steps"
	"carrick/steps/linkfile"
)

// clusters returns the options for a new link between two clusters.
func clusters(t *testing.T) Options {
	t.Helper()
	o := (&tunnel{}).options(t)
	o.Link = nil
	for side, r := range o.Guides[0].Sides {
		r.Kind = steps.Cluster
		o.Guides[0].Sides[side] = r
	}
	return o
}

func TestNewLink(t *testing.T) {
	onStage(t, clusters(t), 80, 24, func(p *play) {
		p.press("enter")
		p.shows("kind-milan", "✓ v1.36.3", "12 ms", "nothing listens there")
		p.press("enter")
		p.press("enter")
		p.shows("milan-rome", "enter begin")
		p.press("enter")
		p.shows("step 1 of 3 · milan-rome")
		if _, err := linkfile.Load(p.a.o.LinkPath("milan-rome"), p.a.o.Guides); err != nil {
			t.Fatalf("the link file: %v", err)
		}
	})
}

func TestOneClusterTwiceIsRefused(t *testing.T) {
	onStage(t, clusters(t), 80, 24, func(p *play) {
		p.press("enter", "down", "enter", "g", "down", "enter")
		p.shows("kind-rome is already the consumer")
		p.press("down", "enter")
		p.shows("kind-rome and rome-again are the same cluster")
		p.press("g", "enter")
		p.shows("name")
	})
}

func TestEscGoesBackAndKeepsTheName(t *testing.T) {
	onStage(t, clusters(t), 80, 24, func(p *play) {
		p.press("enter", "enter", "enter", "x", "esc")
		p.shows("pick a context")
		p.press("enter")
		p.shows("milan-romex")
		p.press("esc", "esc", "esc")
		p.shows("Which guide?")
		p.press("esc")
		if p.quit {
			t.Fatal("esc quit")
		}
	})
}

func TestNameThatIsTakenGoesOnWithThatLink(t *testing.T) {
	o := clusters(t)
	l := linkfile.New("tunnel", "milan-rome")
	l.Path = o.LinkPath("milan-rome")
	l.Local.Context, l.Remote.Context = "kind-milan", "kind-rome"
	l.Answers["keys.owner"] = "ana"
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.press("enter", "enter", "enter", "enter")
		p.shows("step 2 of 3")
	})
	l.Remote.Context = "another"
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
	onStage(t, o, 80, 24, func(p *play) {
		p.press("enter", "enter", "enter", "enter")
		p.shows("exists, with another guide or other sides")
	})
}

func TestGivenSidesAreNotAsked(t *testing.T) {
	o := clusters(t)
	o.Guide, o.Name = "tunnel", "demo"
	o.Sides = map[steps.Side]string{steps.Local: "kind-milan", steps.Remote: "kind-rome"}
	onStage(t, o, 80, 24, func(p *play) {
		p.shows("✓ consumer  kind-milan", "✓ provider  kind-rome", "demo")
		p.press("enter")
		p.shows("step 1 of 3 · demo")
	})
}

func TestSidesThatAreMachines(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Link = nil
	onStage(t, o, 80, 24, func(p *play) {
		p.press("enter")
		p.shows("▸ consumer  /", "another directory represents one")
		p.press("backspace", "x", "enter")
		p.shows("an absolute path")
		p.press("backspace", "/", "s", "enter", "enter")
		p.shows("✓ consumer  /s", "✓ provider  /", "consumer-provider")
		p.press("enter")
		p.shows("step 1 of 3 · consumer-provider")
	})
}

func TestSideThatMayBeLeftOut(t *testing.T) {
	o := clusters(t)
	r := o.Guides[0].Sides[steps.Remote]
	r.Optional = true
	o.Guides[0].Sides[steps.Remote] = r
	onStage(t, o, 80, 24, func(p *play) {
		p.press("enter", "enter")
		p.shows("x leave out")
		p.press("x")
		p.shows("- provider  left out", "kind-milan", "enter begin")
		p.press("esc")
		p.shows("▸ provider  pick a context")
	})
}
