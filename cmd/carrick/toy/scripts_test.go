package toy

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

// TestToyScripts runs scripts that need two clusters and no particular guide. The scripts share the clusters. Each has
// its own link name and namespaces.
func TestToyScripts(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	all := &carricktest.AtOnce{T: t}
	carricktest.RunScripts(all, "../../../testdata/script/toy", carricktest.OnClusters(box))
	all.Wait()
}
