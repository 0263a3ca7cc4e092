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

var errSignIn = errors.New(
	"only Renku's API has this value, and you are not signed in: pass --sign-in or --secret renku.token=@FILE",
)

// adoptRow returns the cluster's record in Renku. It returns an error if Renku has no kubeconfig
// for the remote cluster, or if the user is not signed in to Renku.
func adoptRow(e steps.Env) (map[string]any, error) {
	if _, err := handedFact(e); err != nil {
		return nil, err
	}
	if e.Answers.Masked("renku.token").IsZero() {
		return nil, errSignIn
	}
	return localFacts(e).Map("cluster-row")
}

// asRegistered returns an adopter that reads the given field of the cluster's record in Renku. If
// the field is not set, the adopted answer is empty.
func asRegistered(field string) steps.Adopter {
	return func(_ context.Context, e steps.Env) (any, string, error) {
		row, err := adoptRow(e)
		if err != nil {
			return nil, "", err
		}
		from := "the cluster in Renku, field " + field
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

// registeredClass returns an adopter for the StorageClass or IngressClass of sessions. The adopter
// returns an error if the class does not exist on the remote cluster.
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

// registeredAddress returns an adopter for the given field of the sessions' address. The adopter
// returns an error if Renku's login allows only another host, because sign-ins at the registered
// host would fail.
func registeredAddress(field string) steps.Adopter {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		row, err := adoptRow(e)
		if err != nil {
			return nil, "", err
		}
		host := textOf(row, "session_host")
		if let, err := localFacts(e).Text("redirect-host"); err == nil && let != host {
			return nil, "", fmt.Errorf("the cluster in Renku has session_host %s, but Renku's login allows only %s", host, let)
		}
		return asRegistered(field)(ctx, e)
	}
}

// adoptFramed returns true if the registered annotations enable CORS. Only sessions in a frame
// require CORS.
func adoptFramed(_ context.Context, e steps.Env) (any, string, error) {
	row, err := adoptRow(e)
	if err != nil {
		return nil, "", err
	}
	notes, _ := row[fieldNotes].(map[string]any)
	return notes[enableCORS] == "true", "the cluster in Renku, field " + fieldNotes, nil
}

// adoptAnnotations returns the registered annotations, except those that carrick generates. If a
// generated annotation has another value in Renku, the plan shows the difference.
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
	return out, "the cluster in Renku, field " + fieldNotes, nil
}

// adoptPool returns the resource pool of the cluster, both parsed and as the JSON object from
// Renku's API. It returns an error unless exactly one pool uses the cluster.
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
		return pool{}, nil, steps.Absent("no resource pool in Renku uses the cluster")
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
		"the pools %s all use the cluster: set pool.spec to the spec of the correct pool", strings.Join(names, ", "),
	)
}

// adoptSpec returns the spec of the existing pool as YAML. If the default spec describes the same
// pool, it returns the default spec, which has comments.
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
