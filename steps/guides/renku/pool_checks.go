package renku

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func resourcePoolChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "pool-rules", Title: "Renku accepts the pool", On: steps.Local,
			Why: "Renku checks only the length of a quota's ID. If Kubernetes rejects the ID, creating the pool fails with " +
				"HTTP 500 and leaves objects behind.",
			References: []string{page, poolsSource},
			Run:        poolRules,
		},
		{
			Name: "pool-sizes", Title: "Each resource class fits into the quota with its sidecars", On: steps.Local,
			Needs: []string{"pool-rules"},
			Why: "Memory is in GB in quotas but in GiB in classes. Renku accepts a class as large as the quota, but " +
				"its sessions never start (not in the published guide).",
			References: []string{poolsSource},
			Run:        poolSizes,
		},
		{
			Name: "quota-free", Title: "The ResourceQuota belongs to no other pool and has capacity", On: steps.Remote,
			Needs: []string{"namespace", "peer/pool-rules"},
			Why: "A quota left by a failed attempt makes the next attempt fail with HTTP 500. A quota smaller than one " +
				"session prevents all sessions.",
			References: []string{poolsSource},
			Run:        quotaFree,
		},
		{
			Name: "pool-exists", Title: "Renku has the pool exactly once and on this cluster", On: steps.Local, From: fromAPI,
			FixedBy: "pool", Needs: []string{"pool-rules", "cluster-registered"},
			Why: "Pool names are not unique, so a second attempt creates a second pool. If a pool's cluster is " +
				"deleted, the pool becomes a pool of the local cluster.",
			References: []string{poolsSource},
			Run:        poolMade,
		},
		{
			Name: "pool-as-planned", Title: "The pool in Renku matches the answers", On: steps.Local, From: fromAPI,
			FixedBy: "pool", Needs: []string{"pool-exists", "peer/role-rules"},
			Why:        "A pool without its quota is unlimited, and Renku drops cpu_limit_factor when it creates a pool.",
			References: []string{poolsSource},
			Run:        poolAsPlanned,
		},
		{
			Name: "pool-members", Title: "Users can use the pool", On: steps.Local, From: fromAPI, FixedBy: "members",
			Needs: []string{"pool-exists"},
			Why: "Only admins can use a pool that is not public until it has members. The published guide does not " +
				"mention this rule.",
			References: []string{poolsSource},
			Run:        poolMembers,
		},
	}
}

// poolProblems returns the rules of Renku and of this guide that the pool violates. This guide
// requires the quota's id in pools.quotas, because carrick creates PriorityClasses only for these
// ids.
func poolProblems(e steps.Env, d described) []string {
	out := d.problems()
	if len(out) > 0 || d.Quota == nil {
		return out
	}
	for _, id := range e.Answers.List("pools.quotas") {
		if id == d.Quota.ID {
			return nil
		}
	}
	return []string{
		fmt.Sprintf(
			"the quota's ID %s is not in pools.quotas (%s), so carrick does not create its PriorityClass", d.Quota.ID,
			strings.Join(e.Answers.List("pools.quotas"), ", "),
		),
	}
}

func poolRules(ctx context.Context, e steps.Env) steps.Result {
	d, err := thePool(e)
	if err != nil {
		return steps.Errored(err)
	}
	if bad := poolProblems(e, d); len(bad) > 0 {
		return steps.Failed(strings.Join(bad, "; "), "edit pool.spec (e), or pools.quotas")
	}
	if d.Quota == nil {
		return steps.Warned(
			fmt.Sprintf(
				"pool %q has no quota. Its sessions can use the whole remote cluster, and Renku creates the pool without an "+
					"error even if it has not loaded the cluster's kubeconfig",
				d.Name,
			),
			"add a quota to pool.spec, with an ID from pools.quotas",
		)
	}
	if framed(e) && d.Public {
		return steps.Warned(
			"the pool is public and sessions open in a frame, so sessions of users who are not signed in fail (no cookie for "+
				"frames without a user)",
			"set public: false in pool.spec, or set sessions.framed to no",
		)
	}
	return steps.Passed(
		"pool %q has %d classes, %g CPUs, %g GB, %g GPUs", d.Name, len(d.Classes), d.Quota.CPU, d.Quota.Memory, d.Quota.GPU,
	)
}

func poolSizes(ctx context.Context, e steps.Env) steps.Result {
	d, err := thePool(e)
	if err != nil {
		return steps.Errored(err)
	}
	if d.Quota == nil {
		return steps.Passed("the pool has no quota, so every class fits")
	}
	if tight := d.tooTight(); len(tight) > 0 {
		return steps.Failed(strings.Join(tight, "; "), "make the quota larger or the class smaller: edit pool.spec (e)")
	}
	return steps.Passed(
		"%d resource classes fit into the quota of %g CPUs and %g GB", len(d.Classes), d.Quota.CPU, d.Quota.Memory,
	)
}

func quotaFree(ctx context.Context, e steps.Env) steps.Result {
	d, err := thePool(e)
	if err != nil {
		return steps.Errored(err)
	}
	if d.Quota == nil {
		return steps.Passed("the pool has no quota, so no ResourceQuota can conflict")
	}
	ns, name := sessionsNamespace(e), d.Quota.ID
	live, err := check.Get[corev1.ResourceQuota](ctx, e.Cluster, check.ResourceQuotas, ns, name)
	if apierrors.IsNotFound(err) {
		if id, err := poolNumber(e); err == nil {
			return steps.Failed(fmt.Sprintf("pool %d has no ResourceQuota %s/%s, so its sessions are unlimited", id, ns, name),
				"undo the pool and create it again: carrick undo "+e.LinkFile()+" --step pool").WithoutAction()
		}
		return steps.Passed("ResourceQuota %s does not exist in namespace %s", name, ns)
	}
	if err != nil {
		return steps.Errored(err)
	}
	r := quotaOwner(e, ns, d)
	if tight := tooLittle(e, d, live); r.Status != steps.Fail && len(tight) > 0 && tight[0].class == "" {
		return steps.Failed(tight[0].words()+", so no session can start", restoreQuota(e, d))
	}
	return r
}

// quotaOwner returns the verdict on the owner of the ResourceQuota with the pool's quota id.
func quotaOwner(e steps.Env, ns string, d described) steps.Result {
	name := d.Quota.ID
	id, err := poolNumber(e)
	absent := (*steps.AbsentError)(nil)
	switch {
	case err == nil:
		return steps.Passed("ResourceQuota %s belongs to pool %d", name, id)
	case errors.As(err, &absent) && (strings.HasPrefix(absent.Why, noPool) || strings.HasPrefix(absent.Why, noCluster)):
		if other, err := poolOfQuota(e, name); err != nil || other != "" {
			if err != nil {
				return unasked(e, err)
			}
			return steps.Failed(
				fmt.Sprintf(
					"ResourceQuota %s/%s belongs to pool %q of this cluster, but pool.spec names %q", ns, name, other, d.Name,
				),
				"edit pool.spec (e): use the name of that pool or the ID of another quota",
			)
		}
		return steps.Failed(
			fmt.Sprintf(
				"ResourceQuota %s/%s exists, but this cluster has no pool %q. A failed attempt or a lost pool left the "+
					"ResourceQuota behind", ns,
				name, d.Name,
			),
			e.Kubectl()+" -n "+ns+" delete resourcequota "+name,
		)
	case absent != nil:
		return steps.Skipped("ResourceQuota %s/%s exists, but its owner is unknown: %s", ns, name, absent.Why)
	}
	return unasked(e, err)
}

// restoreQuota returns the command that sets the pool's ResourceQuota to the values in pool.spec.
// It converts the values as Renku does (renku-data-services
// components/renku_data_services/crc/models.py).
func restoreQuota(e steps.Env, d described) string {
	hard := map[string]string{
		"requests.cpu": fmt.Sprint(math.Ceil(d.Quota.CPU)), "requests.memory": fmt.Sprintf("%.0f", d.Quota.Memory*1e9),
	}
	if d.Quota.GPU > 0 {
		hard["requests.nvidia.com/gpu"] = fmt.Sprint(d.Quota.GPU)
	}
	return e.Kubectl() + " -n " + sessionsNamespace(e) + " patch resourcequota " + steps.Quoted(d.Quota.ID) +
		" " + steps.JSONPatch(steps.PatchOp{Op: "replace", Path: "/spec/hard", Value: hard})
}

// poolOfQuota returns the name of the pool on this cluster with the given quota id. It returns ""
// if there is none.
func poolOfQuota(e steps.Env, quota string) (string, error) {
	all, err := e.Peer.List("pool-quotas")
	if steps.IsAbsent(err) {
		return "", nil
	}
	for _, one := range all {
		if id, name, _ := strings.Cut(one, " "); id == quota {
			return clean.Text(name), nil
		}
	}
	return "", err
}

func poolMade(ctx context.Context, e steps.Env) steps.Result {
	d, err := thePool(e)
	if err != nil {
		return steps.Errored(err)
	}
	api, err := signedInAPI(e)
	if err != nil {
		return steps.Errored(err)
	}
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return unasked(e, err)
	}
	named, err := poolsNamed(ctx, api, d.Name)
	if err != nil {
		return unasked(e, err)
	}
	return judgePools(d.Name, id, named)
}

// judgePools checks the pools that have this link's pool name. Exactly one of them must be on the
// cluster with the given id. A pool of the same name on another cluster is only a warning.
func judgePools(name, id string, named []pool) steps.Result {
	var ours, astray []string
	for _, p := range named {
		if p.Cluster.ID == id {
			ours = append(ours, fmt.Sprint(p.ID))
		} else {
			astray = append(astray, fmt.Sprintf("%d on %s", p.ID, poolPlace(p)))
		}
	}
	switch {
	case len(named) == 0:
		return steps.Undone(fmt.Sprintf("%s %q", noPool, name))
	case len(ours) > 1:
		return steps.Failed(
			fmt.Sprintf("%d pools are named %q on this cluster: %s", len(ours), name, strings.Join(ours, ", ")),
			"delete the unused pools in Renku's admin pages or with DELETE /api/data/resource_pools/ID",
		)
	case len(ours) == 0:
		return steps.Failed(
			fmt.Sprintf(
				"a pool named %q exists, but not on this cluster: %s. The cluster of a pool cannot be changed", name,
				strings.Join(astray, ", "),
			),
			"set another name in pool.spec, or delete the existing pool",
		)
	case len(astray) > 0:
		return steps.Warned(
			fmt.Sprintf("pool %s has the same name as pool %s", ours[0], strings.Join(astray, ", ")),
			"rename one of the pools in Renku's admin pages, because users cannot distinguish them",
		)
	}
	return steps.Passed("pool %q, id %s", name, ours[0])
}

func poolPlace(p pool) string {
	if p.Cluster.ID == "" {
		return "the local cluster"
	}
	return "cluster " + p.Cluster.ID
}

func poolMembers(ctx context.Context, e steps.Env) steps.Result {
	p, err := storedPool(ctx, e)
	if err != nil {
		return unasked(e, err)
	}
	api, err := signedInAPI(e)
	if err != nil {
		return steps.Errored(err)
	}
	lacking, err := missingMembers(ctx, e, api, p.ID)
	if err != nil {
		return unasked(e, err)
	}
	have, err := members(ctx, api, p.ID)
	if err != nil {
		return unasked(e, err)
	}
	may := 0
	for _, m := range have {
		if m.Role != "prohibited" {
			may++
		}
	}
	switch {
	case len(lacking) > 0:
		return steps.Warned(
			fmt.Sprintf("%d members from pool.members are not in the pool, including %s", len(lacking), lacking[0]), "",
		)
	case p.Public:
		return steps.Passed("the pool is public")
	case may == 0:
		return steps.Warned(
			"the pool is not public and has no members, so only admins can use it",
			"set pool.members, or set public: true in pool.spec; then "+e.ApplyStep("pool"),
		)
	}
	return steps.Passed("%s can use the pool", steps.Plural(may, "member"))
}
