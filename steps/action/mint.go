package action

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/inventory"
)

// Mint generates a secret once and stores it in a Secret of the cluster: a key pair, a certificate, a password. If the
// Secret already has its keys, Mint generates nothing. It then only reconciles labels, annotations and a type that the
// asset names.
type Mint struct {
	File   string   // the asset of one Secret, without data
	Values Values   // computed values of the asset: ${values.name}
	Keys   []string // the keys of a complete Secret
	// Make returns the value of each key.
	Make func(context.Context, steps.Env) (map[string]masked.Value, error)
}

// Asset returns the manifest of the Secret, without its data. A Doer may embed a Mint like a Manifest.
func (m Mint) Asset() Manifest { return Manifest{File: m.File, Values: m.Values} }

// Plan returns Create if the Secret or one of its keys is missing.
func (m Mint) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	obj, missing, others, err := m.look(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	p, err := planObject(ctx, env, obj)
	if err != nil {
		return steps.Change{}, err
	}
	switch {
	case len(missing) > 0:
		p.Note = fmt.Sprintf("%s: generated on this machine and stored only in this Secret", strings.Join(missing, ", "))
	case others:
		p.Note = "exists, and no link of carrick created it: its creator knows the values. It is used unchanged"
	case p.Verb == steps.Leave:
		p.Note = "exists; its values are generated only once"
	}
	return steps.Change{Items: []steps.Item{p.Item}, Permissions: p.rights}, nil
}

// Do generates the missing values, all or none.
func (m Mint) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	obj, missing, _, err := m.look(ctx, env)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		return doObject(ctx, env, obj, say)
	}
	if len(missing) < len(m.Keys) {
		return fmt.Errorf(
			"%s has some of its keys but not %v; carrick does not complete a partial Secret: delete it or complete it",
			inventory.Describe(obj), missing,
		)
	}
	made, err := m.Make(ctx, env)
	if err != nil {
		return fmt.Errorf("generate %s: %w", inventory.Describe(obj), err)
	}
	data := map[string]any{}
	for _, k := range m.Keys {
		v, ok := made[k]
		if !ok {
			return fmt.Errorf("generate %s: no value for key %q", inventory.Describe(obj), k)
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(v.Reveal()))
	}
	obj.Object["data"] = data
	return doObject(ctx, env, obj, say)
}

// PlanUndo finds the Secret by its mark.
func (m Mint) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	return m.Asset().PlanUndo(ctx, env)
}

// Undo deletes the Secret if this link created it.
func (m Mint) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	return m.Asset().Undo(ctx, env, say)
}

// minted returns the keys whose values are generated once.
func (m Mint) minted() []string { return m.Keys }

// look renders the Secret and returns which of its keys are still missing. A complete Secret includes its existing
// data, so that applying it removes none. others reports whether it exists and carrick did not create it.
func (m Mint) look(
	ctx context.Context, env steps.Env,
) (_ *unstructured.Unstructured, missing []string, others bool, _ error) {
	objs, err := m.Asset().Objects(ctx, env)
	if err != nil {
		return nil, nil, false, err
	}
	if len(objs) != 1 || objs[0].GetKind() != "Secret" {
		return nil, nil, false, fmt.Errorf("asset %s: must contain exactly one Secret", m.File)
	}
	live, err := env.Cluster.Fetch(ctx, objs[0])
	if apierrors.IsNotFound(err) {
		return objs[0], m.Keys, false, nil
	}
	if err != nil {
		return nil, nil, false, fmt.Errorf("read %s: %w", inventory.Describe(objs[0]), err)
	}
	data := map[string]any{}
	for _, k := range m.Keys {
		v, _, _ := unstructured.NestedString(live.Object, "data", k)
		if v == "" {
			missing = append(missing, k)
		}
		data[k] = v
	}
	if len(missing) == 0 {
		objs[0].Object["data"] = data
	}
	by, err := inventory.Creator(ctx, env, live)
	return objs[0], missing, by == "", err
}
