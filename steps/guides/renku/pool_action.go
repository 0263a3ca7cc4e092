package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/inventory"
)

func poolItem(d described) steps.Item {
	return steps.Item{
		Verb: steps.Create, What: fmt.Sprintf("resource pool %q in Renku (POST /api/data/resource_pools)", d.Name),
		Diff: jsonLines("+", d.payload), Hash: masked.New(jsonLines("", d.payload)).Hash(),
	}
}

func previewPool(ctx context.Context, e steps.Env) (steps.Change, error) {
	d, err := thePool(e)
	if err != nil {
		return steps.Change{}, err
	}
	item, c := poolItem(d), steps.Change{Permissions: inventory.Permissions(e)}
	if bad := append(poolProblems(e, d), d.tooTight()...); len(bad) > 0 {
		item.Refused, item.Note = true, strings.Join(bad, "; ")
		c.Items = []steps.Item{item}
		return c, nil
	}
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		c.Items = unlessNoted(ctx, e, notePool, item)
		return c, later(err)
	}
	api, err := signedInAPI(e)
	if err != nil {
		return c, err
	}
	named, err := poolsNamed(ctx, api, d.Name)
	if err != nil {
		c.Items = unlessNoted(ctx, e, notePool, item)
		return c, later(refusedIsAbsent(err))
	}
	number := ""
	if i := slices.IndexFunc(named, func(p pool) bool { return p.Cluster.ID == id }); i >= 0 {
		number = strconv.Itoa(named[i].ID)
	}
	c.Items = []steps.Item{unnoted(ctx, e, notePool, number, existingPoolItem(d, item, id, named))}
	return c, nil
}

// existingPoolItem returns the plan item for the pool. If no pool has the name yet, it returns item
// unchanged, which creates the pool. Otherwise the returned item keeps or patches the pool on the
// cluster with the given id. The item is refused if judgePools returns Fail.
func existingPoolItem(d described, item steps.Item, id string, named []pool) steps.Item {
	if len(named) == 0 {
		return item
	}
	r := judgePools(d.Name, id, named)
	if !r.Status.Holds() {
		item.Refused, item.Note = true, r.Found
		return item
	}
	for _, p := range named {
		if p.Cluster.ID != id {
			continue
		}
		item.What, item.Diff = fmt.Sprintf("resource pool %d in Renku (PATCH /api/data/resource_pools/%d)", p.ID, p.ID), ""
		if item.Verb = steps.Leave; d.Factor != 0 && p.Factor != d.Factor {
			item.Verb, item.Diff = steps.Update, jsonLines("+", map[string]any{"cpu_limit_factor": d.Factor})
		}
	}
	return item
}

func makePool(ctx context.Context, e steps.Env, say steps.Progress) error {
	d, err := thePool(e)
	if err != nil {
		return err
	}
	if bad := append(poolProblems(e, d), d.tooTight()...); len(bad) > 0 {
		return errors.New(
			"carrick did not send the pool, because Renku or Kubernetes would reject it: " + strings.Join(bad, "; "),
		)
	}
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return err
	}
	named, err := poolsNamed(ctx, api, d.Name)
	if err != nil {
		return failing(e, "listing Renku's pools", err)
	}
	var stored pool
	if len(named) == 0 {
		if stored, err = postPool(ctx, e, api, d, id, say); err != nil {
			return err
		}
	} else if r := judgePools(d.Name, id, named); !r.Status.Holds() {
		return errors.New(r.Found + "; " + r.Fix)
	}
	for _, p := range named {
		if p.Cluster.ID == id {
			stored = p
			if err := enterNote(ctx, e, notePool, strconv.Itoa(p.ID), say); err != nil {
				return err
			}
		}
	}
	return setDroppedFields(ctx, e, api, d, stored, say)
}

// postPool creates the pool and records its id in the inventory. It then reads the pool back,
// because only the stored pool shows what Renku created on the remote cluster.
func postPool(
	ctx context.Context, e steps.Env, api *web.Client, d described, id string, say steps.Progress,
) (pool, error) {
	refused, err := noteAsking(ctx, e, notePool, say)
	if err != nil {
		return pool{}, err
	}
	payload := plainJSON(d.payload)
	payload["cluster_id"] = id
	var made pool
	if _, err := api.JSON(ctx, "POST", "/resource_pools", payload, &made); err != nil {
		failed := failing(e, "creating the pool", err)
		if w := (*web.Error)(nil); errors.As(err, &w) && w.Status >= 500 && d.Quota != nil {
			failed = fmt.Errorf(
				"%w; the attempt may have left a ResourceQuota on the remote cluster that blocks the next attempt. To delete the "+
					"ResourceQuota: %s -n %s delete resourcequota %s",
				failed, e.PeerKubectl(), sessionsNamespace(e), d.Quota.ID,
			)
		}
		if refusedByRenku(err) {
			failed = errors.Join(failed, refused())
		}
		return pool{}, failed
	}
	if made.ID == 0 {
		return pool{}, errors.New(
			"creating the pool: Renku's response has no pool ID; run carrick check " + e.LinkFile(),
		)
	}
	say.Did(
		steps.Create, fmt.Sprintf("resource pool %q in Renku, id %d", made.Name, made.ID),
		masked.New(jsonLines("", d.payload)).Hash(),
	)
	if err := inventory.SetNote(ctx, e, notePool, strconv.Itoa(made.ID), say); err != nil {
		return pool{}, err
	}
	stored, err := onePool(ctx, api, made.ID)
	switch {
	case err != nil:
		return pool{}, failing(e, fmt.Sprintf("reading the new pool %d", made.ID), err)
	case stored.Cluster.ID != id:
		return pool{}, fmt.Errorf(
			"pool %d was created on %s, not on cluster %s: run carrick undo %s --step pool", made.ID, poolPlace(stored), id,
			e.LinkFile(),
		)
	case d.Quota != nil && stored.Quota == nil:
		return pool{}, fmt.Errorf(
			"pool %d was created without its quota, because Renku has not loaded the cluster's kubeconfig. Run carrick undo %s "+
				"--step pool, restart Renku's services, then apply again",
			made.ID, e.LinkFile(),
		)
	}
	return stored, nil
}

// setDroppedFields sets cpu_limit_factor, which Renku drops when it creates a pool.
func setDroppedFields(
	ctx context.Context, e steps.Env, api *web.Client, d described, stored pool, say steps.Progress,
) error {
	if d.Factor == 0 || stored.Factor == d.Factor {
		return nil
	}
	if _, err := api.JSON(
		ctx, "PATCH", fmt.Sprintf("/resource_pools/%d", stored.ID), map[string]any{"cpu_limit_factor": d.Factor}, nil,
	); err != nil {
		return failing(e, "setting the pool's cpu_limit_factor", err)
	}
	say.Did(steps.Update, fmt.Sprintf("resource pool %d in Renku: cpu_limit_factor is now %g", stored.ID, d.Factor), "")
	return nil
}

func leftPool(ctx context.Context, e steps.Env) (steps.Change, error) {
	id, err := inventory.Note(ctx, e, notePool)
	if err != nil {
		return steps.Change{}, err
	}
	if id == "" {
		return steps.Change{Items: leftEarlier(ctx, e, notePool, "resource pool")}, nil
	}
	item := steps.Item{
		Verb: steps.Delete, What: fmt.Sprintf("resource pool %s in Renku (DELETE /api/data/resource_pools/%s)", id, id),
		Hash: id,
		Note: "Renku also deletes the pool's PriorityClass and ResourceQuota on the remote cluster, so sessions of the " +
			"pool can no longer start",
	}
	if id == noteAsked {
		item.What = "the resource pool in Renku, if it was created"
	}
	if why, err := signInReason(ctx, e); why != "" || err != nil {
		item.Note += "; " + willAsk
	} else if name := poolName(ctx, e, id); name != "" {
		item.Note = fmt.Sprintf("the pool's name in Renku is %q; ", name) + item.Note
	}
	c := steps.Change{Items: []steps.Item{item}, Permissions: inventory.Permissions(e)}
	if d, err := thePool(e); err == nil && d.Quota != nil && d.Quota.ID != "" {
		c.Along = map[steps.Side][]string{steps.Remote: {
			"ResourceQuota " + sessionsNamespace(e) + "/" + d.Quota.ID, "PriorityClass " + d.Quota.ID,
		}}
	}
	return c, nil
}

// poolName returns the name of the pool with the given id, or "" if the pool cannot be read.
func poolName(ctx context.Context, e steps.Env, id string) string {
	number, err := strconv.Atoi(id)
	if err != nil {
		return ""
	}
	api, err := e.API()
	if err != nil {
		return ""
	}
	p, err := onePool(ctx, api, number)
	if err != nil {
		return ""
	}
	return clean.Text(p.Name)
}

func removePool(ctx context.Context, e steps.Env, say steps.Progress) error {
	noted, err := inventory.Note(ctx, e, notePool)
	if err != nil || noted == "" {
		return err
	}
	api, err := apiForUndo(ctx, e, say)
	if err != nil {
		return failing(e, "signing in to remove the pool", err)
	}
	id, err := strconv.Atoi(noted)
	if noted == noteAsked {
		id, err = lostPool(ctx, e, api)
	}
	if err != nil {
		return failing(e, "finding the pool that this link created", err)
	}
	if id != 0 {
		if err := ourPool(ctx, e, api, id); err != nil {
			return failing(e, fmt.Sprintf("removing pool %d", id), err)
		}
		if _, err := api.JSON(ctx, "DELETE", fmt.Sprintf("/resource_pools/%d", id), nil, nil); err != nil && !isGone(err) {
			return notRemoved(e, id, err)
		}
		say.Did(steps.Delete, fmt.Sprintf("resource pool %d in Renku", id), "")
	}
	return inventory.SetNote(ctx, e, notePool, "", say)
}

// notRemoved explains why Renku could not delete a pool. Renku's error does not name the request
// that the remote cluster denied. Most likely this request was the deletion of the PriorityClass,
// because kubeconfigs from earlier versions of carrick do not permit it (see deletionRule).
func notRemoved(e steps.Env, id int, err error) error {
	failed := failing(e, fmt.Sprintf("removing pool %d", id), err)
	if w := (*web.Error)(nil); errors.As(err, &w) && w.Status == 500 && strings.Contains(w.Message, "unexpected error") {
		failed = fmt.Errorf(
			"%w; Renku deletes the pool's PriorityClass first. Run carrick apply %s --step identity to grant Renku's "+
				"kubeconfig that permission, then undo again",
			failed, e.LinkFile(),
		)
	}
	return failed
}

// lostPool returns the id of the pool that this link requested without receiving a response. It
// returns 0 if Renku did not create the pool.
func lostPool(ctx context.Context, e steps.Env, api *web.Client) (int, error) {
	var rows []map[string]any
	if _, err := api.JSON(ctx, "GET", "/clusters", nil, &rows); err != nil {
		return 0, err
	}
	d, err := thePool(e)
	if err != nil {
		return 0, err
	}
	named, err := poolsNamed(ctx, api, d.Name)
	if err != nil {
		return 0, err
	}
	cluster := textOf(rowOf(rows, e.Answers.Text("cluster.config-name")), "id")
	for _, p := range named {
		if cluster != "" && p.Cluster.ID == cluster {
			return p.ID, nil
		}
	}
	return 0, nil
}
