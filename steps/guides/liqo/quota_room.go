package liqo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	requests "k8s.io/component-helpers/resource"
)

// nearlyFull is the usage of a quota, in percent, at which the check warns.
const nearlyFull = 90

func quotaRoom(ctx context.Context, e steps.Env) steps.Result {
	name := e.Peer.FieldText("slice", "name")
	ns := tenantNamespace(e)
	var found, pods []*unstructured.Unstructured
	var slice *unstructured.Unstructured
	err := check.Together(
		func() (err error) { found, err = living(ctx, e, quotas, ns, ""); return err },
		func() (err error) { pods, err = living(ctx, e, shadowPods, "", creatorLabel); return err },
		func() (err error) { slice, err = present(ctx, e, resourceSlices, ns, name); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	if slice == nil || conditionOf(conditions(slice, "status", "conditions"), "Resources").status != accepted {
		return steps.Skipped("the provider has granted no resources yet, so no Quota exists")
	}
	if len(found) == 0 {
		return steps.Warned(
			"no Quota exists in "+ns+", so the provider rejects every pod of the consumer",
			e.Kubectl()+" -n "+liqoSpaceOf(e.Own)+" logs -l app.kubernetes.io/name=controller-manager --tail 50",
		)
	}
	var good []string
	for _, q := range found {
		said, fix, err := judgeQuota(e, q, pods)
		if err != nil {
			return steps.Errored(err)
		}
		if fix != "" {
			return steps.Warned(said, fix)
		}
		good = append(good, said)
	}
	return steps.Passed("%s", strings.Join(good, "; "))
}

// judgeQuota describes how much of a quota the user's pods use. It returns a fix only if the quota is cordoned or
// nearly full.
func judgeQuota(
	e steps.Env, q *unstructured.Unstructured, pods []*unstructured.Unstructured,
) (found, fix string, err error) {
	what := "Quota " + q.GetNamespace() + "/" + q.GetName()
	if cordoned, _, _ := unstructured.NestedBool(q.Object, "spec", "cordoned"); cordoned {
		return what +
				" is cordoned, so the consumer cannot start more pods", "run liqoctl uncordon resourceslice on the provider, or " +
				"set tenant.condition to Active, then: " + e.ApplyStep("authentication"), nil
	}
	used, count, ended, err := usedBy(text(q, "spec", "user"), pods)
	if err != nil {
		return "", "", err
	}
	var full []string
	limits := quantities(q, "spec", "resources")
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit, err := resource.ParseQuantity(limits[name])
		if err != nil {
			return "", "", steps.Absent("%s has %s %q, which is not a quantity", what, name, limits[name])
		}
		if u, ok := used[corev1.ResourceName(name)]; ok &&
			u.AsApproximateFloat64()*100 >= limit.AsApproximateFloat64()*nearlyFull {
			full = append(full, fmt.Sprintf("%s %s of %s", name, u.String(), limit.String()))
		}
	}
	if len(full) > 0 {
		found := fmt.Sprintf("%s is nearly full: %s used by %s", what, strings.Join(full, ", "), steps.Plural(count, "pod"))
		if ended > 0 {
			found += fmt.Sprintf("; %d of these pods have finished and count until they are deleted", ended)
		}
		return found, "on the consumer, delete finished pods, or request more: set resources.cpu and resources.memory, " +
			"then " + e.ApplyStep("resources"), nil
	}
	found = fmt.Sprintf("%s: %s, used by %s", what, amounts(limits), steps.Plural(count, "pod"))
	switch text(q, "spec", "limitsEnforcement") {
	case "Hard":
		found += "; each container must request CPU and memory, with limits equal to the requests"
	case "Soft":
		found += "; each container must request CPU and memory"
	}
	return found, "", nil
}

// usedBy returns the total requests and the number of the pods that user created on the provider. ended is the number
// of finished pods among them. Liqo also counts finished pods.
func usedBy(user string, pods []*unstructured.Unstructured) (used corev1.ResourceList, count, ended int, err error) {
	used = corev1.ResourceList{}
	for _, o := range pods {
		if o.GetLabels()[creatorLabel] != user {
			continue
		}
		spec, _, _ := unstructured.NestedMap(o.Object, "spec", "pod")
		p, err := check.As[corev1.Pod](&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
		if err != nil {
			return nil, 0, 0, fmt.Errorf("ShadowPod %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		addTo(used, requests.PodRequests(p, requests.PodResourcesOptions{}))
		count++
		if phase := text(o, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
			ended++
		}
	}
	return used, count, ended, nil
}
