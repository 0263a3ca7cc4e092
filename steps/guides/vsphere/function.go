package vsphere

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

func function() steps.Step {
	return steps.Step{
		Name: "function", Title: "Function",
		Map: steps.MapRow{Local: "webhook answers"},
		Why: "carrick tests claims by server-side dry run, which runs the full admission but stores nothing. It repeats " +
			"the tests every few seconds, and immediately when a policy, a webhook or its backend changes.",
		Checks: functionChecks(),
	}
}

// Maximum cache times for the result of a dry run (see cluster.PreviewOptions). claimAge applies to the first result.
// It is short, because API servers enforce a new policy only after a few seconds. claimSteady is the maximum for
// repeated results. By then, usually only the state of a webhook's pods still changes.
const (
	claimAge    = 3 * time.Second
	claimSteady = 15 * time.Second
)

// triedClaim is a claim that carrick only tests by dry run.
type triedClaim struct {
	name   string // description, such as "without a StorageClass"
	mode   corev1.PersistentVolumeAccessMode
	class  *string
	volume string // name of the requested volume; "": none
}

func (t triedClaim) object(namespace string) *unstructured.Unstructured {
	spec := map[string]any{
		"accessModes": []any{string(t.mode)},
		"resources":   map[string]any{"requests": map[string]any{"storage": "1Mi"}},
	}
	if t.class != nil {
		spec["storageClassName"] = *t.class
	}
	if t.volume != "" {
		spec["volumeName"] = t.volume
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(check.VolumeClaims.GroupVersion().WithKind("PersistentVolumeClaim"))
	o.SetNamespace(namespace)
	o.SetName("carrick-preview")
	o.SetLabels(map[string]string{"app.kubernetes.io/name": "carrick"})
	o.Object["spec"] = spec
	return o
}

// outcome is the result of the dry run for one claim.
type outcome struct {
	triedClaim
	got     string
	has     bool   // the claim has a StorageClass, possibly ""
	refused string // why it was rejected; "": it was accepted
}

// tryClaims tests by dry run how claims are admitted in the given namespace. It tests them concurrently and returns one
// outcome for each claim, in the given order.
func tryClaims(ctx context.Context, e steps.Env, namespace string, all ...triedClaim) ([]outcome, error) {
	return tryClaimsFor(ctx, e, claimSteady, namespace, all...)
}

// tryClaimsFor is like tryClaims, but caches each outcome for at most steady.
func tryClaimsFor(
	ctx context.Context, e steps.Env, steady time.Duration, namespace string, all ...triedClaim,
) ([]outcome, error) {
	out := make([]outcome, len(all))
	var looks []func() error
	for i, t := range all {
		looks = append(looks, func() error {
			out[i].triedClaim = t
			said, err := e.Cluster.Preview(ctx, t.object(namespace), cluster.PreviewOptions{
				Age: claimAge, Steady: steady,
				On: func(ctx context.Context) error { return readDependencies(ctx, e, namespace) },
			})
			why, refused := check.Refusal(err)
			if refused {
				out[i].refused = why
				return nil
			}
			if err == nil {
				out[i].got, out[i].has, err = unstructured.NestedString(said.Kept.Object, "spec", "storageClassName")
			}
			return err
		})
	}
	return out, check.Together(looks...)
}

// readDependencies reads the objects that affect the admission of a claim: the namespace, the default StorageClasses,
// policies, webhooks, and the endpoints of the webhooks. A change to any of these objects triggers a new test.
func readDependencies(ctx context.Context, e steps.Env, namespace string) error {
	if _, err := e.Cluster.Get(ctx, check.Namespaces, "", namespace); err != nil {
		return err
	}
	var behind []mutator
	err := check.Together(
		func() error {
			_, err := defaultClasses(ctx, e)
			return err
		},
		func() (err error) {
			behind, err = mutators(ctx, e)
			return err
		},
	)
	if err != nil {
		return err
	}
	var looks []func() error
	for _, m := range behind {
		if m.service == nil {
			continue
		}
		looks = append(looks, func() error {
			_, err := e.Cluster.List(
				ctx, check.EndpointSlices, m.service.Namespace,
				cluster.Selector{Labels: discoveryv1.LabelServiceName + "=" + m.service.Name},
			)
			return err
		})
	}
	return check.Together(looks...)
}

// tryIn returns the namespace in which carrick tests claims. This is the guide's test namespace, or else the first
// profile namespace. Unless mutation.method is none, the namespace must have the label in mutation.selector.
func tryIn(ctx context.Context, e steps.Env) (string, error) {
	key, value := namespaceSelector(e)
	looked := func(labels map[string]string) bool { return !exchanges(e) || labels[key] == value }
	own, err := e.Cluster.Get(ctx, check.Namespaces, "", trialNamespace(e))
	switch {
	case err == nil && own.GetDeletionTimestamp() == nil && looked(own.GetLabels()):
		return trialNamespace(e), nil
	case err != nil && !apierrors.IsNotFound(err):
		return "", err
	}
	spaces, err := profileSpaces(ctx, e)
	if err != nil && !steps.IsAbsent(err) {
		return "", err
	}
	i := slices.IndexFunc(spaces, func(ns *corev1.Namespace) bool { return looked(ns.Labels) })
	switch {
	case i >= 0:
		return spaces[i].Name, nil
	case own != nil:
		return "", steps.Absent(
			"neither namespace %s nor a profile namespace has label %s=%s, so no claims are changed",
			trialNamespace(e),
			key, value,
		)
	}
	return "", steps.Absent(
		"namespace %s does not exist, and no profile exists yet, so carrick has no namespace to test claims in",
		trialNamespace(e),
	)
}

// tryInEach returns the namespaces in which carrick tests ReadWriteMany claims: the namespace from
// tryIn, and all profile namespaces with the label in mutation.selector. A policy can be bound to
// only some of these namespaces.
func tryInEach(ctx context.Context, e steps.Env) ([]string, error) {
	first, err := tryIn(ctx, e)
	if err != nil {
		return nil, err
	}
	spaces, err := profileSpaces(ctx, e)
	if err != nil && !steps.IsAbsent(err) {
		return nil, err
	}
	key, value := namespaceSelector(e)
	out := []string{first}
	for _, ns := range spaces {
		if ns.Name != first && (!exchanges(e) || ns.Labels[key] == value) {
			out = append(out, ns.Name)
		}
	}
	return out, nil
}

func functionPermissions(e steps.Env) []permission.Rule {
	return slices.Concat(
		check.To([]string{"create", "patch"}, "", check.VolumeClaims), // dry runs, also in profile namespaces
		check.ToFollow("", check.VolumeClaims, check.EndpointSlices, check.StorageClasses, check.MutatingWebhooks),
		check.ToFollow("", kyvernoKinds...), // to find all policies, even if mutation.method is not kyverno
	)
}
