package steps

import (
	"context"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
)

// Mint makes a secret once and keeps it in a Secret of the cluster: a key
// pair, a certificate, a password. Where the Secret has its keys already
// nothing is made, ever again.
type Mint struct {
	File string   // the asset of one Secret, without data
	Keys []string // the keys that a whole Secret has
	// Make gives the value of each key.
	Make func(context.Context, Env) (map[string]cluster.Masked, error)
}

func (m Mint) manifest() Manifest { return Manifest{File: m.File} }

// Plan says create where the Secret or one of its keys is missing.
func (m Mint) Plan(ctx context.Context, env Env) (Change, error) {
	obj, missing, err := m.look(ctx, env)
	if err != nil {
		return Change{}, err
	}
	if len(missing) == 0 {
		return Change{Items: []Item{{Verb: Leave, What: describe(obj), Note: "is there; it is made only once"}}}, nil
	}
	p, err := planObject(ctx, env, obj)
	if err != nil {
		return Change{}, err
	}
	p.Note = fmt.Sprintf("the value of %v is made on this machine and kept only there", missing)
	return Change{Items: []Item{p.Item}, Rights: p.rights}, nil
}

// Do makes the values that are missing, all or none.
func (m Mint) Do(ctx context.Context, env Env, say Progress) error {
	obj, missing, err := m.look(ctx, env)
	if err != nil || len(missing) == 0 {
		return err
	}
	if len(missing) < len(m.Keys) {
		return fmt.Errorf("%s has some of its keys but not %v; carrick does not make half of a pair: delete it or complete it", describe(obj), missing)
	}
	made, err := m.Make(ctx, env)
	if err != nil {
		return fmt.Errorf("make %s: %w", describe(obj), err)
	}
	data := map[string]any{}
	for _, k := range m.Keys {
		v, ok := made[k]
		if !ok {
			return fmt.Errorf("make %s: no value for key %q", describe(obj), k)
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(v.Reveal()))
	}
	obj.Object["data"] = data
	return doObject(ctx, env, obj, say)
}

// PlanUndo finds the Secret by its mark.
func (m Mint) PlanUndo(ctx context.Context, env Env) (Change, error) {
	return m.manifest().PlanUndo(ctx, env)
}

// Undo deletes the Secret, if this link made it.
func (m Mint) Undo(ctx context.Context, env Env, say Progress) error {
	return m.manifest().Undo(ctx, env, say)
}

func (m Mint) look(ctx context.Context, env Env) (*unstructured.Unstructured, []string, error) {
	objs, err := m.manifest().objects(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	if len(objs) != 1 || objs[0].GetKind() != "Secret" {
		return nil, nil, fmt.Errorf("asset %s: one Secret belongs here", m.File)
	}
	live, err := env.Cluster.Fetch(ctx, objs[0])
	if apierrors.IsNotFound(err) {
		return objs[0], m.Keys, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", describe(objs[0]), err)
	}
	var missing []string
	for _, k := range m.Keys {
		if v, _, _ := unstructured.NestedString(live.Object, "data", k); v == "" {
			missing = append(missing, k)
		}
	}
	return objs[0], missing, nil
}
