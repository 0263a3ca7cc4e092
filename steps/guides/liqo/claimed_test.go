package liqo_test

import (
	"strings"
	"testing"
	"time"

	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/liqo"
	"carrick/steps/stepstest"
)

// A consumer's file can claim the cluster id of another consumer. The provider's admin gives the other consumer's token
// only to the link that created the tenant namespace.
func TestAClaimedClusterIDGetsNoToken(t *testing.T) {
	for link, honest := range map[string]bool{"test": true, "liar": false} {
		t.Run(link, func(t *testing.T) {
			s := stepstest.StandHanded(
				t, liqo.Guide(), assets, "testdata", "credential-by-service-account", link, steps.Local, nil,
			)
			h, err := s.Handover(t.Context(), steps.Remote, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			_, sealed := h.Secrets["token"]
			why := h.File.Unread["token"]
			if sealed != honest || strings.Contains(why, "file claims that milan is") == honest {
				t.Errorf("the token is handed over: %t; why not: %q", sealed, why)
			}
			v := verdict(t, s, "tenant-namespace", steps.Remote)
			if (v.Status == steps.Pass) != honest || strings.Contains(v.Fix, "--step tenant-namespaces --take-over") == honest {
				t.Errorf("tenant-namespace: %s: %s\n%s", v.Status, v.Found, v.Fix)
			}
			p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"provider-namespace"}})
			if err != nil {
				t.Fatal(err)
			}
			if asks := len(p.Conflicts()) == 1 &&
				strings.Contains(p.Conflicts()[0].Note, "only if the consumer's admin confirms"); asks == honest {
				t.Errorf("the plan has %+v", p.Actions[0].Change.Items)
			}
		})
	}
}
