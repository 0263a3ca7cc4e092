package ondemand

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// ConfigMaps that k8-ldap-configmap writes (OSC/k8-ldap-configmap: internal/mapper,
// charts/k8-ldap-configmap/values.yaml, cf23ec49). Their keys are users' namespaces. The values in user-uid-map and
// user-gid-map are numbers. The values in user-gids-map are JSON arrays of strings.
const (
	uidMap  = "user-uid-map"
	gidMap  = "user-gid-map"
	gidsMap = "user-gids-map" // exists only if the mapper user-gids is enabled
)

// carrick's ValidatingAdmissionPolicies, and the asset file that contains them.
const (
	idPoliciesFile = "id-policies.yaml"
	uidPolicy      = "ondemand-uid"
	gidPolicy      = "ondemand-gid"
	groupsPolicy   = "ondemand-groups"
)

var kyvernoPolicies = schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}

const policySource = "OSC/osc-helm-charts: charts/kyverno-policies/templates"

func policies() steps.Step {
	return steps.Step{
		Name: "policies", Title: "Policies",
		Map: steps.MapRow{Remote: "user id policies"},
		Why: "Users with kubectl can submit any pod in their namespace. Pod security levels restrict mounts (none: " +
			"restricted, NFS: baseline, host paths: privileged) but not uid and gid. An admission policy or Kyverno pins both " +
			"to the values from LDAP.",
		Ask: []steps.Question{
			{
				Key: "policies.level", Title: "Pod security level of users' namespaces", Kind: steps.Pick, On: steps.Remote,
				Adopt: adoptUserLevel,
				Of: []steps.Choice{
					{Value: check.Restricted, Title: "restricted: no site files are mounted"},
					{Value: check.Baseline, Title: "baseline: NFS mounts"},
					{Value: check.Privileged, Title: "privileged: host paths; pod security rejects nothing"},
				},
				Help: "The pre-hook sets this level on each user's namespace at login. If the level is too strict for the " +
					"mounts, every app is rejected.",
				Default: defaultLevel,
			},
			{
				Key: "policies.ids", Title: "Enforcement of pods' uid and gid", Kind: steps.Pick, On: steps.Remote,
				Of: []steps.Choice{
					{Value: "none", Title: "none: not enforced, or enforced by another tool such as Kyverno"},
					{
						Value: "admission-policy",
						Title: "admission-policy: ValidatingAdmissionPolicy with the ConfigMaps of k8-ldap-configmap (Kubernetes " +
							"1.30 or newer)",
					},
				},
				Help: "If site files are mounted, a user who can run as any uid can read everyone's files. The policy reads " +
					"the ConfigMaps user-uid-map and user-gid-map, keyed by namespace.",
				Default: steps.Fixed("none", "default; a policy that rejects pods is opt-in"),
			},
			{
				Key: "policies.maps-namespace", Title: "Namespace of the uid and gid ConfigMaps", Kind: steps.Namespace,
				On: steps.Remote, Opt: true, When: pinsIDs,
				Help: "The namespace where k8-ldap-configmap writes the ConfigMaps user-uid-map and user-gid-map. Anyone who " +
					"can write these ConfigMaps controls the uid of users' pods.",
				Default: steps.FromFact("id-maps", "the namespace of k8-ldap-configmap"),
			},
		},
		Facts: []steps.Fact{
			{Name: "id-maps", Title: "the namespace of k8-ldap-configmap's ConfigMaps", On: steps.Remote, Learn: userIDMaps},
		},
		Actions: []steps.Action{
			{
				Name: "id-policies", Title: "Pin uid, gid and groups of users' pods", On: steps.Remote, When: pinsIDs,
				Needs: []string{"id-maps"},
				Doer: action.Manifest{File: idPoliciesFile, Values: action.Values{
					"maps":       func(_ context.Context, e steps.Env) (any, error) { return mapsNamespace(e) },
					"groups-map": groupsMap,
				}},
			},
		},
		Checks: policyChecks(),
	}
}

func pinsIDs(e steps.Env) bool { return e.Answers.Text("policies.ids") == "admission-policy" }

// needed returns the strictest Pod Security level that permits the mount types in the cluster file. why is the reason,
// for use in findings.
func needed(e steps.Env) (level, why string, err error) {
	types, err := e.Peer.List("mount-types")
	if err != nil {
		return "", "", err
	}
	level, why = levelOf(types)
	return level, why, nil
}

func levelOf(mounts []string) (level, why string) {
	switch {
	case slices.Contains(mounts, "host"):
		return check.Privileged, "host paths are mounted"
	case slices.Contains(mounts, "nfs"):
		return check.Baseline, "NFS is mounted"
	}
	return check.Restricted, "nothing is mounted"
}

// defaultLevel returns the Pod Security level for the mounts in clusterfile.mounts. It does not read the cluster file,
// because the file can still contain the old mounts. One apply writes both the cluster file and the hook that sets the
// level.
func defaultLevel(e steps.Env) (any, string) {
	types, err := mountTypesOf(e.Answers.Text("clusterfile.mounts"))
	if err != nil {
		return check.Restricted, "default; the mounts are unknown"
	}
	level, _ := levelOf(types)
	return level, "the mounts in clusterfile.mounts"
}

// ldapSpace is the default namespace of k8-ldap-configmap's chart.
const ldapSpace = "k8-ldap-configmap"

// mapsNamespace returns policies.maps-namespace, or else the discovered namespace of the ConfigMaps. It returns an
// error if neither is known.
func mapsNamespace(e steps.Env) (string, error) {
	if ns := e.Answers.Text("policies.maps-namespace"); ns != "" {
		return ns, nil
	}
	return e.Own.Text("id-maps")
}

// userIDMaps returns the namespace k8-ldap-configmap if it contains both user-uid-map and user-gid-map. It never
// returns any other namespace, because anyone who can create ConfigMaps there could then choose the UIDs of users'
// pods. To use another namespace, an admin must set policies.maps-namespace.
func userIDMaps(ctx context.Context, e steps.Env) (any, error) {
	at := map[string]int{}
	e.Cluster.StartSelected(check.ConfigMaps, "", cluster.Selector{Fields: "metadata.name=" + gidMap})
	for _, name := range []string{uidMap, gidMap} {
		found, err := e.Cluster.List(ctx, check.ConfigMaps, "", cluster.Selector{Fields: "metadata.name=" + name})
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			at[o.GetNamespace()]++
		}
	}
	var both []string
	for ns, n := range at {
		if n == 2 {
			both = append(both, ns)
		}
	}
	slices.Sort(both)
	switch {
	case slices.Contains(both, ldapSpace):
		return ldapSpace, nil
	case len(both) == 0:
		return nil, steps.Absent(
			"no namespace has both ConfigMaps %s and %s, which k8-ldap-configmap creates", uidMap, gidMap,
		)
	}
	return nil, steps.Absent(
		"ConfigMaps %s and %s are in %s, not in %s: set policies.maps-namespace to the namespace of k8-ldap-configmap",
		uidMap, gidMap, strings.Join(both, ", "), ldapSpace,
	)
}

// groupsMap returns the ConfigMap that the groups policy reads: user-gids-map if it exists, or else user-gid-map. The
// values in user-gid-map are not JSON arrays, so the policy then permits no additional groups.
func groupsMap(ctx context.Context, e steps.Env) (any, error) {
	ns, err := mapsNamespace(e)
	if err != nil {
		return nil, err
	}
	found, err := e.Cluster.List(ctx, check.ConfigMaps, ns, cluster.Selector{Fields: "metadata.name=" + gidsMap})
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return gidsMap, nil
	}
	return gidMap, nil
}

func adoptUserLevel(ctx context.Context, e steps.Env) (any, string, error) {
	all, err := userNamespaces(ctx, e)
	if err != nil {
		return nil, "", err
	}
	for _, ns := range all {
		if level := ns.Labels[check.EnforceLabel]; slices.Contains(check.Levels, level) {
			return level, "namespace " + ns.Name, nil
		}
	}
	return nil, "", nil
}
