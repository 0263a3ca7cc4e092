package renku

import (
	"context"
	"fmt"
	"strings"

	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/action"
)

const poolsSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc (api.spec.yaml, " +
	"core.py, db.py)"

func resourcePool() steps.Step {
	return steps.Step{
		Name: "pool", Title: "Resource pool",
		Map: steps.MapRow{Local: "resource pool", Remote: "quota", Arrow: steps.Remote},
		Why: "Users choose a resource class from a pool. Sessions of this pool run on the remote cluster and share the " +
			"quota of the pool.",
		Ask: poolQuestions(),
		Facts: []steps.Fact{
			{Name: "pool-id", Title: "the pool's ID in Renku", On: steps.Local, Shared: true, Learn: poolID},
			{
				Name: "pool-quotas", Title: "the quotas of this cluster's pools in Renku", On: steps.Local, Shared: true,
				Learn: poolQuotas,
			},
		},
		Actions: []steps.Action{
			{
				Name: "pool", Title: "Create the resource pool", On: steps.Local,
				// Renku's services load each kubeconfig only once: see kubeconfig-loaded.
				Needs: []string{
					"cluster-as-planned", "kubeconfig-loaded", "pool-rules", "pool-sizes", "peer/quota-free", "peer/priority-classes",
				},
				Doer: action.Call{
					Files: []string{poolAsset}, Preview: previewPool, Make: makePool, Left: leftPool, Revert: removePool,
					Exports: exportPool,
				},
			},
			{
				Name: "members", Title: "Add users and groups to the pool", On: steps.Local, Needs: []string{"pool-exists"},
				Doer: action.Call{
					Preview: previewMembers, Make: makeMembers, Exports: exportMembers,
					Keeps: "members are deleted with the pool; members of a pool that already existed are kept",
				},
			},
		},
		Checks: resourcePoolChecks(),
	}
}

func poolQuestions() []steps.Question {
	return []steps.Question{
		{
			Key: "pool.spec", Title: "Resource pool", Kind: steps.YAML, Check: checkPool, Default: examplePool,
			Adopt: adoptSpec,
			Help: "Enter the pool as in Renku's API, in YAML or JSON, without the cluster. Memory is in GB in quotas but in " +
				"GiB in classes. Storage is in GB.",
		},
		{
			Key: "pool.members", Title: "Pool members", Kind: steps.Text, Many: true, Opt: true, Check: checkMember,
			Adopt: adoptMembers,
			Help: "Enter user:UUID, group:ID or project:ID for each member. user:UUID:prohibited excludes a user. Only " +
				"admins can use a pool that is not public and has no members.",
		},
	}
}

// noPool is the prefix of the messages for a missing pool.
const noPool = "Renku has no pool named"

// pools returns all pools, but without their clusters, because Renku omits the cluster in a list.
// onePool returns a single pool with its cluster.
func pools(ctx context.Context, api *web.Client) ([]pool, error) {
	var all []pool
	_, err := api.JSON(ctx, "GET", "/resource_pools", nil, &all)
	return all, err
}

func onePool(ctx context.Context, api *web.Client, id int) (pool, error) {
	var p pool
	_, err := api.JSON(ctx, "GET", fmt.Sprintf("/resource_pools/%d", id), nil, &p)
	return p, err
}

// poolsNamed returns all pools with the given name. Pool names in Renku are not unique.
func poolsNamed(ctx context.Context, api *web.Client, name string) ([]pool, error) {
	return poolsWhere(ctx, api, func(p pool) bool { return p.Name == name }, func(pool) bool { return true })
}

func poolsOf(ctx context.Context, api *web.Client, clusterID string) ([]pool, error) {
	return poolsWhere(ctx, api, func(pool) bool { return true }, func(p pool) bool { return p.Cluster.ID == clusterID })
}

func poolsWhere(ctx context.Context, api *web.Client, listed, whole func(pool) bool) ([]pool, error) {
	all, err := pools(ctx, api)
	if err != nil {
		return nil, err
	}
	var out []pool
	for _, p := range all {
		if !listed(p) {
			continue
		}
		if p, err = onePool(ctx, api, p.ID); err != nil {
			return nil, err
		}
		if whole(p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// poolQuotas returns the quotas of the pools on this link's cluster. Each item is "ID NAME", the
// quota's id and the pool's name.
func poolQuotas(ctx context.Context, e steps.Env) (any, error) {
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return nil, err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return nil, err
	}
	all, err := poolsWhere(
		ctx, api, func(p pool) bool { return p.Quota != nil }, func(p pool) bool { return p.Cluster.ID == id },
	)
	if err != nil {
		return nil, refusedIsAbsent(err)
	}
	out := []string{}
	for _, p := range all {
		if p.Quota != nil {
			out = append(out, p.Quota.ID+" "+p.Name)
		}
	}
	return out, nil
}

// poolID returns the id of the pool on this link's cluster that has this link's pool name.
func poolID(ctx context.Context, e steps.Env) (any, error) {
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return nil, err
	}
	d, err := thePool(e)
	if err != nil {
		return nil, err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return nil, err
	}
	named, err := poolsNamed(ctx, api, d.Name)
	if err != nil {
		return nil, refusedIsAbsent(err)
	}
	for _, p := range named {
		if p.Cluster.ID == id {
			return p.ID, nil
		}
	}
	return nil, steps.Absent("%s %q on this cluster", noPool, d.Name)
}

// member is a user, group or project with a role in a pool.
type member struct {
	Type string `json:"member_type"` // user, group, project
	ID   string `json:"id"`
	Role string `json:"role"`
}

func (m member) String() string { return strings.Join([]string{m.Type, m.ID, m.Role}, " ") }

// memberRoles maps each member type to its roles. The first role is the default
// (renku-data-services components/renku_data_services/crc/api.spec.yaml).
var memberRoles = map[string][]string{
	"user":    {"viewer", "prohibited"},
	"group":   {"group_viewer"},
	"project": {"project_viewer"},
}
