package renku

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// These adopters read answers from Renku's API.

var errSignIn = errors.New(
	"only Renku's API has this value, and you are not signed in: give --secret renku.token=@FILE, or --sign-in",
)

// adoptRow returns the cluster as Renku stores it. If Renku has no kubeconfig for the remote
// cluster, there is no row to look up.
func adoptRow(e steps.Env) (map[string]any, error) {
	if _, err := handedFact(e); err != nil {
		return nil, err
	}
	if e.Answers.Masked("renku.token").IsZero() {
		return nil, errSignIn
	}
	return localFacts(e).Map("cluster-row")
}

// asRegistered returns an adopter for the value of a field of the cluster in Renku. The answer
// is left empty if the field is not set.
func asRegistered(field string) steps.Adopter {
	return func(_ context.Context, e steps.Env) (any, string, error) {
		row, err := adoptRow(e)
		if err != nil {
			return nil, "", err
		}
		from := "the cluster in Renku, " + field
		switch v := row[field].(type) {
		case nil:
			return steps.LeftEmpty, from, nil
		case float64:
			return int(math.Round(v)), from, nil
		default:
			return v, from, nil
		}
	}
}

// registeredClass returns an adopter for a StorageClass or IngressClass that Renku names for
// sessions. It does not adopt a class that does not exist on the remote cluster; a check reports
// it.
func registeredClass(field string) steps.Adopter {
	gvr := check.StorageClasses
	if field == "session_ingress_class_name" {
		gvr = check.IngressClasses
	}
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		v, from, err := asRegistered(field)(ctx, e)
		name, _ := v.(string)
		if err != nil || name == "" {
			return v, from, err
		}
		if _, err := e.Cluster.Get(ctx, gvr, "", name); apierrors.IsNotFound(err) {
			return nil, "", fmt.Errorf(
				"the cluster in Renku has %s %s, which does not exist on the %s cluster", field, name, e.SideName(),
			)
		} else if err != nil {
			return nil, "", err
		}
		return v, from, nil
	}
}

// registeredAddress returns an adopter for a part of the sessions' address. If Renku's login
// allows only another host, the registered address does not work. It is then not adopted, and a
// check reports it.
func registeredAddress(field string) steps.Adopter {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		row, err := adoptRow(e)
		if err != nil {
			return nil, "", err
		}
		host := textOf(row, "session_host")
		if let, err := localFacts(e).Text("redirect-host"); err == nil && let != host {
			return nil, "", fmt.Errorf("the cluster in Renku has session_host %s, but Renku's login allows %s", host, let)
		}
		return asRegistered(field)(ctx, e)
	}
}

// adoptFramed returns whether the registered annotations enable CORS, which only sessions in a
// frame require.
func adoptFramed(_ context.Context, e steps.Env) (any, string, error) {
	row, err := adoptRow(e)
	if err != nil {
		return nil, "", err
	}
	notes, _ := row[fieldNotes].(map[string]any)
	return notes[enableCORS] == "true", "the cluster in Renku, " + fieldNotes, nil
}

// adoptAnnotations returns the registered annotations that carrick does not set itself. If
// carrick sets an annotation to another value, the plan shows the difference.
func adoptAnnotations(_ context.Context, e steps.Env) (any, string, error) {
	row, err := adoptRow(e)
	if err != nil {
		return nil, "", err
	}
	ours := generated(nginxController, "", true, true)
	notes, _ := row[fieldNotes].(map[string]any)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		if _, mine := ours[key]; !mine {
			out = append(out, fmt.Sprintf("%s=%v", key, notes[key]))
		}
	}
	if len(out) == 0 {
		return nil, "", nil
	}
	return out, "the cluster in Renku, " + fieldNotes, nil
}

// adoptPool returns the only pool of the cluster, parsed and as Renku's API returns it.
func adoptPool(ctx context.Context, e steps.Env) (pool, map[string]any, error) {
	if _, err := adoptRow(e); err != nil {
		return pool{}, nil, err
	}
	id, err := localFacts(e).Text("cluster-id")
	if err != nil {
		return pool{}, nil, err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return pool{}, nil, err
	}
	of, err := poolsOf(ctx, api, id)
	if err != nil {
		return pool{}, nil, err
	}
	switch len(of) {
	case 0:
		return pool{}, nil, steps.Absent("no pool uses that cluster")
	case 1:
		var raw map[string]any
		_, err := api.JSON(ctx, "GET", fmt.Sprintf("/resource_pools/%d", of[0].ID), nil, &raw)
		return of[0], raw, err
	}
	var names []string
	for _, p := range of {
		names = append(names, fmt.Sprintf("%d %q", p.ID, p.Name))
	}
	return pool{}, nil, fmt.Errorf(
		"the pools %s all use that cluster: answer pool.spec with the right one", strings.Join(names, ", "),
	)
}

// adoptSpec describes the existing pool. If the default describes the same pool, it returns the
// default.
func adoptSpec(ctx context.Context, e steps.Env) (any, string, error) {
	stands, raw, err := adoptPool(ctx, e)
	if err != nil {
		return nil, "", err
	}
	from := fmt.Sprintf("pool %d in Renku", stands.ID)
	if usual, _ := examplePool(e); usual != nil {
		d, err := readPool([]byte(fmt.Sprint(usual)))
		if err == nil && len(d.faults) == 0 && d.Name == stands.Name && len(poolDifferences(d.pool, stands)) == 0 {
			return usual, from, nil
		}
	}
	out := only(raw, poolFields)
	delete(out, "cluster_id")
	if q, ok := raw["quota"].(map[string]any); ok {
		out["quota"] = only(q, quotaFields)
	}
	classes, _ := raw["classes"].([]any)
	list := make([]any, 0, len(classes))
	for _, c := range classes {
		one, _ := c.(map[string]any)
		list = append(list, only(one, classFields))
	}
	out["classes"] = list
	text, err := yaml.Marshal(out)
	return string(text), from, err
}

// only returns the entries of m that are known fields and have a value.
func only(m map[string]any, fields map[string]poolField) map[string]any {
	out := map[string]any{}
	for key, v := range m {
		if _, known := fields[key]; known && v != nil {
			out[key] = v
		}
	}
	return out
}

func adoptMembers(ctx context.Context, e steps.Env) (any, string, error) {
	stands, _, err := adoptPool(ctx, e)
	if err != nil {
		return nil, "", err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return nil, "", err
	}
	have, err := members(ctx, api, stands.ID)
	if err != nil || len(have) == 0 {
		return nil, "", err
	}
	var out []string
	for _, m := range have {
		typed := m.Type + ":" + m.ID
		if roles := memberRoles[m.Type]; len(roles) > 0 && m.Role != roles[0] {
			typed += ":" + m.Role
		}
		out = append(out, typed)
	}
	return out, fmt.Sprintf("the members of pool %d in Renku", stands.ID), nil
}

func adoptArch(ctx context.Context, e steps.Env) (any, string, error) {
	stands, _, err := adoptPool(ctx, e)
	arch := strings.TrimPrefix(stands.Platform, "linux/")
	if err != nil || arch == "" {
		return nil, "", err
	}
	return arch, fmt.Sprintf("the platform of pool %d in Renku", stands.ID), nil
}
