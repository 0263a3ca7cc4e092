package renku

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carrick/cluster/failure"
	"carrick/cluster/web"
	"carrick/steps"
)

func apiAnswers(ctx context.Context, e steps.Env) steps.Result {
	api, err := e.API()
	if err != nil {
		return steps.Errored(err)
	}
	fix := "curl -i " + api.Base() + "/version    # check renku.url, and that Renku is running"
	var out struct {
		Version string `json:"version"`
	}
	status, err := api.JSON(ctx, "GET", "/version", nil, &out)
	web := (*web.Error)(nil)
	switch {
	case errors.As(err, &web):
		found, _ := plainly(err)
		return steps.Failed(found, fix)
	case err != nil && status != 0:
		return steps.Failed(api.Base()+" answers, but the response is not from Renku's API: "+failure.Explain(err), fix)
	case err != nil:
		return unasked(e, err).Or(fix)
	case out.Version == "":
		return steps.Failed(api.Base()+" answers without a version, so the response is not from Renku's API", fix)
	}
	return steps.Passed("%s, data services %s", api.Base(), out.Version)
}

// newerFields lists cluster fields that do not exist in the first Renku versions with remote
// clusters.
var newerFields = []string{fieldDefault, "service_account_name"}

func apiKnowsFields(ctx context.Context, e steps.Env) steps.Result {
	api, err := e.API()
	if err != nil {
		return steps.Errored(err)
	}
	var spec struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if _, err := api.JSON(ctx, "GET", "/spec.json", nil, &spec); err != nil {
		return unasked(e, err)
	}
	known := map[string]bool{}
	for name, schema := range spec.Components.Schemas {
		if strings.HasPrefix(name, "Cluster") {
			schemaProperties(schema, known)
		}
	}
	if len(known) == 0 {
		return steps.Failed(
			"Renku's OpenAPI description has no cluster schema, so this version of Renku does not support remote clusters",
			"upgrade Renku",
		)
	}
	var lacking []string
	for _, f := range newerFields {
		if !known[f] {
			lacking = append(lacking, f)
		}
	}
	if len(lacking) > 0 {
		return steps.Warned(
			"Renku's API has no field "+strings.Join(lacking, ", "),
			"upgrade Renku, or set sessions.tls-secret and leave sessions.service-account empty",
		)
	}
	return steps.Passed("clusters in Renku's API have the fields %s", strings.Join(newerFields, ", "))
}

// schemaProperties adds all property names in schema to into, including those in nested schemas.
func schemaProperties(schema any, into map[string]bool) {
	switch v := schema.(type) {
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			for name := range props {
				into[name] = true
			}
		}
		for _, inner := range v {
			schemaProperties(inner, into)
		}
	case []any:
		for _, inner := range v {
			schemaProperties(inner, into)
		}
	}
}

// rowWithName returns a cluster with the given name but another config_name. It returns nil if
// there is none.
func rowWithName(rows []map[string]any, name, config string) map[string]any {
	for _, row := range rows {
		if textOf(row, "name") == name && textOf(row, "config_name") != config {
			return row
		}
	}
	return nil
}

func taken(row map[string]any) string {
	return fmt.Sprintf(
		"Renku already has a cluster %q (id %s) with another kubeconfig (config_name %s)", textOf(row, "name"),
		textOf(row, "id"), textOf(row, "config_name"),
	)
}

func nameFree(ctx context.Context, e steps.Env) steps.Result {
	rows, err := theRows(ctx, e)
	if err != nil {
		return unasked(e, err)
	}
	name, config := e.Answers.Text("cluster.name"), e.Answers.Text("cluster.config-name")
	if row := rowWithName(rows, name, config); row != nil {
		return steps.Failed(
			taken(row),
			"set cluster.name to another name or, if both are the same cluster, set cluster.config-name to "+
				textOf(row, "config_name"),
		)
	}
	if row := rowOf(rows, config); row != nil {
		return steps.Passed("config_name %s belongs to cluster %q in Renku", config, textOf(row, "name"))
	}
	return steps.Passed("none of Renku's %d clusters is named %q", len(rows), name)
}

func isRegistered(ctx context.Context, e steps.Env) steps.Result {
	rows, err := theRows(ctx, e)
	if err != nil {
		return unasked(e, err)
	}
	config := e.Answers.Text("cluster.config-name")
	row := rowOf(rows, config)
	if row == nil {
		return steps.Undone(fmt.Sprintf("none of Renku's %d clusters has config_name %s", len(rows), config))
	}
	return steps.Passed("cluster %q, id %s", textOf(row, "name"), textOf(row, "id"))
}

func asPlanned(_ context.Context, e steps.Env) steps.Result {
	row, err := localFacts(e).Map("cluster-row")
	if err != nil {
		return unasked(e, err)
	}
	want, err := clusterPayload(e)
	if err != nil {
		return steps.Errored(err)
	}
	diffs := differences(want, row)
	if len(diffs) == 0 {
		return steps.Passed("all %d fields match", len(want))
	}
	var said []string
	for _, d := range diffs {
		text := d.String()
		if d.field == fieldDefault && d.have == nil {
			text += " (Renku drops the flag when it creates a cluster, so sessions have no TLS)"
		}
		said = append(said, text)
	}
	return steps.Failed(strings.Join(said, "; "), "")
}
