package vsphere_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"carrick/cluster/extension"
	"carrick/steps"
	"carrick/steps/stepstest"
	"carrick/steps/vsphere"
)

// rowsA are the rows of the certificates and the extension.
var rowsA = []stepstest.Row{
	{Number: 20, Asks: "a certificate for the Service, its key, and a life", Checks: []string{"cert-secret", "cert-manager-there", "cert-issued"}},
	{Number: 21, Asks: "the CA of the webhook has signed it, and is not the sample", Checks: []string{"cert-bundle", "cert-authority"}},
	{Number: 22, Asks: "the API server reaches ready pods by the Service", Checks: []string{"extension-endpoints", "extension-reached"}},
	{Number: 23, Asks: "it runs: its images, and who refuses its pods", Checks: []string{"extension-ready", "extension-image", "extension-namespace"}},
	{Number: 24, Asks: "its class, and started since that was written", Checks: []string{"extension-config"}},
	{Number: 25, Asks: "what the published sed left in file and ConfigMap", Checks: []string{"page-sed"}},
	{Number: 26, Asks: "rules, path, side effects, versions and selector of the webhook", Checks: []string{"webhook-rules"}},
	{Number: 27, Asks: "calls that failed and were passed over", Checks: []string{"webhook-failures"}},
	{Number: 32, Asks: "its token, and no more rights than it takes", Checks: []string{"extension-token", "extension-rights"}},
}

// Every check of these steps belongs to a row, with a state for either verdict.
func TestRowsOfTheExtensionAreLookedAt(t *testing.T) {
	g, wanted, named := vsphere.Guide(), stepstest.Wanted(t, "testdata"), map[string]bool{}
	for _, r := range rowsA {
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
	for _, step := range []string{"certificates", "extension"} {
		for _, c := range g.Step(step).Checks {
			if !named[c.Name] {
				t.Errorf("check %s belongs to no row", c.Name)
			}
		}
	}
}

// The roles of the asset are what the program says that it takes, and nothing more.
func TestTheExtensionIsGivenWhatItTakes(t *testing.T) {
	o := extension.Options{
		Rule: extension.Rule{Class: "nfs-client"}, Profiles: extension.Profiles{PSPRole: "psp:vmware-system-privileged", Level: "baseline"},
		Lease: "vsphere-extensions/vsphere-extensions",
	}
	everywhere, beside := extension.Rights(o)
	for kind, want := range map[string][]rbacv1.PolicyRule{"ClusterRole": everywhere, "Role": beside} {
		if got := rulesIn(t, "extension-roles.yaml", kind); !slices.EqualFunc(got, want, sameRule) {
			t.Errorf("%s: the asset has\n%+v\nand the program takes\n%+v", kind, got, want)
		}
	}
}

// rulesIn are the rules of the one role of a kind in an asset.
func rulesIn(t *testing.T, file, kind string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := fs.ReadFile(assets, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // both kinds keep their rules in one place
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == kind {
			return role.Rules
		}
	}
	t.Fatalf("%s has no %s", file, kind)
	return nil
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.ResourceNames, b.ResourceNames)
}
