package main

import (
	"io/fs"
	"os"
	"slices"
	"testing"

	"carrick/assets"
	"carrick/cluster/clustertest"
	"carrick/steps"
)

// proof is the environment variable with which the long proofs are made, too.
const proof = "CARRICK_PROOF"

func proves(t testing.TB) {
	t.Helper()
	if os.Getenv(proof) == "" {
		t.Skipf("%s is not set: this takes minutes", proof)
	}
}

// sites are what a guide needs to be applied to the scenario of its name, beyond
// what it finds out by itself: answers, secret ones among them. A guide that is
// not here needs nothing.
var sites = map[string]func(testing.TB, *clustertest.Sandbox) map[string]any{
	"renku": func(t testing.TB, box *clustertest.Sandbox) map[string]any {
		return map[string]any{"renku.token": renkuToken(t, box)}
	},
}

// site is a sandbox in which a guide can be applied, and what it takes.
type site struct {
	*testing.T
	box     *clustertest.Sandbox
	guide   *steps.Guide
	assets  fs.FS
	answers map[string]any
}

// eachGuide tries something with every guide, on clusters that have nothing but
// the scenario of its name.
func eachGuide(t *testing.T, try func(s site)) {
	box := clustertest.Start(t)
	for _, g := range guides() {
		t.Run(g.Name, func(t *testing.T) {
			box.Reset(t)
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

// A site that no guide has would be looked at by nobody.
func TestSitesAreOfGuides(t *testing.T) {
	for name := range sites {
		if !slices.ContainsFunc(guides(), func(g *steps.Guide) bool { return g.Name == name }) {
			t.Errorf("there is no guide %s", name)
		}
	}
}
