package vsphere_test

import (
	"testing"

	"carrick/steps"
	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// rowsD are the rows of pod security, of who exchanges the class of claims, of what
// becomes of them, and of profiles.
var rowsD = []stepstest.Row{
	{Number: 3, Asks: "PodSecurityPolicies or levels, by what is served", Checks: []string{"psp-or-labels"}},
	{Number: 4, Asks: "the role of the PodSecurityPolicy, and who may use it", Checks: []string{"psp-role", "psp-bound", "profile-bound"}},
	{Number: 5, Asks: "bindings that are left of PodSecurityPolicies", Checks: []string{"psp-leftovers"}},
	{Number: 6, Asks: "the level of each profile's namespace, and what a namespace without one refuses", Checks: []string{"profile-levels"}},
	{Number: 7, Asks: "what a level would say to pods that run", Checks: []string{"level-warnings"}},
	{Number: 8, Asks: "the labels file, whatever its name, and what is on namespaces", Checks: []string{"labels-file", "profile-labelled"}},
	{Number: 9, Asks: "istio-cni, where the level refuses init containers with rights", Checks: []string{"istio-cni"}},
	{Number: 10, Asks: "events of pods that are refused", Checks: []string{"pods-refused"}},
	{Number: 11, Asks: "profiles, their namespaces and owners", Checks: []string{"profiles-served", "profiles-namespaces"}},
	{Number: 26, Asks: "of a policy: what it is asked about, and where", Checks: []string{"policy-there"}},
	{Number: 27, Asks: "a webhook that fails without a word", Checks: []string{"silent-failure", "rwx-gets-class"}},
	{Number: 28, Asks: "what is not to be touched is not", Checks: []string{"rwo-keeps-class", "static-keeps"}},
	{Number: 29, Asks: "one that exchanges the class, and where it could be named", Checks: []string{"one-mutator", "source-class"}},
	{Number: 30, Asks: "the policy: served, there, bound, with a selector", Checks: []string{"policy-served", "policy-there", "rwx-gets-class"}},
	{Number: 31, Asks: "claims that were made before", Checks: []string{"claims-pending"}},
}

// Every check of these steps belongs to a row, and every row's checks are there,
// with a state for either verdict.
func TestRowsOfSecurityAndClassesAreLookedAt(t *testing.T) {
	g, wanted, named := vsphere.Guide(), stepstest.Wanted(t, "testdata"), map[string]bool{}
	for _, r := range rowsD {
		for _, name := range r.Checks {
			named[name] = true
			if c, _ := g.Check(name); c == nil {
				t.Errorf("row %d: there is no check %s", r.Number, name)
			}
			if w := wanted[name]; len(w[steps.Pass]) == 0 || len(w[steps.Fail])+len(w[steps.Warn]) == 0 {
				t.Errorf("row %d: check %s passes in %d states and does not in %d", r.Number, name, len(w[steps.Pass]), len(w[steps.Fail])+len(w[steps.Warn]))
			}
		}
	}
	for _, step := range []string{"security", "mutation", "function", "profile"} {
		for _, c := range g.Step(step).Checks {
			if !named[c.Name] {
				t.Errorf("check %s belongs to no row", c.Name)
			}
		}
	}
}
