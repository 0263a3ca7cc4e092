package action

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/chart"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/inventory"
)

// Chart installs a Helm chart. If another user's release already has the expected version, Chart keeps it unchanged. If
// another link created the release, both links share it. The release is uninstalled when its last link is undone.
type Chart struct {
	Release   string // can contain placeholders such as "${answers.release}"
	Namespace string // must exist; can contain placeholders
	Chart     string
	// Source is the URL of a repository, an oci:// reference, or the path of a directory or file.
	Source  func(context.Context, steps.Env) (chart.Source, error)
	Version func(context.Context, steps.Env) (string, error)
	// Values override the chart's defaults. Values is nil if there are no overrides. A masked.Value is secret and never
	// shown.
	Values  func(context.Context, steps.Env) (map[string]any, error)
	Timeout time.Duration // how long to wait until all resources are ready; 0 means 5 min
}

type wanted struct {
	chart.Request
	open    map[string]any // values with secrets hidden
	secrets []string
}

func (c Chart) want(ctx context.Context, env steps.Env) (wanted, error) {
	var w wanted
	var err error
	if w.Name, w.Namespace, err = c.at(ctx, env); err != nil {
		return w, err
	}
	w.Chart, w.Timeout, w.Manager, w.TakeOver = c.Chart, c.Timeout, env.Manager(), env.Apply.TakeOver
	w.Labels = map[string]string{steps.LinkLabel(env.Link): env.Action}
	w.Annotations = map[string]string{inventory.CreatedByAnnotation: env.Link}
	req := w.Request
	w.Believes = func(ctx context.Context, r *chart.Release) (bool, error) {
		return matchesInventory(ctx, env, r, req.Ours(r))
	}
	if w.Source, err = c.Source(ctx, env); err != nil {
		return w, fmt.Errorf("source of chart %s: %w", c.Chart, err)
	}
	if w.Version, err = c.Version(ctx, env); err != nil {
		return w, fmt.Errorf("version of chart %s: %w", c.Chart, err)
	}
	if c.Values != nil {
		values, err := c.Values(ctx, env)
		if err != nil {
			return w, fmt.Errorf("values of chart %s: %w", c.Chart, err)
		}
		w.Values, w.open, w.secrets = revealed(values)
	}
	return w, env.Sound()
}

func (c Chart) at(ctx context.Context, env steps.Env) (name, namespace string, err error) {
	if env.Cluster == nil {
		return "", "", fmt.Errorf("chart %s: the %s is not a cluster", c.Chart, env.SideName())
	}
	out := [2]string{c.Release, c.Namespace}
	for i, text := range out {
		v, err := scope{env: env}.scalar(ctx, text)
		if err != nil {
			return "", "", fmt.Errorf("chart %s: %w", c.Chart, err)
		}
		s, ok := v.(string)
		if !ok || s == "" {
			return "", "", fmt.Errorf("chart %s: %q does not evaluate to a name", c.Chart, text)
		}
		out[i] = s
	}
	return out[0], out[1], nil
}

// Plan shows the release and every object that it would create.
func (c Chart) Plan(ctx context.Context, env steps.Env) (steps.Change, error) {
	want, err := c.want(ctx, env)
	if err != nil {
		return steps.Change{}, err
	}
	s, err := c.stand(ctx, env, want)
	if apierrors.IsForbidden(err) { // reported later with all other missing permissions
		item := steps.Item{
			Verb: steps.Update, What: releaseAt(want.Namespace, want.Name), Note: "cannot be read: " + failure.Explain(err),
			Refused: true,
		}
		return steps.Change{Items: []steps.Item{item}, Permissions: recordPermissions(want.Namespace)}, nil
	}
	if err != nil {
		return steps.Change{}, scrubbed(err, want.secrets)
	}
	if s.alone != "" {
		return steps.Change{
			Items: []steps.Item{{Verb: steps.Leave, What: releaseAt(want.Namespace, want.Name), Note: s.alone}},
		}, nil
	}
	var ch steps.Change
	first, err := c.planRelease(ctx, env, want, s, &ch)
	if err != nil {
		return steps.Change{}, err
	}
	ch.Items = append(ch.Items, first)
	if err := s.planParts(ctx, env, &ch); err != nil {
		return ch, err
	}
	if s.joins {
		if err := planDefinitions(ctx, env, s.others, &ch); err != nil {
			return ch, err
		}
	}
	if err := s.planRest(ctx, env, &ch); err != nil {
		return ch, err
	}
	hide(ch.Items, want.secrets)
	return ch, nil
}

// Do installs, upgrades or repairs the release and waits until it is ready.
func (c Chart) Do(ctx context.Context, env steps.Env, say steps.Progress) error {
	want, err := c.want(ctx, env)
	if err != nil {
		return err
	}
	s, err := c.stand(ctx, env, want)
	switch {
	case err != nil:
		return err
	case s.alone != "":
		say.Say("%s: %s", releaseAt(want.Namespace, want.Name), s.alone)
		return nil
	case len(s.conflicts) > 0 && !env.Apply.TakeOver:
		return &ConflictError{releaseAt(want.Namespace, want.Name), s.conflicts}
	}
	if s.theirs {
		want.Request = asHelm(want.Request)
		say.Did(steps.Update, releaseAt(want.Namespace, want.Name), steps.Fingerprint(want.Chart, want.Version, want.Values))
	} else {
		want.Write = func(ctx context.Context, o *unstructured.Unstructured) error {
			if inventory.IsRecord(o.GetKind(), o.GetName()) {
				if err := s.enterRecord(ctx, env, want, o, say); err != nil {
					return err
				}
			}
			if s.Kind == chart.Keep || len(s.others) == 0 {
				return doObject(ctx, env, o, say)
			}
			return writeShared(ctx, env, s.others, o, say)
		}
	}
	want.Remove = func(ctx context.Context, o *unstructured.Unstructured) (string, error) {
		return dropped(ctx, env, s.others, o, say)
	}
	err = chart.Install(
		ctx, env.Cluster, want.Request, func(text string) { say.Say("%s", scrubber(want.secrets).Replace(text)) },
	)
	if err != nil || !s.joins {
		return scrubbed(err, want.secrets)
	}
	crds, err := sharedDefinitions(ctx, env, s.others)
	if err != nil {
		return err
	}
	for _, o := range crds {
		if err := doObject(ctx, env, o, say); err != nil {
			return err
		}
	}
	return nil
}

func releaseAt(namespace, name string) string { return "Release " + namespace + "/" + name }
