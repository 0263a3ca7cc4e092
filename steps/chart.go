package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
)

// Chart installs a Helm chart. A release that stands in the wanted version is
// left alone where somebody else made it, and shared where another link did;
// the last link out uninstalls it.
type Chart struct {
	Release   string // its name; may hold placeholders: "${answers.release}"
	Namespace string // where it stands, and must be there; the same
	Chart     string // the chart's name
	// Source is a repository's URL, an oci:// reference, or a folder or file.
	Source  func(context.Context, Env) (chart.Source, error)
	Version func(context.Context, Env) (string, error)
	// Values go over the chart's defaults; nil: none do. A cluster.Masked among
	// them is secret, and shown nowhere.
	Values  func(context.Context, Env) (map[string]any, error)
	Timeout time.Duration // until all is ready; 0: 5 min
}

// wanted is the request for a release, with its values as they may be shown.
type wanted struct {
	chart.Request
	open    map[string]any // values, secrets hidden
	secrets []string
}

// want resolves names, version and values.
func (c Chart) want(ctx context.Context, env Env) (wanted, error) {
	var w wanted
	var err error
	if w.Name, w.Namespace, err = c.at(ctx, env); err != nil {
		return w, err
	}
	w.Chart, w.Timeout, w.Manager, w.TakeOver = c.Chart, c.Timeout, manager(env), env.Apply.TakeOver
	w.Labels = map[string]string{mark(env.Link): env.Action}
	w.Annotations = map[string]string{createdBy: env.Link}
	if w.Source, err = c.Source(ctx, env); err != nil {
		return w, fmt.Errorf("where chart %s comes from: %w", c.Chart, err)
	}
	if w.Version, err = c.Version(ctx, env); err != nil {
		return w, fmt.Errorf("which version of chart %s: %w", c.Chart, err)
	}
	if c.Values != nil {
		values, err := c.Values(ctx, env)
		if err != nil {
			return w, fmt.Errorf("values of chart %s: %w", c.Chart, err)
		}
		w.Values, w.open, w.secrets = revealed(values)
	}
	return w, env.use.sound()
}

// at is the release's name and namespace.
func (c Chart) at(ctx context.Context, env Env) (name, namespace string, err error) {
	if env.Cluster == nil {
		return "", "", fmt.Errorf("chart %s: no cluster stands on the %s", c.Chart, env.SideName())
	}
	out := [2]string{c.Release, c.Namespace}
	for i, text := range out {
		v, err := scope{env: env}.scalar(ctx, text)
		if err != nil {
			return "", "", fmt.Errorf("chart %s: %w", c.Chart, err)
		}
		s, ok := v.(string)
		if !ok || s == "" {
			return "", "", fmt.Errorf("chart %s: %q comes out as no name", c.Chart, text)
		}
		out[i] = s
	}
	return out[0], out[1], nil
}

// standing is what is to be done with a release as it stands.
type standing struct {
	*chart.Work
	alone     string             // why it is left alone; "": it is not
	note      string             // what to say of it
	conflicts []cluster.Conflict // whose it is
	joins     bool               // another link has it, and this one will, too
}

// stand looks at the release. One that is stuck and not ours is an error.
func (c Chart) stand(ctx context.Context, env Env, want wanted) (standing, error) {
	w, err := chart.Prepare(ctx, env.Cluster, want.Request)
	s := standing{Work: w}
	if errors.Is(err, cluster.ErrNotServed) {
		return s, Absent("%s", err)
	}
	if err != nil {
		return s, err
	}
	if w.Kind == chart.Fresh || want.Ours(w.Old) {
		return s, nil
	}
	others := sortedKeys(otherLinks(w.Old.Labels, env.Link))
	switch {
	case w.Kind == chart.Renew:
		return s, w.Stuck()
	case w.Kind == chart.Keep && len(others) > 0:
		s.joins, s.note = true, "link "+strings.Join(others, ", ")+" made it; this link uses it, too"
	case len(others) > 0:
		s.note = fmt.Sprintf("link %s has it in version %s with other values or in another version", strings.Join(others, ", "), w.Old.Version)
		s.conflicts = []cluster.Conflict{{Manager: "link " + others[0], Field: "version and values"}}
	case w.Old.SameVersion(w.Version):
		s.alone = "somebody else made it, in the version that is wanted: it is left alone, with the values that it has"
	default:
		s.note = "somebody else made it, in version " + w.Old.Version
		s.conflicts = []cluster.Conflict{{Manager: "Helm", Field: "version"}}
	}
	return s, nil
}

// Plan shows the release and every object that it would make.
func (c Chart) Plan(ctx context.Context, env Env) (Change, error) {
	want, err := c.want(ctx, env)
	if err != nil {
		return Change{}, err
	}
	s, err := c.stand(ctx, env, want)
	if err != nil {
		return Change{}, err
	}
	if s.alone != "" {
		return Change{Items: []Item{{Verb: Leave, What: releaseAt(want.Namespace, want.Name), Note: s.alone}}}, nil
	}
	var ch Change
	first, err := c.planRelease(ctx, env, want, s, &ch)
	if err != nil {
		return Change{}, err
	}
	ch.Items = append(ch.Items, first)
	for _, o := range append(s.CRDs[:len(s.CRDs):len(s.CRDs)], s.Objects...) {
		if err := planPart(ctx, env, s.Work, o, &ch); err != nil {
			return ch, err
		}
	}
	if s.joins {
		if err := planDefinitions(ctx, env, s.Old, &ch); err != nil {
			return ch, err
		}
	}
	for _, o := range s.Hooks {
		ch.Items = append(ch.Items, Item{Verb: Run, What: describe(o), Note: "runs before or after the rest", Hash: hash(Run, describe(o))})
		if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
			ch.Rights = append(ch.Rights, rightsTo(o, gvr)...)
			ch.Rights = append(ch.Rights, rightToDelete(o, gvr))
		}
	}
	for _, o := range s.Gone {
		ch.Items = append(ch.Items, Item{Verb: Delete, What: describe(o), Note: "the new version has it no more", Hash: hash(Delete, describe(o))})
		if gvr, _, err := env.Cluster.Resource(ctx, o.GroupVersionKind()); err == nil {
			ch.Rights = append(ch.Rights, rightToDelete(o, gvr))
		}
	}
	hide(ch.Items, want.secrets)
	return ch, nil
}

// planRelease is the release itself: chart, version, values.
func (c Chart) planRelease(ctx context.Context, env Env, want wanted, s standing, ch *Change) (Item, error) {
	item := Item{What: releaseAt(want.Namespace, want.Name), Note: s.note, Conflicts: s.conflicts}
	if s.Kind == chart.Keep {
		record, err := s.Record()
		if err != nil {
			return item, err
		}
		p, err := planObject(ctx, env, record)
		if err != nil {
			return item, err
		}
		ch.Rights = append(ch.Rights, p.rights...)
		item.Verb, item.Hash, item.Refused = p.Verb, p.Hash, p.Refused
		if !s.joins {
			item.Note = p.Note
		}
		return item, nil
	}
	item.Verb = Update
	if s.Kind == chart.Fresh {
		item.Verb = Create
	}
	if s.Kind == chart.Renew {
		item.Note = "it stands at " + s.Old.Status + " and is installed again"
	}
	notes := append([]string{item.Note}, s.Left...)
	if len(s.Unknown) > 0 {
		notes = append(notes, "the chart does not know these values: "+strings.Join(s.Unknown, ", "))
	}
	item.Note = strings.TrimPrefix(strings.Join(notes, "; "), "; ")
	item.Diff = cluster.Diff(before2(s, want), shownRelease(c.Chart, s.Version, want.open))
	item.Hash = hash(item.Verb, item.What, c.Chart, s.Version, want.Source, want.Values)
	record := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	record.SetNamespace(want.Namespace)
	gvr, _, err := env.Cluster.Resource(ctx, record.GroupVersionKind())
	ch.Rights = append(ch.Rights, rightsTo(record, gvr)...)
	return item, err
}

// planPart is one object of the release. What a template makes at random is
// another at each rendering, and no other plan.
func planPart(ctx context.Context, env Env, w *chart.Work, o *unstructured.Unstructured, ch *Change) error {
	p, err := planObject(ctx, env, o)
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		p.Verb, p.Note, err = Create, "its kind comes with this chart", nil
		p.Diff = cluster.Diff(nil, o)
	}
	if err != nil {
		return err
	}
	if w.Kind != chart.Keep && p.Verb.Changes() {
		p.Hash = hash(p.Verb, p.What, p.Conflicts)
	}
	ch.Items = append(ch.Items, p.Item)
	ch.Rights = append(ch.Rights, p.rights...)
	return nil
}

// Do installs, upgrades or repairs the release and waits until it is ready.
func (c Chart) Do(ctx context.Context, env Env, say Progress) error {
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
	want.Write = func(ctx context.Context, o *unstructured.Unstructured) error { return doObject(ctx, env, o, say) }
	want.Remove = remover(env, say)
	err = chart.Install(ctx, env.Cluster, want.Request, func(text string) { say.Say("%s", scrubber(want.secrets).Replace(text)) })
	if err != nil || !s.joins {
		return scrubbed(err, want.secrets)
	}
	crds, err := sharedDefinitions(ctx, env, s.Old)
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
