package walks

import (
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
)

// walks are ways through a real guide, from a scenario of the sandbox to green and back, and what else only a real
// guide shows. What the front ends do in every guide is tested on the toy guide.
var walks = []struct {
	guide, way string
	walk       func(*testing.T)
}{
	{"renku", "by keys", renkuByKeys},
	{"renku", "by scripts", renkuByScripts},
	{"renku", "hands over all that it shares", renkuHandsOver},
	{"renku", "by what it exports", renkuExport},
	{"liqo", "by keys", liqoByKeys},
	{"liqo", "by autoplay", liqoByAutoplay},
	{"liqo", "by two admins, with a certificate", liqoByTwoAdmins("", true)},
	{"liqo", "by two admins, with a token", liqoByTwoAdmins(", auth.kind: service-account", false)},
	{"liqo", "by two admins, without networking", liqoByTwoAdmins(", network.join: 'no'", false)},
	{"liqo", "by what it exports", liqoExport},
	{"ondemand", "by keys", ondemandByKeys},
	{"ondemand", "by two admins", ondemandByTwoAdmins},
	{"interlink", "by keys", interlinkByKeys},
	{"interlink", "by two admins", interlinkByTwoAdmins},
	{"interlink", "adopted", interlinkIsAdopted},
	{"interlink", "adopted without the edge node", interlinkHalfIsAdopted},
	{"vsphere", "by keys, with a policy", vsphereByPolicy},
	{"vsphere", "by keys, with the extension", vsphereByExtension},
	{"vsphere", "the extension under load", extensionUnderLoad},
	{"vsphere", "the extension before there are profiles", extensionBeforeProfiles},
	{"vsphere", "the extension by a Service", extensionByAService},
}

// TestVerifyWalks takes each of the walks, or those of the guides that CARRICK_GUIDES names.
func TestVerifyWalks(t *testing.T) {
	t.Parallel()
	for _, w := range walks {
		cases.Run(t, "walk", w.guide+" "+w.way, func(t *testing.T) {
			carricktest.OnlyNamed(t, w.guide)
			t.Parallel()
			w.walk(t)
		})
	}
}
