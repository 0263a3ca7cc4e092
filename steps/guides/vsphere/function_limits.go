package vsphere

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

// profileQuota is the ResourceQuota that the profile controller creates from
// spec.resourceQuotaSpec of the Profile (kubeflow/dashboard:
// components/profile-controller/controllers/profile_controller.go, KFQUOTA).
const profileQuota = "kf-resource-quota"

// isTooSmall reports whether a LimitRange rejected a claim as too small. Such a rejection proves
// nothing about the claims of pipelines, which are larger than the tested claim.
func isTooSmall(why string) bool {
	return strings.Contains(why, "minimum storage usage per PersistentVolumeClaim is") && !strings.Contains(why, "maximum")
}

// limit describes a ResourceQuota or a LimitRange that rejects claims. The field in is its namespace.
type limit struct {
	in, found, fix string
	used           bool // a ResourceQuota that allows claims but is used up
}

// limitOf returns the ResourceQuota or LimitRange that rejected a claim. The parameter in is the claim's namespace, and
// why is the API server's message.
func limitOf(ctx context.Context, e steps.Env, in, why string) (limit, error) {
	if by, _ := check.Refuser(why); by == check.ByLimits {
		return rangeOf(ctx, e, in, why)
	}
	out := limit{in: in, found: why, fix: check.RefusedFix(e.Kubectl(), in, why)}
	name, limits, is := check.ExceededQuota(why)
	if !is {
		return out, nil
	}
	none := map[string]any{} // the resources that the quota limits to zero
	var says []string
	for _, one := range strings.Split(limits, ",") {
		key, most, _ := strings.Cut(strings.TrimSpace(one), "=")
		if q, err := resource.ParseQuantity(most); err == nil && q.IsZero() {
			none[key] = nil
		}
		says = append(says, key+" to "+most)
	}
	out.found = fmt.Sprintf("ResourceQuota %s limits %s", name, strings.Join(says, ", "))
	out.fix = e.Kubectl() + " -n " + in + " describe resourcequota " + steps.Quoted(name)
	if out.used = len(none) == 0; out.used {
		out.fix += "    # raise the quota, or delete objects that count against it"
		return out, nil
	}
	patch, err := quotaFix(ctx, e, in, name, none)
	out.fix += "\n" + patch
	return out, err
}

// quotaFix returns the command that removes the limits in hard from the ResourceQuota with the given name. If the
// profile controller would restore the limits, the command removes them from the Profile instead.
func quotaFix(ctx context.Context, e steps.Env, in, name string, hard map[string]any) (string, error) {
	what, spec := "-n "+in+" patch resourcequota "+steps.Quoted(name), map[string]any{"hard": hard}
	if name == profileQuota {
		p, err := e.Cluster.Get(ctx, profileKind, "", in)
		if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, failure.ErrNotServed) {
			return "", err
		}
		if err == nil && hasHard(p, hard) {
			what, spec = "patch profile "+in, map[string]any{"resourceQuotaSpec": spec}
		}
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	return fmt.Sprintf("%s %s --type=merge -p %s    # null removes the limit; use a number to raise it",
		e.Kubectl(), what, steps.Quoted(string(patch))), err
}

// hasHard reports whether the quota in a Profile contains at least one of the given limits.
func hasHard(profile *unstructured.Unstructured, limits map[string]any) bool {
	hard, _, _ := unstructured.NestedMap(profile.Object, "spec", "resourceQuotaSpec", "hard")
	for key := range limits {
		if _, is := hard[key]; is {
			return true
		}
	}
	return false
}

// roomyClaim is a claim size that is sufficient for Kale and Kubeflow.
const roomyClaim = "100Gi"

// rangeOf returns the LimitRange that rejected a claim. The message why contains the maximum of the LimitRange but not
// the name, so rangeOf searches for the maximum.
func rangeOf(ctx context.Context, e steps.Env, in, why string) (limit, error) {
	out := limit{in: in, found: "a LimitRange rejects the claim: " + why, fix: check.RefusedFix(e.Kubectl(), in, why)}
	all, err := check.List[corev1.LimitRange](ctx, e.Cluster, check.LimitRanges, "", cluster.Selector{})
	if apierrors.IsForbidden(err) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	for _, r := range all {
		i := slices.IndexFunc(r.Spec.Limits, func(of corev1.LimitRangeItem) bool {
			most, is := of.Max[corev1.ResourceStorage]
			return is && of.Type == corev1.LimitTypePersistentVolumeClaim && strings.Contains(why, " is "+most.String()+",")
		})
		if r.Namespace != in || i < 0 {
			continue
		}
		most := r.Spec.Limits[i].Max[corev1.ResourceStorage]
		out.found = fmt.Sprintf("LimitRange %s limits a claim to %s", clean.Name(r.Name), most.String())
		bound := steps.Pointer("spec", "limits", i, "max", "storage")
		out.fix = fmt.Sprintf("%s -n %s patch limitrange %s %s    # or another size", e.Kubectl(), in,
			steps.Quoted(r.Name), steps.JSONPatch(steps.PatchOp{Op: "replace", Path: bound, Value: roomyClaim}))
		break
	}
	return out, nil
}

// underLimits returns the verdict on claims that get the shared StorageClass in some namespaces but are rejected by
// limits in other namespaces. The parameter in lists the namespace of each outcome in refused. A quota that is used up
// causes no warning, because it works as intended.
func underLimits(ctx context.Context, e steps.Env, passed string, refused []outcome, in []string) steps.Result {
	var found, used []string
	fix := ""
	for i, o := range refused {
		l, err := limitOf(ctx, e, in[i], o.refused)
		if err != nil {
			return steps.Errored(err)
		}
		said := l.in + " (" + l.found + ")"
		if l.used {
			used = append(used, said)
			continue
		}
		found, fix = append(found, said), cmp.Or(fix, l.fix)
	}
	if len(used) > 0 {
		passed += ". Quotas are used up in " + check.Some(used)
	}
	if len(found) == 0 {
		return steps.Passed("%s", passed)
	}
	r := steps.Warned("ReadWriteMany claims are rejected in "+check.Some(found)+". Elsewhere they get "+passed, fix)
	r.Lines = found
	return r.WithoutAction()
}
