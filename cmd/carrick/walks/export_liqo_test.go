package walks

import (
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
)

const peeringLink = `apiVersion: carrick/v1alpha1
kind: Link
metadata: {name: gitops}
guide: liqo
local: {context: sandbox-local}
remote: {context: sandbox-remote}
answers: {offloading.namespace: gitops-demo}
`

// The export of a peering is two folders that kubectl can apply unchanged. It omits private keys and credentials, and
// names them. Everything else matches the objects in the clusters.
func liqoExport(t *testing.T) {
	g := carricktest.NewGitops(t, "liqo", peeringLink)
	g.Run("carrick", "apply", "--yes", "link.yaml")
	g.Run("carrick", "check", "link.yaml", "--wait", "5m")
	var secrets []string
	for side, keys := range map[string][][2]string{
		clustertest.Local: {
			{"gw-keys", "privateKey"},
			{"liqo-controlplane-key-rome", `tls\.key`},
			{"kubeconfig-controlplane-rome", "kubeconfig"},
		},
		clustertest.Remote: {{"gw-keys", "privateKey"}},
	} {
		ns := map[string]string{clustertest.Local: "liqo-tenant-rome", clustertest.Remote: "liqo-tenant-milan"}[side]
		for _, key := range keys {
			secrets = append(
				secrets, g.Box.Run(t, side, "", "-n", ns, "get", "secret", key[0], "-o", "jsonpath={.data."+key[1]+"}"),
			)
		}
	}
	said := g.Run("carrick", "export", "link.yaml", "dir")
	g.NoSecrets("dir", said, secrets...)
	readme := g.Run("cat", "dir/README.txt")
	for _, named := range []string{
		"Secret liqo-tenant-rome/gw-keys (keys privateKey, publicKey)",
		"Secret liqo-tenant-milan/gw-keys (keys privateKey, publicKey)",
		"Secret liqo-tenant-rome/liqo-controlplane-key-rome (keys tls.key, tls.csr)",
		"Secret liqo-tenant-rome/kubeconfig-controlplane-rome (key kubeconfig)",
	} {
		if !strings.Contains(readme, named) {
			t.Errorf("README.txt does not name %s:\n%s", named, readme)
		}
	}
	for _, side := range []string{"local", "remote"} {
		out := g.Run(
			"kubectl", "--context", "sandbox-"+side, "apply", "--server-side", "--dry-run=server", "--field-manager=gitops",
			"-k", "dir/"+side,
		)
		for _, want := range map[string][]string{
			"local": {
				"configuration", "publickey", "gatewayclient", "resourceslice", "namespaceoffloading", "namespace/gitops-demo",
			},
			"remote": {"configuration", "publickey", "gatewayserver", "tenant.authentication", "rolebinding"},
		}[side] {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %s:\n%s", side, want, out)
			}
		}
	}
	g.Run("carrick", "export", "link.yaml", "again")
	g.Run("diff", "-r", "dir", "again")
}
