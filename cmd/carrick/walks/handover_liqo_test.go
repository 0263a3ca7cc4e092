package walks

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster/clustertest"
	"carrick/cmd/carrick/carricktest"
	"carrick/steps/stepstest"
)

// peeringAdmin returns the admin of one of the two clusters of a peering.
func peeringAdmin(t *testing.T, box *clustertest.Sandbox, side, role, peer, answers string) *carricktest.Admin {
	t.Helper()
	ends := ""
	for _, s := range []string{clustertest.Local, clustertest.Remote} {
		if s == side {
			ends += s + ": {context: " + box.Contexts[s] + "}\n"
		} else {
			ends += s + ": {facts: theirs.facts}\n"
		}
	}
	return carricktest.NewAdmin(
		t, "liqo", role, peer, ends, "answers: {offloading.namespace: apart-demo"+answers+"}\n", box.Kubeconfigs[side],
	)
}

// peered makes two admins take turns until all checks of both pass.
func peered(
	t *testing.T, box *clustertest.Sandbox, answers string,
) (consumer, provider *carricktest.Admin, handed []string) {
	t.Helper()
	consumer = peeringAdmin(t, box, clustertest.Local, "consumer", "provider", answers)
	provider = peeringAdmin(t, box, clustertest.Remote, "provider", "consumer", answers)
	return consumer, provider, carricktest.TakeTurns(consumer, provider, 6)
}

// liqoByTwoAdmins tests two admins, neither with the other's kubeconfig, who exchange facts files until all checks of a
// peering pass. If files is set, undo has the other side's file.
func liqoByTwoAdmins(answers string, files bool) func(*testing.T) {
	return func(t *testing.T) {
		box := clustertest.Start(t)
		box.Seed(t, "liqo")
		before := stepstest.Snapshot(t, box)
		consumer, provider, handed := peered(t, box, answers)
		secrets := privateOf(t, box, answers)
		for _, text := range append(handed, consumer.Said.String(), provider.Said.String()) {
			for name, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s is in a file that was handed over, or was said", name)
				}
			}
		}
		for _, a := range []*carricktest.Admin{consumer, provider} {
			if !files {
				a.Write("link.yaml", carricktest.WithoutFacts.ReplaceAllString(a.Read("link.yaml"), ""))
			}
			a.Run([]int{0}, "undo", "--yes", "link.yaml", "--side", a.Role)
		}
		if d := cmp.Diff(before, stepstest.Snapshot(t, box)); d != "" {
			t.Errorf("not as before (-before +after):\n%s", d)
		}
	}
}

// privateOf returns the values that a facts file must not contain unencrypted, in plain text and in base64.
func privateOf(t *testing.T, box *clustertest.Sandbox, answers string) map[string]string {
	t.Helper()
	type at struct{ side, ns, name, key string }
	all := []at{{clustertest.Local, "liqo-tenant-rome", "kubeconfig-controlplane-rome", "kubeconfig"}}
	if !strings.Contains(answers, "network.enabled") {
		all = append(
			all, at{clustertest.Local, "liqo-tenant-rome", "gw-keys", "privateKey"},
			at{clustertest.Remote, "liqo-tenant-milan", "gw-keys", "privateKey"},
		)
	}
	if strings.Contains(answers, "service-account") {
		all = append(all, at{clustertest.Remote, "liqo-tenant-milan", "liqo-controlplane-milan-token", "token"})
	} else {
		all = append(all, at{clustertest.Local, "liqo-tenant-rome", "liqo-controlplane-key-rome", `tls\.key`})
	}
	out := map[string]string{}
	for _, s := range all {
		encoded := box.Run(t, s.side, "", "-n", s.ns, "get", "secret", s.name, "-o", "jsonpath={.data."+s.key+"}")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(raw) < 32 {
			t.Fatalf("%s of %s: %d bytes, %v", s.key, s.name, len(raw), err)
		}
		out[s.key+" of "+s.name+" on the "+s.side] = string(raw)
		out[s.key+" of "+s.name+" on the "+s.side+", encoded"] = encoded
	}
	return out
}
