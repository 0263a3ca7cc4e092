package toy

import (
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

// TestToyScripts runs what needs two clusters and no guide in particular. The scripts share the clusters: each has a
// link name and namespaces of its own.
func TestToyScripts(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	all := &carricktest.AtOnce{T: t}
	carricktest.RunScripts(all, "../../../testdata/script/toy", carricktest.OnClusters(box))
	all.Wait()
}
