package toy

import (
	"encoding/base64"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

// Two admins, neither with the other's kubeconfig, make all checks of a link pass by exchanging facts files. The token
// in a facts file is encrypted. Each admin undoes their own side, with the other's last file and without any file.
func TestToyByTwoAdmins(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]bool{"undo with the files": true, "undo of one side alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newToy(t)
			hub := y.admin(clustertest.Local, "hub", "spoke")
			spoke := y.admin(clustertest.Remote, "spoke", "hub")
			handed := carricktest.TakeTurns(hub, spoke, 2)
			token := y.token(clustertest.Remote, "toy", "hub-token")
			if copied := y.token(clustertest.Local, "default", "toy-apart"); copied != token {
				t.Error("the hub has another token than the account")
			}
			for _, text := range append(handed, hub.Said.String(), spoke.Said.String(), hub.Read("link.yaml")) {
				if strings.Contains(text, token) || strings.Contains(text, strings.Split(token, ".")[2]) ||
					strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(token))) {
					t.Error("the token is in a file that was handed over, or was said")
				}
			}
			for _, a := range []*carricktest.Admin{hub, spoke} {
				if !files {
					a.Write("link.yaml", carricktest.WithoutFacts.ReplaceAllString(a.Read("link.yaml"), ""))
				}
				a.Run([]int{0}, "undo", "--yes", "link.yaml", "--side", a.Role)
			}
			y.nothingLeft()
		})
	}
}

// admin has one of the two clusters.
func (y *toyAt) admin(side, role, peer string) *carricktest.Admin {
	y.Helper()
	ends := ""
	for _, s := range []string{clustertest.Local, clustertest.Remote} {
		if s == side {
			ends += s + ": {context: " + y.box.Contexts[s] + "}\n"
		} else {
			ends += s + ": {facts: theirs.facts}\n"
		}
	}
	a := carricktest.NewAdmin(y.T, "toy", role, peer, ends, "", y.box.Kubeconfigs[side])
	a.Command = "carrick-toy"
	return a
}

// token reads the token in a Secret.
func (y *toyAt) token(side, ns, name string) string {
	y.Helper()
	token := y.box.Run(y, side, "", "-n", ns, "get", "secret", name, "-o", "go-template={{.data.token | base64decode}}")
	if len(token) < 100 {
		y.Fatalf("the token in Secret %s/%s has %d bytes", ns, name, len(token))
	}
	return token
}
