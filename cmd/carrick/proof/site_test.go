package proof

import (
	"io/fs"
	"slices"
	"testing"

	"carrick/assets"
	"carrick/cluster/clustertest"
	"carrick/cluster/host"
	"carrick/cmd/carrick/carricktest"
	"carrick/cmd/carrick/guides"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
	"carrick/steps/guides/ondemand"
	"carrick/steps/guides/vsphere"
	"carrick/steps/linkfile"
	"carrick/steps/stepstest"
)

// sites maps guides to the answers, including secret ones, that they need to be applied to the scenario of their name.
// A guide that is not listed needs none.
var sites = map[string]func(testing.TB, *clustertest.Sandbox) map[string]any{
	"renku": func(t testing.TB, box *clustertest.Sandbox) map[string]any {
		return map[string]any{"renku.token": carricktest.RenkuToken(t, box)}
	},
	"ondemand": func(t testing.TB, box *clustertest.Sandbox) map[string]any {
		return stepstest.Given(t, box, ondemand.Guide(), map[string]any{"trial.enabled": false})
	},
	"interlink": func(t testing.TB, box *clustertest.Sandbox) map[string]any {
		return stepstest.Given(
			t, box, interlink.Guide(), map[string]any{"cert.source": "own", "test.watch": 1, "workload.argo": true},
		)
	},
	"vsphere": func(t testing.TB, box *clustertest.Sandbox) map[string]any {
		return stepstest.Given(
			t, box, vsphere.Guide(),
			map[string]any{
				"storage.source": "nfs", "supervisor.cluster": "kubeflow", "mutation.method": "webhook", "cert.source": "own",
			},
		)
	},
}

// takers lists guides that edit another user's objects, such as a chart or a file in a ConfigMap. apply needs
// --take-over for them.
var takers = []string{"interlink", "vsphere"}

// site is a sandbox in which a guide can be applied, and the answers for it.
type site struct {
	*testing.T
	box     *clustertest.Sandbox
	guide   *steps.Guide
	assets  fs.FS
	answers map[string]any
}

// takesOver reports whether apply needs --take-over. options returns the equivalent for a session.
func (s site) takesOver() bool { return slices.Contains(takers, s.guide.Name) }

func (s site) options() steps.ApplyOptions {
	return steps.ApplyOptions{TakeOver: s.takesOver()}
}

// end returns the link's description of a side: a context, or the folder that represents a machine.
func (s site) end(side steps.Side) linkfile.EndpointSpec {
	if s.guide.Sides[side].Kind == steps.Host {
		return linkfile.EndpointSpec{
			Host: &linkfile.HostSpec{Root: s.box.Hosts[string(side)], Here: s.box.Here[string(side)]},
		}
	}
	return linkfile.EndpointSpec{Context: s.box.Contexts[string(side)]}
}

// machine returns the endpoint of a side that is a machine. ok is false if the side is a cluster.
func (s site) machine(side steps.Side) (_ engine.Endpoint, ok bool) {
	s.Helper()
	if s.guide.Sides[side].Kind != steps.Host {
		return engine.Endpoint{}, false
	}
	h, err := host.NewWith(s.box.Hosts[string(side)], host.Options{Here: s.box.Here[string(side)]})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(h.Close)
	return engine.Endpoint{Host: h, Name: h.Root}, true
}

// eachGuide runs a test with every guide, or with the guides in CARRICK_GUIDES, each in a separate sandbox with the
// scenario of its name.
func eachGuide(t *testing.T, try func(s site)) { eachOf(t, guides.All(), try) }

// eachOf is like eachGuide, for the given guides.
func eachOf(t *testing.T, of []*steps.Guide, try func(s site)) {
	for _, g := range of {
		t.Run(g.Name, func(t *testing.T) {
			carricktest.OnlyNamed(t, g.Name)
			t.Parallel()
			box := clustertest.Start(t)
			box.Seed(t, g.Name)
			files, err := fs.Sub(assets.FS, g.Name)
			if err != nil {
				t.Fatal(err)
			}
			s := site{t, box, g, files, map[string]any{}}
			if more := sites[g.Name]; more != nil {
				s.answers = more(t, box)
			}
			try(s)
		})
	}
}

// A site for an unknown guide would never be used.
func TestVerifySitesAreOfGuides(t *testing.T) {
	for name := range sites {
		if !slices.ContainsFunc(guides.All(), func(g *steps.Guide) bool { return g.Name == name }) {
			t.Errorf("there is no guide %s", name)
		}
	}
}
