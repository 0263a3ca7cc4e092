package walks

import (
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
)

// walks are ways through a real guide, from a scenario of the sandbox to green and back, and what else only a real
// guide shows. What the front ends do in every guide is tested on the toy guide. A brief run leaves out
// what that or another walk covers.
var walks = []struct {
	guide, way string
	walk       func(*testing.T)
	covered    bool
}{
	{"renku", "by keys", renkuByKeys, false},
	{"renku", "by scripts", renkuByScripts, true},
	{"renku", "hands over all that it shares", renkuHandsOver, true},
	{"renku", "by what it exports", renkuExport, true},
	{"liqo", "by keys", liqoByKeys, false},
	{"liqo", "by autoplay", liqoByAutoplay, true},
	{"liqo", "by two admins, with a certificate", liqoByTwoAdmins("", true), false},
	{"liqo", "by two admins, with a token", liqoByTwoAdmins(", auth.kind: service-account", false), true},
	{"liqo", "by two admins, without networking", liqoByTwoAdmins(", network.join: 'no'", false), true},
	{"liqo", "by what it exports", liqoExport, true},
	{"ondemand", "by keys", ondemandByKeys, false},
	{"ondemand", "by two admins", ondemandByTwoAdmins, true},
	{"interlink", "by keys", interlinkByKeys, false},
	{"interlink", "by two admins", interlinkByTwoAdmins, true},
	{"interlink", "adopted", interlinkIsAdopted, true},
	{"interlink", "adopted without the edge node", interlinkHalfIsAdopted, true},
	{"vsphere", "by keys, with a policy", vsphereByPolicy, false},
	{"vsphere", "by keys, with the extension", vsphereByExtension, false},
	{"vsphere", "the extension under load", extensionUnderLoad, true},
	{"vsphere", "the extension before there are profiles", extensionBeforeProfiles, false},
	{"vsphere", "the extension by a Service", extensionByAService, true},
}

// TestVerifyWalks takes each of the walks, or those of the guides that CARRICK_GUIDES names.
func TestVerifyWalks(t *testing.T) {
	t.Parallel()
	for _, w := range walks {
		cases.Run(t, "walk", w.guide+" "+w.way, func(t *testing.T) {
			carricktest.OnlyNamed(t, w.guide)
			if w.covered {
				cases.Thorough(t, "the toy guide or another walk covers it")
			}
			t.Parallel()
			w.walk(t)
		})
	}
}
