package vsphere_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"carrick/cluster/extension"
)

// The roles in the asset grant exactly the permissions that the extension requires
// (extension.Rights).
func TestTheExtensionIsGivenWhatItTakes(t *testing.T) {
	o := extension.Options{
		Rule:     extension.Rule{Class: "nfs-client"},
		Profiles: extension.Profiles{PSPRole: "psp:vmware-system-privileged", Level: "baseline"},
		Elects:   true, Lease: "vsphere-extensions/vsphere-extensions",
	}
	everywhere, beside := extension.Rights(o)
	for kind, want := range map[string][]rbacv1.PolicyRule{"ClusterRole": everywhere, "Role": beside} {
		if got := rulesIn(t, "extension-roles.yaml", kind); !slices.EqualFunc(got, want, sameRule) {
			t.Errorf("%s: the asset has\n%+v\nand the program takes\n%+v", kind, got, want)
		}
	}
}

// rulesIn returns the rules of the only role of a kind in an asset.
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
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.ResourceNames, b.ResourceNames)
}
