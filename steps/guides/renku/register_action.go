package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/inventory"
)

func registerCluster() steps.Action {
	return steps.Action{
		Name: "register", Title: "Register the cluster with Renku", On: steps.Local,
		Needs: []string{"kubeconfig-stored", "api-admin", "cluster-name-free"},
		Doer: action.Call{
			Preview: previewCluster, Make: makeCluster, Left: leftCluster, Revert: removeCluster, Exports: exportCluster,
		},
	}
}

// clusterItem returns a plan item for the cluster. Its text is the same before and after the
// sign-in, so that signing in does not change a confirmed plan.
func clusterItem(verb steps.Verb, payload map[string]any) steps.Item {
	return steps.Item{
		Verb: verb, What: fmt.Sprintf("cluster %q in Renku (POST /api/data/clusters)", textOf(payload, "name")),
		Hash: masked.New(jsonLines("", payload)).Hash(),
	}
}

func previewCluster(ctx context.Context, e steps.Env) (steps.Change, error) {
	payload, err := clusterPayload(e)
	if err != nil {
		return steps.Change{}, err
	}
	c := steps.Change{Permissions: inventory.Permissions(e)}
	item := clusterItem(steps.Create, payload)
	item.Diff = jsonLines("+", payload)
	if bad := payloadProblems(e, payload); len(bad) > 0 {
		item.Refused, item.Note = true, strings.Join(bad, "; ")
		c.Items = []steps.Item{item}
		return c, nil
	}
	rows, err := theRows(ctx, e)
	if err != nil {
		c.Items = unlessNoted(ctx, e, noteCluster, item)
		return c, later(refusedIsAbsent(err))
	}
	if other := rowWithName(rows, textOf(payload, "name"), textOf(payload, "config_name")); other != nil {
		item.Refused, item.Note = true, taken(other)+": set cluster.name to another name"
	} else if row := rowOf(rows, textOf(payload, "config_name")); row != nil {
		item = unnoted(ctx, e, noteCluster, textOf(row, "id"), changeItem(payload, row))
	}
	c.Items = []steps.Item{item}
	return c, nil
}

// changeItem returns the plan item for a cluster that already exists in Renku.
func changeItem(payload, row map[string]any) steps.Item {
	item := clusterItem(steps.Update, payload)
	item.What = fmt.Sprintf("cluster %q in Renku (PATCH /api/data/clusters/%s)", textOf(row, "name"), textOf(row, "id"))
	diffs := differences(payload, row)
	if len(diffs) == 0 {
		item.Verb = steps.Leave
		return item
	}
	item.Diff = changedLines(diffs)
	many, err := patches(payload, row)
	if err != nil {
		item.Refused, item.Note = true, err.Error()
	} else if len(many) > 1 {
		item.Note = fmt.Sprintf(
			"carrick sends %d requests. Sessions use http between the requests, because Renku rejects a direct change",
			len(many),
		)
	}
	return item
}

// payloadProblems returns the rules of Renku, Kubernetes and this guide that a payload violates.
// This guide forbids sessions on the portal's own host.
func payloadProblems(e steps.Env, payload map[string]any) []string {
	bad := clusterProblems(payload)
	if host := textOf(payload, "session_host"); slices.Contains(renkuHosts(e), host) {
		bad = append(bad, "sessions.host is "+host+", Renku's own domain, which points to the local cluster")
	}
	return bad
}

func makeCluster(ctx context.Context, e steps.Env, say steps.Progress) error {
	payload, err := clusterPayload(e)
	if err != nil {
		return err
	}
	if bad := payloadProblems(e, payload); len(bad) > 0 {
		return errors.New(
			"carrick did not register the cluster, because Renku or Kubernetes would reject it: " + strings.Join(bad, "; "),
		)
	}
	api, err := signedInAPI(e)
	if err != nil {
		return err
	}
	rows, err := theRows(ctx, e)
	if err != nil {
		return failing(e, "list Renku's clusters", err)
	}
	if other := rowWithName(rows, textOf(payload, "name"), textOf(payload, "config_name")); other != nil {
		return errors.New(taken(other) + ": set cluster.name to another name")
	}
	row := rowOf(rows, textOf(payload, "config_name"))
	if row == nil {
		if row, err = postCluster(ctx, e, api, payload, say); err != nil {
			return err
		}
	} else if err := enterNote(ctx, e, noteCluster, textOf(row, "id"), say); err != nil {
		return err
	}
	return patchUntilEqual(ctx, e, api, payload, row, say)
}

// postCluster registers the cluster in Renku and records its id in the inventory. It returns the
// cluster from Renku's response.
func postCluster(
	ctx context.Context, e steps.Env, api *web.Client, payload map[string]any, say steps.Progress,
) (map[string]any, error) {
	refused, err := noteAsking(ctx, e, noteCluster, say)
	if err != nil {
		return nil, err
	}
	var row map[string]any
	_, err = api.JSON(ctx, "POST", "/clusters", payload, &row)
	if refusesEmptySecret(err, payload) {
		// Some versions of Renku store session_ingress_use_default_cluster_tls_cert and then reject an
		// empty Secret name. Other versions drop the flag and require the empty name.
		less := plainJSON(payload)
		delete(less, fieldTLS)
		say.Say(
			"Renku rejects an empty TLS Secret together with the default certificate; retrying without the TLS Secret field",
		)
		_, err = api.JSON(ctx, "POST", "/clusters", less, &row)
	}
	if err != nil {
		failed := failing(e, "register the cluster", err)
		if refusedByRenku(err) { // nothing was created
			failed = errors.Join(failed, refused())
		}
		return nil, failed
	}
	id := textOf(row, "id")
	if !ulid.MatchString(id) {
		return nil, fmt.Errorf(
			"register the cluster: the id in Renku's response is not a ULID (%q); run carrick check %s", id,
			e.LinkFile(),
		)
	}
	say.Did(
		steps.Create, fmt.Sprintf("cluster %q in Renku, id %s", textOf(row, "name"), id),
		masked.New(jsonLines("", payload)).Hash(),
	)
	return row, inventory.SetNote(ctx, e, noteCluster, id, say)
}

// refusesEmptySecret reports whether Renku's database rejected an empty TLS Secret name together
// with session_ingress_use_default_cluster_tls_cert.
func refusesEmptySecret(err error, payload map[string]any) bool {
	e := (*web.Error)(nil)
	if !errors.As(err, &e) || e.Status != 500 || payload[fieldDefault] != true {
		return false
	}
	said := strings.ToLower(e.Message + " " + e.Detail)
	return strings.Contains(said, "protocol_tls_secrets") || strings.Contains(said, "check constraint")
}

// refusedByRenku reports whether Renku itself rejected a request. It returns false for a 5xx error
// from a proxy, because Renku might have executed the request.
func refusedByRenku(err error) bool {
	e := (*web.Error)(nil)
	return errors.As(err, &e) && (e.Code != 0 || e.Status < 500)
}

// patchUntilEqual sends the PATCH requests that make the cluster in Renku equal to payload. Renku
// drops some fields when it creates a cluster.
func patchUntilEqual(
	ctx context.Context, e steps.Env, api *web.Client, payload, row map[string]any, say steps.Progress,
) error {
	id := textOf(row, "id")
	many, err := patches(payload, row)
	if err != nil {
		return err
	}
	var set []string
	for _, d := range differences(payload, row) {
		set = append(set, d.field)
	}
	for i, body := range many {
		if _, err := api.JSON(ctx, "PATCH", "/clusters/"+id, body, nil); err != nil {
			err = failing(e, fmt.Sprintf("change the cluster in Renku, request %d of %d", i+1, len(many)), err)
			if i > 0 {
				return fmt.Errorf("%w (the cluster is only partly changed; continue with %s)", err, e.ApplyStep("register"))
			}
			return err
		}
	}
	if len(many) == 0 {
		return nil
	}
	say.Did(
		steps.Update, fmt.Sprintf("cluster %s in Renku: set %s", id, strings.Join(set, ", ")),
		masked.New(jsonLines("", many)).Hash(),
	)
	var now map[string]any
	if _, err := api.JSON(ctx, "GET", "/clusters/"+id, nil, &now); err != nil {
		return failing(e, "read the changed cluster", err)
	}
	if left := differences(payload, now); len(left) > 0 {
		return fmt.Errorf("a field still differs, although Renku accepted the change: %s", left[0])
	}
	return nil
}
