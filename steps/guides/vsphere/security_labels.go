package vsphere

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// Namespace and key of the labels file, the ConfigMap from which Kubeflow's profile controller
// reads the labels of profile namespaces. The ConfigMap's name ends in a hash from kustomize
// (kubeflow/manifests: applications/profiles; kubeflow/dashboard:
// components/profile-controller/manifests).
const (
	kubeflowSpace = "kubeflow"
	labelsKey     = "namespace-labels.yaml"
)

var labelsNames = []string{"namespace-labels-data", "profiles-namespace-labels-data"}

// namespaceLabels is the current labels file.
type namespaceLabels struct {
	namespace, name string
	text            string
	labels          map[string]string
	broken          error    // why the file cannot be parsed; labels is then nil
	others          []string // names of ConfigMaps from earlier deployments
	marked          bool     // this link has changed the file
}

func (f namespaceLabels) String() string { return f.namespace + "/" + f.name }

// labelsFile returns the labels file. If several such ConfigMaps exist, it returns the one that the controller's pods
// mount, or else the newest. Each deployment of the manifests leaves the previous ConfigMap behind.
func labelsFile(ctx context.Context, e steps.Env) (namespaceLabels, error) {
	var maps []*corev1.ConfigMap
	var deployments []*appsv1.Deployment
	err := check.Together(
		func() (err error) {
			maps, err = check.List[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, kubeflowSpace, cluster.Selector{})
			return err
		},
		func() (err error) {
			deployments, err = check.List[appsv1.Deployment](
				ctx, e.Cluster, check.Deployments, kubeflowSpace, cluster.Selector{},
			)
			return err
		},
	)
	if err != nil {
		return namespaceLabels{}, err
	}
	maps = slices.DeleteFunc(maps, func(m *corev1.ConfigMap) bool {
		_, has := m.Data[labelsKey]
		return !has ||
			!slices.ContainsFunc(
				labelsNames, func(name string) bool { return m.Name == name || strings.HasPrefix(m.Name, name+"-") },
			)
	})
	if len(maps) == 0 {
		return namespaceLabels{}, steps.Absent(
			"no ConfigMap %s-… with key %s exists in namespace %s (Kubeflow's manifests create it)", labelsNames[0], labelsKey,
			kubeflowSpace,
		)
	}
	slices.SortStableFunc(maps, func(a, b *corev1.ConfigMap) int {
		switch x, y := mounted(deployments, a.Name), mounted(deployments, b.Name); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	m := maps[0]
	out := namespaceLabels{
		namespace: m.Namespace, name: m.Name, text: m.Data[labelsKey], marked: ofThisLink(e, m.Labels),
	}
	for _, other := range maps[1:] {
		out.others = append(out.others, other.Name)
	}
	out.labels, out.broken = readLabels(out.text)
	return out, nil
}

func mounted(deployments []*appsv1.Deployment, name string) bool {
	return slices.ContainsFunc(deployments, func(d *appsv1.Deployment) bool {
		return slices.ContainsFunc(
			d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == name },
		)
	})
}

// readLabels parses the file as the controller does, with yaml.v2 into a map of strings. Unquoted
// true and 1 are therefore valid label values
// (components/profile-controller/controllers/profile_controller.go, readDefaultLabelsFromFile).
func readLabels(text string) (map[string]string, error) {
	var out map[string]string
	err := yaml.Unmarshal([]byte(text), &out)
	return out, err
}

func learnLabelsFile(ctx context.Context, e steps.Env) (any, error) {
	f, err := labelsFile(ctx, e)
	if err != nil {
		return nil, err
	}
	return f.String(), nil
}

// levelLabels returns the labels that carrick adds to a labels file without the configured pod security level. These
// labels also make the API server warn users whose pods violate the restricted level.
func levelLabels(e steps.Env) map[string]string {
	return map[string]string{
		check.EnforceLabel:                           level(e),
		"pod-security.kubernetes.io/enforce-version": "latest",
		"pod-security.kubernetes.io/warn":            check.Restricted,
		"pod-security.kubernetes.io/audit":           check.Restricted,
	}
}

// withLevel returns text, the content of the labels file, with the labels in want. Everything else is unchanged.
func withLevel(text string, want map[string]string) (string, error) {
	was, err := readLabels(text)
	if err != nil {
		return "", err
	}
	if was[check.EnforceLabel] == want[check.EnforceLabel] {
		return text, nil
	}
	return setLabels(text, anyLabels(want))
}

// setLabels returns text, the content of the labels file, with the given labels. It removes those whose value is nil.
// Everything else is unchanged.
func setLabels(text string, labels map[string]any) (string, error) {
	all, err := readLabels(text)
	if err != nil {
		return "", err
	}
	if all == nil {
		all = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value, ok := labels[key].(string)
		if now, has := all[key]; has == ok && now == value {
			continue
		}
		if text, err = action.SetYAML(text, key, labels[key]); err != nil {
			return "", err
		}
		if all[key] = value; !ok {
			delete(all, key)
		}
	}
	if now, err := readLabels(text); err != nil || !maps.Equal(now, all) {
		return "", errors.New("the labels cannot be set without changing other keys")
	}
	return text, nil
}

func anyLabels(labels map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range labels {
		out[key] = value
	}
	return out
}

type labelsDoer struct{ action.Edit }

func editsLabels() labelsDoer {
	return labelsDoer{action.Edit{
		Manifest: action.Manifest{File: "profile-labels.yaml"},
		Key:      labelsKey,
		At: func(ctx context.Context, e steps.Env) (string, string, error) {
			f, err := labelsFile(ctx, e)
			return f.namespace, f.name, err
		},
		Text: func(ctx context.Context, e steps.Env) (string, error) {
			f, err := labelsFile(ctx, e)
			if err != nil {
				return "", err
			}
			text, err := withLevel(f.text, levelLabels(e))
			if err != nil {
				return "", fmt.Errorf(
					"%s of ConfigMap %s: %w; set it manually: %s", labelsKey, f, err, editLabels(e, f.namespace, f.name),
				)
			}
			return text, nil
		},
		Settings: func(_ context.Context, e steps.Env, _ string) (map[string]any, error) {
			return anyLabels(levelLabels(e)), nil
		},
		Read: func(text string) (map[string]any, error) {
			labels, err := readLabels(text)
			return anyLabels(labels), err
		},
		Set:   setLabels,
		Again: "a deployment of Kubeflow's manifests",
		Hand: func(ctx context.Context, e steps.Env) string {
			f, err := labelsFile(ctx, e)
			if err != nil {
				return editLabels(e, kubeflowSpace, labelsNames[0]+"-HASH")
			}
			return editLabels(e, f.namespace, f.name)
		},
	}}
}

func editLabels(e steps.Env, namespace, name string) string {
	return fmt.Sprintf("%s -n %s edit configmap %s", e.Kubectl(), namespace, steps.Quoted(name))
}

// theirs returns the labels file, and reports whether another tool has set the configured pod security level. In that
// case carrick does not manage the level.
func (d labelsDoer) theirs(ctx context.Context, e steps.Env) (namespaceLabels, bool, error) {
	f, err := labelsFile(ctx, e)
	return f, err == nil && f.labels[check.EnforceLabel] == level(e) && !f.marked, err
}

// Do sets the pod security level unless another tool has set it.
func (d labelsDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	_, theirs, err := d.theirs(ctx, e)
	if err != nil || theirs {
		return err
	}
	return d.Edit.Do(ctx, e, say)
}

// Plan adds the note that the next deployment of Kubeflow's manifests overwrites the pod security
// level.
func (d labelsDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	f, theirs, err := d.theirs(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if theirs {
		return left("ConfigMap "+f.String(), "the level is already set"), nil
	}
	c, err := d.Edit.Plan(ctx, e)
	if err == nil && len(c.Items) > 0 && c.Items[0].Verb.Changes() {
		c.Items[0].Note = steps.JoinNotes(
			c.Items[0].Note,
			"the next deployment of Kubeflow's manifests overwrites or replaces the ConfigMap. Set the level in the "+
				"manifests, too (their overlay pss, or carrick export)",
		)
	}
	return c, err
}

// PlanUndo also lists the namespaces that keep the labels, because the profile controller never removes a label.
func (d labelsDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Edit.PlanUndo(ctx, e)
	if err != nil || !slices.ContainsFunc(c.Items, func(it steps.Item) bool { return it.Verb.Changes() }) {
		return c, err
	}
	what, names := "pod security labels of namespaces", "NAME"
	all, err := profileSpaces(ctx, e)
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	if err == nil { // otherwise their names are unknown
		all = slices.DeleteFunc(all, func(ns *corev1.Namespace) bool { return ns.Labels[check.EnforceLabel] != level(e) })
		if len(all) == 0 {
			return c, nil
		}
		what, names = "pod security labels of the namespaces "+check.Some(spaceNames(all)), strings.Join(spaceNames(all), " ")
	}
	c.Items = append(c.Items, steps.Item{
		Verb: steps.Leave, ByOthers: true, What: what,
		Note: fmt.Sprintf(
			"the profile controller adds labels and never removes them. To remove them: %s label namespace %s %s-",
			e.Kubectl(), names, strings.Join(slices.Sorted(maps.Keys(levelLabels(e))), "- "),
		),
	})
	return c, nil
}

// Export returns the labels for the Kubeflow manifests. It exports no ConfigMap, because kustomize
// generates its name with a hash.
func (d labelsDoer) Export(_ context.Context, e steps.Env) ([]action.Exported, error) {
	text := "# For namespace-labels.yaml of Kubeflow's profile controller, in addition to its labels.\n"
	want := levelLabels(e)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		text += fmt.Sprintf("%s: %q\n", key, want[key])
	}
	return []action.Exported{
		{Path: labelsKey, Content: []byte(text)},
		{
			Hand: "# add files/" + string(steps.Local) + "/" + labelsKey +
				" to the file of that name in your Kubeflow manifests (applications/profiles; the overlay pss sets baseline), " +
				"and deploy them",
		},
	}, nil
}
