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

// Mint generates secret values once and stores them in a Secret of the cluster. Examples are a key pair, a certificate
// or a password. If the Secret already has all keys, Mint generates nothing. It then only reconciles labels,
// annotations and the type, if the asset sets them.
type Mint struct {
	File   string   // the asset contains one Secret without data
	Values Values   // computed values for ${values.name}
	Keys   []string // the keys that a complete Secret has
	// Make returns the value of each key.
	Make func(context.Context, steps.Env) (map[string]masked.Value, error)
}

// Asset returns the manifest of the Secret without its data.
func (m Mint) Asset() Manifest { return Manifest{File: m.File, Values: m.Values} }

// Plan creates the Secret if the Secret or one of its keys is missing.
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
		p.Note = "exists, but carrick did not create it, so its creator knows the values. carrick uses it unchanged"
	case p.Verb == steps.Leave:
		p.Note = "exists; its values are generated only once"
	}
	return steps.Change{Items: []steps.Item{p.Item}, Permissions: p.rights}, nil
}

// Do generates all missing values at once. If one fails, it writes none.
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
			"%s has some of its keys but not %v; carrick does not complete a partial Secret: delete the Secret, or add the "+
				"missing keys",
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

// PlanUndo finds the Secret by its ownership label or its inventory entry.
func (m Mint) PlanUndo(ctx context.Context, env steps.Env) (steps.Change, error) {
	return m.Asset().PlanUndo(ctx, env)
}

// Undo deletes the Secret if this link created it.
func (m Mint) Undo(ctx context.Context, env steps.Env, say steps.Progress) error {
	return m.Asset().Undo(ctx, env, say)
}

func (m Mint) minted() []string { return m.Keys }

// look renders the Secret and returns which of its keys are missing. A complete Secret includes its existing data, so
// that applying it removes none. If another user created the Secret, others is true.
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
