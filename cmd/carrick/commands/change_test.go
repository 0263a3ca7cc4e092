package commands

import (
	"strings"
	"testing"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/linkfile"
)

// Missing permissions are reported by kind, with manifests that grant everything needed, and a note if more may be
// missing.
func TestMissingRightsAreSaid(t *testing.T) {
	t.Parallel()
	g := renku.Guide()
	s := engine.NewSession(
		engine.SessionOptions{Guide: g, Link: linkfile.New(g.Name, "paris"), Endpoints: map[steps.Side]engine.Endpoint{}},
	)
	if err := missingPermissions(s, nil, "nothing was changed"); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
	var lack engine.Missing
	for _, verb := range []string{"get", "patch"} {
		r := permission.Rule{Verb: verb, Resource: "secrets", Namespace: "renku"}
		lack.Missing, lack.Needed = append(lack.Missing, cluster.Decision{Rule: r}), append(lack.Needed, r)
	}
	for partly, more := range map[bool]string{
		true: "(once these permissions are granted, carrick can check for others):", false: ":\n",
	} {
		lack.Partly = partly
		err := missingPermissions(s, engine.MissingPermissions{steps.Remote: lack}, "nothing was changed")
		if err == nil {
			t.Fatal("it said nothing")
		}
		for _, want := range []string{
			"nothing was changed: missing permissions on the " + g.Sides[steps.Remote].Name, more, "get, patch secrets in renku",
			"name: carrick-paris",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("it does not say %q:\n%v", want, err)
			}
		}
	}
}
