package renku

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/inventory"
)

// willAsk is the note of an undo item whose details carrick cannot read before the sign-in.
const willAsk = "you will be asked to sign in to Renku"

// leftCluster plans the deletion of the cluster. Renku does not delete the pools of a deleted
// cluster. These pools become pools of the local cluster (renku-data-services
// components/renku_data_services/crc/orm.py: ON DELETE SET NULL).
func leftCluster(ctx context.Context, e steps.Env) (steps.Change, error) {
	id, err := inventory.Note(ctx, e, noteCluster)
	if err != nil {
		return steps.Change{}, err
	}
	why, err := signInReason(ctx, e)
	if id == "" {
		if left := leftEarlier(ctx, e, noteCluster, "cluster"); left != nil {
			return steps.Change{Items: left}, nil
		}
		return keptCluster(ctx, e, why, err), nil
	}
	item := steps.Item{
		Verb: steps.Delete, What: fmt.Sprintf("cluster %s in Renku (DELETE /api/data/clusters/%s)", id, id), Hash: id,
	}
	item.Note = "the cluster is kept if pools still refer to it, because the pools would become pools of the local cluster"
	if id == noteAsked {
		item.What = "the cluster in Renku with config_name " + e.Answers.Text("cluster.config-name") + ", if it was created"
	}
	if why != "" || err != nil {
		item.Note += "; " + willAsk
		return steps.Change{Items: []steps.Item{item}, Permissions: inventory.Permissions(e)}, nil
	}
	if row, rowErr := localFacts(e).Map("cluster-row"); id == noteAsked && rowErr == nil {
		id = textOf(row, "id")
	}
	api, err := e.API()
	if err != nil {
		return steps.Change{}, err
	}
	pools, err := poolsOf(ctx, api, id)
	if err != nil {
		found, _ := plainly(err)
		item.Note = "the pools of the cluster cannot be read now: " + found
	} else if said := keptForPools(ctx, e, pools); said != "" {
		item.Note = said
	}
	return steps.Change{Items: []steps.Item{item}, Permissions: inventory.Permissions(e)}, nil
}

// keptCluster returns the undo plan for a cluster that this link did not create. The plan keeps the
// cluster. The parameters why and err are the results of signInReason.
func keptCluster(ctx context.Context, e steps.Env, why string, err error) steps.Change {
	row, rowErr := localFacts(e).Map("cluster-row")
	if why != "" || err != nil || rowErr != nil {
		return steps.Change{}
	}
	return steps.Change{Items: []steps.Item{{
		Verb: steps.Leave, What: fmt.Sprintf("cluster %q in Renku, id %s", textOf(row, "name"), textOf(row, "id")),
		Note: "this link did not create it",
	}}}
}

// keptForPools returns why undo keeps the cluster if it has pools that this link did not create.
// Otherwise it returns "".
func keptForPools(ctx context.Context, e steps.Env, pools []pool) string {
	own, err := inventory.Note(ctx, e, notePool)
	if err != nil {
		own = ""
	}
	var others []string
	for _, p := range pools {
		if fmt.Sprint(p.ID) != own {
			others = append(others, fmt.Sprintf("%q (id %d)", p.Name, p.ID))
		}
	}
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"the cluster is kept, because other pools refer to it and would become pools of the local cluster: %s",
		strings.Join(others, ", "),
	)
}

func removeCluster(ctx context.Context, e steps.Env, say steps.Progress) error {
	id, err := inventory.Note(ctx, e, noteCluster)
	if err != nil || id == "" {
		return err
	}
	api, err := apiForUndo(ctx, e, say)
	if err != nil {
		return failing(e, "sign in to delete the cluster", err)
	}
	var rows []map[string]any
	if _, err := api.JSON(ctx, "GET", "/clusters", nil, &rows); err != nil {
		return failing(e, "list Renku's clusters", err)
	}
	if id == noteAsked {
		id = textOf(rowOf(rows, e.Answers.Text("cluster.config-name")), "id")
	}
	if !hasID(rows, id) {
		return inventory.SetNote(ctx, e, noteCluster, "", say)
	}
	pools, err := poolsOf(ctx, api, id)
	if err != nil {
		return failing(e, "list the pools of cluster "+id+", which is kept", err)
	}
	if len(pools) > 0 {
		said := keptForPools(ctx, e, pools)
		if said == "" {
			said = fmt.Sprintf(
				"pool %q still refers to the cluster and would become a pool of the local cluster: run carrick undo %s --step pool",
				pools[0].Name, e.LinkFile(),
			)
		}
		return fmt.Errorf("delete cluster %s: %s", id, said)
	}
	if _, err := api.JSON(ctx, "DELETE", "/clusters/"+id, nil, nil); err != nil && !isGone(err) {
		return failing(e, "delete cluster "+id, err)
	}
	say.Did(steps.Delete, "cluster "+id+" in Renku", "")
	return inventory.SetNote(ctx, e, noteCluster, "", say)
}

func hasID(rows []map[string]any, id string) bool {
	for _, row := range rows {
		if id != "" && textOf(row, "id") == id {
			return true
		}
	}
	return false
}

// isGone reports whether err means that the requested object does not exist in Renku. Status 404
// alone is not sufficient, because Renku also answers 404 for an existing pool if it has not loaded
// the pool's cluster (renku-data-services @ e81895b4: k8s/clients.py K8sClusterClientsPool).
func isGone(err error) bool {
	e := (*web.Error)(nil)
	return errors.As(err, &e) && e.Status == 404 && !strings.Contains(e.Message, notLoaded)
}
