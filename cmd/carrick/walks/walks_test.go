package walks

import (
	"testing"

	"carrick/cluster/clustertest/cases"
	"carrick/cmd/carrick/carricktest"
)

// walks lists tests of real guides: walks from a scenario of the sandbox until all checks pass and back, and behavior
// that only a real guide has. The toy guide covers behavior of the front ends that does not depend on a guide. A brief
// run includes only the walks marked brief.
var walks = []struct {
	guide, way string
	walk       func(*testing.T)
	brief      bool
}{
	{"renku", "by keys", renkuByKeys, true},
	{"renku", "by scripts", renkuByScripts, false},
	{"renku", "hands over all that it shares", renkuHandsOver, false},
	{"renku", "by what it exports", renkuExport, false},
	{"liqo", "by keys", liqoByKeys, true},
	{"liqo", "by autoplay", liqoByAutoplay, false},
	{"liqo", "by two admins, with a certificate", liqoByTwoAdmins("", true), true},
	{"liqo", "by two admins, with a token", liqoByTwoAdmins(", auth.kind: service-account", false), false},
	{"liqo", "by two admins, without networking", liqoByTwoAdmins(", network.enabled: 'no'", false), false},
	{"liqo", "by what it exports", liqoExport, false},
	{"ondemand", "by keys", ondemandByKeys, true},
	{"ondemand", "by two admins", ondemandByTwoAdmins, false},
	{"interlink", "by keys", interlinkByKeys, true},
	{"interlink", "by two admins", interlinkByTwoAdmins, false},
	{"interlink", "adopted", interlinkIsAdopted, false},
	{"interlink", "adopted without the edge node", interlinkHalfIsAdopted, false},
	{"vsphere", "by keys, with a policy", vsphereByPolicy, true},
	{"vsphere", "by keys, with the extension", vsphereByExtension, true},
	{"vsphere", "the extension under load", extensionUnderLoad, false},
	{"vsphere", "the extension before there are profiles", extensionBeforeProfiles, true},
	{"vsphere", "the extension by a Service", extensionByAService, false},
}

// TestVerifyWalks runs all walks, or the walks of the guides in CARRICK_GUIDES.
func TestVerifyWalks(t *testing.T) {
	t.Parallel()
	for _, w := range walks {
		cases.Run(t, "walk", w.guide+" "+w.way, func(t *testing.T) {
			carricktest.OnlyNamed(t, w.guide)
			if !w.brief {
				cases.LeftOut(t, "walk", w.guide)
			}
			t.Parallel()
			w.walk(t)
		})
	}
}
