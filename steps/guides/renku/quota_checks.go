package renku

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func otherQuotas(ctx context.Context, e steps.Env) steps.Result {
	ns := sessionsNamespace(e)
	quotas, err := check.List[corev1.ResourceQuota](ctx, e.Cluster, check.ResourceQuotas, ns, cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	ranges, err := check.List[corev1.LimitRange](ctx, e.Cluster, check.LimitRanges, ns, cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	pool, _ := thePool(e) // without a valid pool the sizes are unknown, and the check continues
	var tight []bounds
	for _, q := range quotas {
		if !slices.Contains(e.Answers.List("pools.quotas"), q.Name) && countsSessions(e, q) { // quota-free checks the pools' own quotas
			tight = append(tight, tooLittle(e, pool, q)...)
		}
	}
	for _, r := range ranges {
		tight = append(tight, outOfRange(pool, r)...)
	}
	// First report the quotas and LimitRanges that reject all sessions.
	slices.SortStableFunc(tight, func(a, b bounds) int { return cmp.Compare(len(a.class), len(b.class)) })
	if len(tight) > 0 && tight[0].class == "" {
		return steps.Failed(tight[0].words()+", so no session can start", tight[0].fix(e))
	}
	if r := askingForLimits(e, quotas, ranges); r.Status != steps.Pass || len(tight) == 0 {
		return r
	}
	return steps.Warned(tight[0].words()+", so its sessions cannot start", tight[0].fix(e))
}

// askingForLimits fails if a quota has limits.cpu but no LimitRange sets a default CPU limit. Such
// a quota rejects pods without a CPU limit.
func askingForLimits(e steps.Env, quotas []*corev1.ResourceQuota, ranges []*corev1.LimitRange) steps.Result {
	var asking []string
	for _, q := range quotas {
		if _, ok := q.Spec.Hard[corev1.ResourceLimitsCPU]; ok {
			asking = append(asking, q.Name)
		}
	}
	if len(asking) == 0 {
		return steps.Passed("no quota has limits.cpu (quotas: %d)", len(quotas))
	}
	for _, r := range ranges {
		for _, item := range r.Spec.Limits {
			if _, ok := item.Default[corev1.ResourceCPU]; ok && item.Type == corev1.LimitTypeContainer {
				const found = "quota %s requires CPU limits, and LimitRange %s sets a default"
				return steps.Passed(found, strings.Join(asking, ", "), r.Name)
			}
		}
	}
	const found = "quota %s has limits.cpu, but no LimitRange sets a default, so pods without a limit are rejected"
	return steps.Failed(fmt.Sprintf(found, strings.Join(asking, ", ")),
		e.Kubectl()+" -n "+sessionsNamespace(e)+" apply -f - <<EOF\n"+defaultLimit+
			"EOF\n# sets a default limit for containers (choose your own). Or remove limits.cpu from the quota. On Rancher, "+
			"change the quota of the project")
}

const defaultLimit = `apiVersion: v1
kind: LimitRange
metadata: {name: default-cpu-limit}
spec: {limits: [{type: Container, default: {cpu: "2"}}]}
`

// bounds describes why a ResourceQuota or a LimitRange rejects sessions.
type bounds struct {
	kind, name string
	class      string // name of the class whose sessions are rejected; "": all classes
	why        []string
	changes    []steps.PatchOp
}

func (r bounds) words() string {
	out := r.kind + " " + clean.Name(r.name) + " has " + strings.Join(r.why, ", ")
	if r.class != "" {
		out += " for class " + clean.Name(r.class)
	}
	return out
}

// fix returns the command that removes or raises the values that reject sessions.
func (r bounds) fix(e steps.Env) string {
	return e.Kubectl() + " -n " + sessionsNamespace(e) + " patch " + strings.ToLower(r.kind) + " " + steps.Quoted(r.name) +
		" " + steps.JSONPatch(r.changes...) + "    # or set values that are large enough for sessions"
}

// classesOf returns the classes of a pool. It returns one class without sizes if the pool is
// invalid or has no classes.
func classesOf(d described) []resourceClass {
	if len(d.faults) > 0 || len(d.Classes) == 0 {
		return []resourceClass{{}}
	}
	return d.Classes
}

// refusals calls bad for each class. It returns one bounds value for each class that bad rejects.
// If bad rejects every class, refusals returns a single value with an empty class.
func refusals(
	classes []resourceClass, kind, name string, bad func(c resourceClass) ([]string, []steps.PatchOp),
) []bounds {
	var out []bounds
	for _, c := range classes {
		if why, changes := bad(c); len(why) > 0 {
			out = append(out, bounds{kind, name, c.Name, why, changes})
		}
	}
	if len(out) == len(classes) {
		all := slices.MinFunc(out, func(a, b bounds) int { return cmp.Compare(len(a.why), len(b.why)) })
		all.class = ""
		return []bounds{all}
	}
	return out
}

// countsSessions reports whether a quota applies to session pods, according to the quota's scopes.
func countsSessions(e steps.Env, q *corev1.ResourceQuota) bool {
	in := func(scope corev1.ResourceQuotaScope) bool { // session pods have requests, a priority class and no deadline
		return scope == corev1.ResourceQuotaScopeNotTerminating || scope == corev1.ResourceQuotaScopeNotBestEffort
	}
	for _, scope := range q.Spec.Scopes {
		if !in(scope) {
			return false
		}
	}
	if q.Spec.ScopeSelector == nil {
		return true
	}
	pools := e.Answers.List("pools.quotas")
	for _, m := range q.Spec.ScopeSelector.MatchExpressions {
		of := func(pool string) bool { return slices.Contains(m.Values, pool) }
		switch {
		case m.ScopeName != corev1.ResourceQuotaScopePriorityClass && in(m.ScopeName):
		case m.ScopeName != corev1.ResourceQuotaScopePriorityClass, len(pools) == 0:
			return false
		case m.Operator == corev1.ScopeSelectorOpIn && !slices.ContainsFunc(pools, of),
			m.Operator == corev1.ScopeSelectorOpNotIn && slices.ContainsFunc(pools, of),
			m.Operator == corev1.ScopeSelectorOpDoesNotExist:
			return false
		}
	}
	return true
}

// neededBy returns the minimum quota that one session of a class requires, by resource. It does not
// count the sidecars.
func neededBy(e steps.Env, c resourceClass) map[corev1.ResourceName]resource.Quantity {
	one, cpu, memory := resource.MustParse("1"), cpuOf(c), memoryOf(c)
	out := map[corev1.ResourceName]resource.Quantity{
		"requests.cpu": cpu, "cpu": cpu, "limits.cpu": resource.MustParse("1m"),
		"requests.memory": memory, "memory": memory, "limits.memory": one, "requests.storage": leastStorage,
	}
	if c.GPU > 0 {
		out["requests.nvidia.com/gpu"] = *resource.NewQuantity(int64(c.GPU), resource.DecimalSI)
	}
	for _, counted := range []corev1.ResourceName{
		"pods", "persistentvolumeclaims", "services", "secrets",
		"count/pods", "count/persistentvolumeclaims", "count/services", "count/secrets",
		"count/statefulsets.apps", "count/ingresses.networking.k8s.io", "count/amaltheasessions.amalthea.dev",
	} {
		out[counted] = one
	}
	if storage := e.Answers.Text("sessions.storage-class"); storage != "" {
		of := corev1.ResourceName(storage + ".storageclass.storage.k8s.io/")
		out[of+"requests.storage"], out[of+"persistentvolumeclaims"] = leastStorage, one
	}
	return out
}

// leastStorage is the smallest volume size that users can choose.
var leastStorage = resource.MustParse("1G")

func cpuOf(c resourceClass) resource.Quantity {
	return *resource.NewMilliQuantity(max(1, int64(c.CPU*1000)), resource.DecimalSI)
}

func memoryOf(c resourceClass) resource.Quantity {
	return *resource.NewQuantity(max(1, int64(c.Memory*(1<<30))), resource.BinarySI)
}

// tooLittle returns bounds for each class if the quota is too small for a single session of the
// class.
func tooLittle(e steps.Env, d described, q *corev1.ResourceQuota) []bounds {
	of := classesOf(d)
	return refusals(of, "ResourceQuota", q.Name, func(c resourceClass) (why []string, changes []steps.PatchOp) {
		need := neededBy(e, c)
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			hard, least := q.Spec.Hard[name], need[name]
			if hard.Cmp(least) < 0 {
				why = append(why, fmt.Sprintf("%s: %s (a session needs %s)", name, hard.String(), least.String()))
				changes = append(changes, steps.PatchOp{Op: "remove", Path: steps.Pointer("spec", "hard", name)})
			}
		}
		return why, changes
	})
}

// outOfRange returns bounds for each class whose containers, pods or volumes r rejects. Sessions
// have no CPU limit unless the pool sets cpu_limit_factor. Without a limit they get the default
// limit from r, and Kubernetes rejects a limit below the request (kubernetes/kubernetes:
// plugin/pkg/admission/limitranger/admission.go, pkg/apis/core/validation/validation.go).
func outOfRange(d described, r *corev1.LimitRange) []bounds {
	classes, largest := classesOf(d), resource.Quantity{}
	for _, c := range classes {
		if cpu := cpuOf(c); cpu.Cmp(largest) > 0 {
			largest = cpu
		}
	}
	return refusals(classes, "LimitRange", r.Name, func(c resourceClass) (why []string, changes []steps.PatchOp) {
		cpu, memory := cpuOf(c), memoryOf(c)
		for i, item := range slices.Backward(r.Spec.Limits) {
			bound := func(
				list corev1.ResourceList, field string, name corev1.ResourceName, need resource.Quantity, sign int,
			) {
				if have, is := list[name]; is && need.Cmp(have) == sign {
					change := steps.PatchOp{Op: "remove", Path: steps.Pointer("spec", "limits", i, field, name)}
					if field == "default" { // keep a default limit, because a quota on limits.cpu requires one
						change.Op, change.Value = "replace", largest.String()
					}
					const words = "%s %s: %s per %s (a session has %s)"
					why = append(why, fmt.Sprintf(words, field, name, have.String(), item.Type, need.String()))
					changes = append(changes, change)
				}
			}
			switch item.Type {
			case corev1.LimitTypeContainer, corev1.LimitTypePod:
				bound(item.Max, "max", corev1.ResourceCPU, cpu, 1)
				bound(item.Max, "max", corev1.ResourceMemory, memory, 1)
				if item.Type == corev1.LimitTypePod || c.CPU == 0 {
					continue
				}
				bound(item.Min, "min", corev1.ResourceCPU, cpu, -1)
				bound(item.Min, "min", corev1.ResourceMemory, memory, -1)
				if d.Factor <= 0 {
					bound(item.Default, "default", corev1.ResourceCPU, cpu, 1)
				}
			case corev1.LimitTypePersistentVolumeClaim:
				bound(item.Max, "max", corev1.ResourceStorage, leastStorage, 1)
				if c.Max > 0 {
					bound(item.Min, "min", corev1.ResourceStorage, *resource.NewScaledQuantity(int64(c.Max), resource.Giga), -1)
				}
			}
		}
		return why, changes
	})
}
