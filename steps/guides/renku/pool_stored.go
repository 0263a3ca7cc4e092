package renku

import (
	"context"
	"fmt"
	"math"
	"strings"

	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/inventory"
)

func storedPool(ctx context.Context, e steps.Env) (pool, error) {
	id, err := poolNumber(e)
	if err != nil {
		return pool{}, err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return pool{}, err
	}
	return onePool(ctx, api, id)
}

func poolAsPlanned(ctx context.Context, e steps.Env) steps.Result {
	d, err := thePool(e)
	if err != nil {
		return steps.Errored(err)
	}
	p, err := storedPool(ctx, e)
	if err != nil {
		return unasked(e, err)
	}
	if d.Quota != nil && p.Quota == nil {
		return steps.Failed(
			fmt.Sprintf("pool %d has no quota, so nothing limits its sessions", p.ID),
			"undo the pool and create it again: carrick undo "+e.LinkFile()+" --step pool",
		)
	}
	if d.Factor != p.Factor && d.Factor != 0 {
		return steps.Failed(fmt.Sprintf("cpu_limit_factor is %g, not %g", p.Factor, d.Factor), "")
	}
	if diffs := poolDifferences(d.pool, p); len(diffs) > 0 {
		return steps.Warned(
			strings.Join(diffs, "; "), "change the pool in Renku's admin pages, or change pool.spec to match",
		)
	}
	return steps.Passed("the quota and %d resource classes match", len(p.Classes))
}

func poolDifferences(want, have pool) []string {
	var out []string
	if want.Public != have.Public {
		out = append(out, fmt.Sprintf("public is %v, not %v", have.Public, want.Public))
	}
	if want.Quota != nil && have.Quota != nil {
		// Data services 0.71.1 and later store whole CPUs. Earlier versions store fractions
		// (crc/models.py Quota.to_patch).
		whole := *want.Quota
		whole.CPU = math.Ceil(whole.CPU)
		if whole != *have.Quota && *want.Quota != *have.Quota {
			out = append(out, fmt.Sprintf("the quota is %s, not %s", shownJSON(have.Quota), shownJSON(whole)))
		}
	}
	stored := map[string]resourceClass{}
	for _, c := range have.Classes {
		stored[c.Name] = c
	}
	for _, c := range want.Classes {
		if s, ok := stored[c.Name]; !ok {
			out = append(out, "the pool has no class "+c.Name)
		} else if s != c {
			out = append(out, fmt.Sprintf("class %s is %s, not %s", c.Name, shownJSON(s), shownJSON(c)))
		}
		delete(stored, c.Name)
	}
	if len(stored) > 0 {
		out = append(out, fmt.Sprintf("the pool has %d additional classes", len(stored)))
	}
	return out
}

// ourPool returns an error if the pool does not belong to this link. The pool must be on this
// link's cluster or have this link's pool name, because a pool in another Renku can have the same
// id. ourPool returns nil if the pool does not exist.
func ourPool(ctx context.Context, e steps.Env, api *web.Client, id int) error {
	p, err := onePool(ctx, api, id)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if d, err := thePool(e); err == nil && d.Name == p.Name {
		return nil
	}
	made, err := inventory.Note(ctx, e, noteCluster)
	if err != nil {
		return err
	}
	var rows []map[string]any
	if _, err := api.JSON(ctx, "GET", "/clusters", nil, &rows); err != nil {
		return err
	}
	if on := p.Cluster.ID; on != "" && (on == made ||
		on == textOf(rowOf(rows, e.Answers.Text("cluster.config-name")), "id")) {
		return nil
	}
	return fmt.Errorf(
		"pool %q on %s has neither the name nor the cluster of this link's pool, so carrick keeps it. Check that renku.url "+
			"is the URL of the Renku in which this link created its pool, or remove the note: %s annotate clusterrole "+
			"carrick:%s carrick/note.%s-",
		p.Name, poolPlace(p), e.Kubectl(), e.Link, notePool,
	)
}
