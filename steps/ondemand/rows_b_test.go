package ondemand_test

import (
	"testing"

	"carrick/steps"
	"carrick/steps/ondemand"
	"carrick/steps/stepstest"
)

// rowsB are the rows of what stands on the cluster.
var rowsB = []stepstest.Row{
	{Number: 2, Asks: "upstream's roles, rule by rule, and what is bound to them", Checks: []string{"namespace", "service-account", "role-of-hooks", "role-of-initializer", "role-of-users", "role-bound", "may-grant", "account-powers"}},
	{Number: 5, Asks: "the right to renew the token", Checks: []string{"renew-role"}},
	{Number: 7, Asks: "what life the API server grants", Checks: []string{"token-made", "token-granted", "token-accepted"}},
	{Number: 20, Asks: "users by their bare login name", Checks: []string{"user-name-plain", "user-bindings"}},
	{Number: 21, Asks: "each user in their namespace alone", Checks: []string{"user-may", "user-may-not", "user-sees-no-other", "user-namespace", "user-service-account"}},
	{Number: 23, Asks: "the fence holds web node and nodes", Checks: []string{"cidr-covers-nodes", "user-network-policy"}},
	{Number: 24, Asks: "a network that enforces policies", Checks: []string{"network-policies-enforced"}},
	{Number: 30, Asks: "no PodSecurityPolicies (the cluster's half)", Checks: []string{"no-pod-security-policies"}},
	{Number: 31, Asks: "pod security level and mounts", Checks: []string{"level-fits-mounts", "adapter-pod", "level-breaks-nothing", "id-maps", "ids-pinned"}},
	{Number: 32, Asks: "job-pod-reaper in its place, and narrow", Checks: []string{"reaper-there", "reaper-values", "reaper-narrow", "may-grant-reaper"}},
	{Number: 33, Asks: "every user's namespace is bound to it", Checks: []string{"reaper-bound", "reaper-counts-no-errors"}},
	{Number: 34, Asks: "apps set a walltime", Checks: []string{"apps-set-walltime"}},
	{Number: 35, Asks: "a Prometheus that knows", Checks: []string{"prometheus-knows-pods", "idle-volumes", "idle-runs"}},
	{Number: 36, Asks: "an anchored expression", Checks: []string{"idle-regexp", "idle-values"}},
}

// Every check of the cluster's steps belongs to a row, and every row's checks
// are there, with a state for either verdict.
func TestRowsOfTheClusterAreLookedAt(t *testing.T) {
	g, wanted, named := ondemand.Guide(), stepstest.Wanted(t, "testdata"), map[string]bool{}
	for _, r := range rowsB {
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
	for _, step := range []string{"bootstrap", "walltime", "policies", "trial", "idle"} {
		for _, c := range g.Step(step).Checks {
			if !named[c.Name] {
				t.Errorf("check %s belongs to no row", c.Name)
			}
		}
	}
}
