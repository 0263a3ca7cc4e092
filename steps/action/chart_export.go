package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"carrick/cluster/chart"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/inventory"
)

// Export returns the objects as helm template renders them. Applying them requires neither Helm nor the chart's source.
// The export also contains the values and the equivalent helm command. If another user's Helm release has the same
// name, Helm manages its objects, and the export contains only the command.
func (c Chart) Export(ctx context.Context, env steps.Env) ([]Exported, error) {
	want, err := c.want(ctx, env)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if c.Values != nil {
		if given, err = c.Values(ctx, env); err != nil {
			return nil, err
		}
	}
	open, secret := openValues(given, "")
	content, err := yaml.Marshal(open)
	if err != nil {
		return nil, fmt.Errorf("values of chart %s: %w", c.Chart, err)
	}
	out := []Exported{{Path: env.Action + ".values.yaml", Content: content}}
	if len(secret) > 0 {
		out = append(out, Exported{Left: "values of chart " + c.Chart + ": " + strings.Join(secret, ", ")})
	}
	theirs, note, err := c.helmKeeps(ctx, env, want)
	if err != nil {
		return nil, scrubbed(err, want.secrets)
	}
	if theirs {
		return append(out, Exported{Note: note}, Exported{Hand: helmCommand(env, want)}), nil
	}
	objects, err := c.template(ctx, env, want)
	if err != nil {
		return nil, scrubbed(err, want.secrets)
	}
	notes := []string{fmt.Sprintf("chart %s %s of %s, release %s in namespace %s, rendered with files/%s/%s.values.yaml",
		c.Chart, want.Version, want.Source, want.Name, want.Namespace, env.Side, env.Action)}
	if note != "" {
		notes = append(notes, note)
	}
	notes = append(
		notes,
		fmt.Sprintf(
			"to manage the release with Helm instead, remove %s.* from %s/kustomization.yaml and run:\n%s", env.Action, env.Side,
			helmCommand(env, want),
		),
	)
	for _, n := range notes {
		objects = append(objects, Exported{Note: n})
	}
	return append(objects, out...), nil
}

// helmKeeps reports whether the release exists and was not created by carrick.
func (c Chart) helmKeeps(ctx context.Context, env steps.Env, want wanted) (theirs bool, note string, err error) {
	at := releaseAt(want.Namespace, want.Name)
	r, err := chart.Find(ctx, env.Cluster, want.Namespace, want.Name)
	switch {
	case errors.Is(err, chart.ErrNoRelease):
		return false, "", nil
	case apierrors.IsForbidden(err):
		return false, "cannot check whether Helm manages " + at + ": " + failure.Explain(err), nil
	case err != nil:
		return false, "", err
	case r.Status == chart.Uninstalled || want.Ours(r) || len(inventory.OtherLinks(r.Labels, env.Link)) > 0:
		return false, "", nil
	}
	return true, fmt.Sprintf("Helm manages %s, which carrick did not create: its objects are not in this export", at), nil
}

const byChart = ": the chart creates it; create it manually, or manage the release with Helm"

func (c Chart) template(ctx context.Context, env steps.Env, want wanted) ([]Exported, error) {
	made, err := chart.Template(ctx, env.Cluster, want.Request)
	if errors.Is(err, failure.ErrNotServed) {
		return nil, steps.Absent("%s", err)
	}
	if err != nil {
		return nil, err
	}
	var out []Exported
	for _, o := range slices.Concat(made.CRDs, made.Objects) {
		switch {
		case withheld(o):
			data, _ := o.Object["data"].(map[string]any)
			out = append(out, Exported{Left: withKeys(inventory.Describe(o), slices.Sorted(maps.Keys(data))) + byChart})
		case holdsSecret(o.Object, want.secrets):
			out = append(out, Exported{Left: inventory.Describe(o) + ", which contains a secret value" + byChart})
		default:
			if o.GroupVersionKind() != crdKind {
				o.Object = withoutNulls(o.Object)
			}
			out = append(out, Exported{Object: o})
		}
	}
	var hooks []string
	for _, o := range made.Hooks {
		hooks = append(hooks, inventory.Describe(o))
	}
	if len(hooks) > 0 {
		out = append(out, Exported{Note: "hooks, which only Helm runs: " + strings.Join(hooks, ", ")})
	}
	if len(made.Unknown) > 0 {
		out = append(out, Exported{Note: "values unknown to the chart: " + strings.Join(made.Unknown, ", ")})
	}
	return out, nil
}

// withoutNulls removes the nulls that a template rendered. In a server-side apply, a null claims ownership of the
// field.
func withoutNulls(m map[string]any) map[string]any {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			withoutNulls(v)
		case []any:
			for _, inner := range v {
				if im, ok := inner.(map[string]any); ok {
					withoutNulls(im)
				}
			}
		}
	}
	return m
}

func helmCommand(env steps.Env, want wanted) string {
	from := steps.Quoted(want.Source.String())
	switch {
	case strings.HasPrefix(string(want.Source), "oci://"):
		from += "/" + steps.Quoted(want.Chart) + " --version " + steps.Quoted(want.Version)
	case strings.Contains(string(want.Source), "://"):
		from = steps.Quoted(want.Chart) + " --repo " + from + " --version " + steps.Quoted(want.Version)
	}
	return fmt.Sprintf("%s upgrade --install %s %s -n %s -f files/%s/%s.values.yaml",
		env.Helm(), steps.Quoted(want.Name), from, steps.Quoted(want.Namespace), env.Side, env.Action)
}
