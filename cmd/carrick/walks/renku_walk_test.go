package walks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

var throughRenku = carricktest.Walk{
	Steps: 11, Asks: map[int]string{7: `STAND-IN-`},
	Titles: map[int]string{
		2: "Remote prerequisites", 3: "Operator and driver", 4: "Identity", 6: "Kubeconfigs Secret", 7: "Register",
		8: "Restart", 9: "Resource pool",
	},
}

// The walk uses only keys. It registers a cluster with a pool, undoes everything, and exits.
func renkuByKeys(t *testing.T) {
	p := carricktest.Demo(t, "renku")
	p.Wait(carricktest.Beginning)
	p.Types("\r")
	throughRenku.Apply(p, 1, 11)
	throughRenku.Undo(p)
	p.Wait(`[5-9] to do`) // it has looked again
	p.Types("q")
	if code := p.Leaves(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.IsAsItWas()
	for _, text := range []string{
		"9 Resource pool", "○ remote: The session namespace exists: ", "The clusters of the demo are deleted",
	} {
		if !strings.Contains(p.Text(), text) {
			t.Errorf("the summary lacks %q:\n%s", text, p.Text())
		}
	}
	p.LeftNothing()
}

// renkuByScripts runs the scripts that need the guide renku. It runs them sequentially, because a cluster has only one
// csi-rclone, which all links share.
func renkuByScripts(t *testing.T) {
	box := clustertest.Start(t)
	box.Seed(t, "renku")
	token := carricktest.RenkuToken(t, box)
	carricktest.RunScripts(carricktest.OneByOne{T: t}, "../../../testdata/script/renku", func(e *testscript.Env) error {
		box.Settle(t, clustertest.Remote) // csi-rclone may be on its way out
		return errors.Join(
			carricktest.OnClusters(box)(e), os.WriteFile(filepath.Join(e.WorkDir, "token"), []byte(token), 0o600),
		)
	})
}
