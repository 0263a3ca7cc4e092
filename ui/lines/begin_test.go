package lines

import (
	"context"
	"strings"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

func TestANewLink(t *testing.T) {
	m := &tunnel{}
	o := clusters(t, m)
	converse(t, o, func(k *talk) {
		k.hears(
			"Which guide?", "1: Tunnel, 3 steps, consumer and provider.", "2: Bridge",
			"Guide, 1 to 2 [1]:",
		)
		k.says("7", "?", "")
		k.hears(`"7" is not a guide`, "1: tunnel: Joins two sites by a tunnel.", "Which context is the consumer?",
			"1: kind-milan, at https://10.0.0.1: answers in 12 ms, v1.36.3.",
			"4: gone, at https://10.0.0.9: nothing listens there.", "The consumer, 1 to 4 [1]:")
		k.says("")
		k.hears("Which context is the provider?", "1: kind-milan, already the consumer.", "The provider, 1 to 4 [2]:")
		k.says("1", "9", "b")
		k.hears(
			"kind-milan is already the consumer; the provider must be another cluster.", `"9" is not in the list`,
			"Which context is the consumer?",
		)
		k.says("kind-rome", "3")
		k.hears(
			"kind-rome and rome-again are the same cluster: their kube-system namespaces have the same UID. Pick two clusters.",
			"Which context is the provider?",
		)
		k.says("1")
		k.hears("Name of this link [rome-milan]:")
		k.says("Not A Name", "there")
		k.hears("lower-case", "This is a new link for Tunnel: there, saved in ", "Step 1 of 3: Sites.")
	})
	if _, err := linkfile.Load(o.LinkPath("there"), o.Guides); err != nil {
		t.Errorf("the link file: %v", err)
	}
	// The name is taken: by the same two sides, and by others.
	converse(t, o, func(k *talk) {
		k.says("1", "2", "1", "there")
		k.hears("This is Tunnel, link there.", "Checking both sides.")
	})
	converse(t, o, func(k *talk) {
		k.says("1", "1", "2", "there")
		k.hears("already exists, with another guide or other sides; choose another name.", "Name of this link [milan-rome]:")
	})
}

// The wizard does not ask for values in its options.
func TestAGivenLinkBeginsAtOnce(t *testing.T) {
	o := clusters(t, &tunnel{})
	o.Guide, o.Name = "tunnel", "demo"
	o.Sides = map[steps.Side]string{steps.Local: "kind-milan", steps.Remote: "kind-rome"}
	converse(t, o, func(k *talk) { k.hears("This is a new link for Tunnel: demo", "Step 1 of 3: Sites.") })
	o.Sides[steps.Remote] = "kind-milan"
	if said, err := piped(t, o, ""); err == nil || !strings.Contains(err.Error(), "are the same cluster") {
		t.Errorf("one cluster twice: %v\n%s", err, said)
	}
}

func TestASideThatMayBeLeftOut(t *testing.T) {
	o := clusters(t, &tunnel{})
	for _, g := range o.Guides {
		r := g.Sides[steps.Remote]
		r.Optional = true
		g.Sides[steps.Remote] = r
	}
	converse(t, o, func(k *talk) {
		k.says("1", "1")
		k.hears("0: leave the provider out.")
		k.says("0")
		k.hears("Name of this link [kind-milan]:")
		k.says("b", "2")
		k.hears("Which context is the provider?", "Name of this link [milan-rome]:")
	})
}

func TestSidesThatAreMachines(t *testing.T) {
	o := (&tunnel{}).options(t)
	o.Link = nil
	converse(t, o, func(k *talk) {
		k.says("1", "srv", "/srv", "b", "", "")
		k.hears(
			"Root directory of the consumer [/]:", `"srv" is not an absolute path`, "Root directory of the provider [/]:",
			"Name of this link [consumer-provider]:",
		)
	})
}

// A slow context does not block the wizard. It is not considered a different cluster before it has responded.
func TestAContextThatAnswersLate(t *testing.T) {
	o := clusters(t, &tunnel{})
	meet := o.Preflight
	o.Preflight = func(ctx context.Context, name string) (engine.Preflight, error) {
		if name == "rome-again" {
			time.Sleep(6 * time.Second)
		}
		return meet(ctx, name)
	}
	converse(t, o, func(k *talk) {
		k.says("1")
		k.hears("3: rome-again, at https://10.0.0.2: no answer yet.")
		time.Sleep(6 * time.Second)
		k.says("r")
		k.hears("3: rome-again, at https://10.0.0.2: answers in")
		k.says("2", "3")
		k.hears("are the same cluster")
	})
}
