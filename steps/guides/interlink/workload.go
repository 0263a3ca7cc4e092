package interlink

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

func workload() steps.Step {
	return steps.Step{
		Name: "workload", Title: "Workload",
		Map: steps.MapRow{Local: "job permissions"},
		Why: "A job acts as the ServiceAccount of its pod, with the permissions of that ServiceAccount in the cluster. The " +
			"endpoint does not change these permissions.",
		Ask: []steps.Question{
			{
				Key: "workload.namespace", Title: "Namespace of the jobs", Kind: steps.Name, Adopt: adoptWorkload(false),
				Help:    "Enter the namespace of the pods that are meant for the virtual node.",
				Default: steps.Fixed("default", "from the published guide"),
			},
			{
				Key: "workload.account", Title: "ServiceAccount of the jobs", Kind: steps.Name, Adopt: adoptWorkload(true),
				Help:    "Enter the serviceAccountName of the pods.",
				Default: steps.Fixed("default", "from the published guide"),
			},
			{
				Key: "workload.argo", Title: "Permissions for Argo's executor", Kind: steps.YesNo, Adopt: adoptArgo,
				Help: "If yes, carrick creates a Role that allows the ServiceAccount to report the results of workflow steps: " +
					"create and patch workflowtaskresults, nothing else.",
				Default: steps.Fixed(false, "default"),
			},
		},
		Actions: []steps.Action{{
			Name: "argo-role", Title: "Allow the jobs to report to Argo", On: steps.Local, When: forArgo,
			Needs: []string{"account-exists"},
			Doer:  action.Manifest{File: "argo-role.yaml"},
		}},
		Checks: workloadChecks(),
	}
}

func workloadNamespace(e steps.Env) string { return e.Answers.Text("workload.namespace") }
func workloadAccount(e steps.Env) string   { return e.Answers.Text("workload.account") }
func forArgo(e steps.Env) bool             { return e.Answers.Bool("workload.argo") }

// workloadIdentity returns the ServiceAccount of the jobs, and workloadUser returns its user name.
func workloadIdentity(e steps.Env) check.Account {
	return check.Account{Namespace: workloadNamespace(e), Name: workloadAccount(e)}
}
func workloadUser(e steps.Env) string { return workloadIdentity(e).Username() }

const argoSource = "argoproj/argo-workflows: docs/workflow-rbac.md"

func workloadChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "account-exists", Title: "The jobs' ServiceAccount exists, and its token is mounted", On: steps.Local,
			Needs:      []string{"signed-in"},
			Why:        "With automountServiceAccountToken: false the pod has no token volume, so the job gets no token.",
			References: []string{vkSource}, Run: accountThere,
		},
		{
			Name: "account-permissions", Title: "Jobs have no powerful cluster-wide permissions", On: steps.Local,
			Needs: []string{"account-exists"},
			Why: "The token leaves the cluster, is valid for 100 years while its pod exists, and is stored in files or " +
				"job scripts on the other side.",
			References: []string{vkSource}, Run: accountModest,
		},
		{
			Name: "account-argo", Title: "The jobs can report to Argo", On: steps.Local, When: forArgo,
			Needs: []string{"account-exists"}, FixedBy: "argo-role",
			Why: "Argo's executor in each pod writes a WorkflowTaskResult; without that permission the step fails " +
				"although its command succeeded.",
			References: []string{argoSource}, Run: accountArgo,
		},
		{
			Name: "no-linux-selector", Title: "No pod for the virtual node requires Linux", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "The virtual node has kubernetes.io/os: virtual-kubelet, so a pod that selects kubernetes.io/os: " +
				"linux, as in many charts, stays Pending indefinitely.",
			References: []string{"interlink-hq/interLink: pkg/virtualkubelet/virtualkubelet.go"}, Run: noLinuxSelector,
		},
		{
			Name: "pods-not-forced", Title: "No pod of the virtual node is stuck terminating", On: steps.Local,
			Needs: []string{"signed-in"},
			Why:   "A token is revoked with its pod. If you force-delete a stuck pod, its batch job keeps running and gets 401.",
			References: []string{
				vkSource, "kubernetes/website: content/en/docs/concepts/security/service-accounts.md (bound tokens)",
			}, Run: podsNotForced,
		},
	}
}

func accountThere(ctx context.Context, e steps.Env) steps.Result {
	sa, err := check.Get[corev1.ServiceAccount](
		ctx, e.Cluster, check.ServiceAccounts, workloadNamespace(e), workloadAccount(e),
	)
	k := e.Kubectl() + " -n " + workloadNamespace(e)
	if apierrors.IsNotFound(err) {
		return steps.Failed(
			fmt.Sprintf("ServiceAccount %s/%s does not exist", workloadNamespace(e), workloadAccount(e)),
			k+" create serviceaccount "+workloadAccount(e),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if sa.AutomountServiceAccountToken != nil && !*sa.AutomountServiceAccountToken {
		return steps.Failed(
			fmt.Sprintf(
				"ServiceAccount %s/%s has automountServiceAccountToken: false, so its pods get no token unless their own "+
					"automountServiceAccountToken is true",
				sa.Namespace, sa.Name,
			),
			fmt.Sprintf("%s patch serviceaccount %s --type=merge -p '{\"automountServiceAccountToken\":true}'", k, sa.Name),
		)
	}
	pods, err := podsForNode(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var without []string
	for _, p := range pods {
		if a := p.Spec.AutomountServiceAccountToken; a != nil && !*a &&
			cmp.Or(p.Spec.ServiceAccountName, "default") == sa.Name {
			without = append(without, p.Name)
		}
	}
	if len(without) > 0 {
		return steps.Warned(
			"pods of the ServiceAccount have automountServiceAccountToken: false, so they have no token: "+check.Some(without),
			k+" get pod "+without[0]+" -o yaml    # remove automountServiceAccountToken from the pod template",
		)
	}
	return steps.Passed("%s/%s", sa.Namespace, sa.Name)
}

// excessivePermissions lists permissions that a job's account must not have. With one of them, everyone who can read a
// job's token could control the cluster or read its credentials.
var excessivePermissions = []permission.Rule{
	{Verb: "*", Group: "*", Resource: "*"},
	{Verb: "list", Resource: "secrets"},
	{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
	{Verb: "create", Resource: "pods", Subresource: "exec"},
	{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
}

func accountModest(ctx context.Context, e steps.Env) steps.Result {
	all, err := e.Cluster.CanAs(ctx, workloadIdentity(e).User(), false, excessivePermissions...)
	if err != nil {
		return steps.Errored(err)
	}
	var may []string
	for _, d := range all {
		if d.Err != nil {
			return steps.Errored(d.Err)
		}
		if !d.Allowed {
			continue
		}
		may = append(may, d.Rule.String())
		if d.Rule == excessivePermissions[0] {
			may[0] = "do everything"
			break
		}
	}
	if len(may) == 0 {
		return steps.Passed(
			"%s cannot read all Secrets, create tokens, run commands in pods or grant permissions in all namespaces",
			workloadUser(e),
		)
	}
	who := append([]string{workloadAccount(e)}, workloadIdentity(e).User().Groups...)
	return steps.Failed(
		fmt.Sprintf("%s can %s in the whole cluster, and so can anyone who reads a job's token on the other side",
			workloadUser(e), strings.Join(may, ", ")),
		fmt.Sprintf(
			"%s get clusterrolebindings -o custom-columns='NAME:.metadata.name,ROLE:.roleRef.name,SUBJECTS:.subjects[*].name' "+
				"| grep -wE '%s'    # delete the binding that grants these permissions, then bind a Role with what the jobs need",
			e.Kubectl(),
			strings.Join(who, "|"),
		),
	)
}

// argoPermissions returns the permissions that Argo's executor requires.
func argoPermissions(ns string) []permission.Rule {
	return check.Verbs("argoproj.io", "workflowtaskresults", ns, "create", "patch")
}

func accountArgo(ctx context.Context, e steps.Env) steps.Result {
	lacks, err := check.Denied(ctx, e.Cluster, workloadIdentity(e).User(), true, argoPermissions(workloadNamespace(e))...)
	if err != nil {
		return steps.Errored(err)
	}
	if len(lacks) > 0 {
		return steps.Failed(fmt.Sprintf("%s cannot %s", workloadUser(e), strings.Join(lacks, " or ")), "")
	}
	return steps.Passed("%s can create and patch workflowtaskresults", workloadUser(e))
}

// podsForNode returns the pods in the jobs' namespace that run on the virtual node, select the node by host name, or
// are unscheduled and tolerate the node's taint.
func podsForNode(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	all, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, workloadNamespace(e), cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, p := range all {
		bears := slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == nodeTaint })
		if p.Spec.NodeName == nodeName(e) || p.Spec.NodeSelector[corev1.LabelHostname] == nodeName(e) ||
			(bears && p.Spec.NodeName == "") {
			out = append(out, p)
		}
	}
	return out, nil
}

func noLinuxSelector(ctx context.Context, e steps.Env) steps.Result {
	pods, err := podsForNode(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var stuck []string
	for _, p := range pods {
		if p.Spec.NodeSelector[corev1.LabelOSStable] == "linux" && p.Spec.NodeName == "" {
			stuck = append(stuck, p.Name)
		}
	}
	if len(stuck) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"pods in namespace %s require kubernetes.io/os: linux, which the virtual node does not have: %s",
				workloadNamespace(e),
				check.Some(stuck),
			),
			fmt.Sprintf(
				"%s -n %s get pod %s -o jsonpath='{.metadata.ownerReferences}'    # remove kubernetes.io/os from the "+
					"nodeSelector of that owner",
				e.Kubectl(), workloadNamespace(e), stuck[0],
			),
		)
	}
	return steps.Passed(
		"none of %d pods for the virtual node in namespace %s requires kubernetes.io/os: linux", len(pods),
		workloadNamespace(e),
	)
}

// stuckAfter is how long a pod can remain after the end of its grace period before the pod counts as stuck.
const stuckAfter = 2 * time.Minute

func podsNotForced(ctx context.Context, e steps.Env) steps.Result {
	pods, err := podsForNode(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var stuck []string
	var next time.Time
	uid := ""
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		due := p.DeletionTimestamp.Add(stuckAfter)
		if time.Now().After(due) {
			stuck = append(stuck, p.Name)
			if uid == "" {
				uid = string(p.UID)
			}
		} else if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	if len(stuck) > 0 {
		return steps.Warned(
			"pods are stuck terminating: "+check.Some(stuck)+
				"; if you force-delete them, their jobs continue without a valid token",
			"first find the batch jobs; run on the edge node: squeue --format='%i %j' | grep "+steps.Quoted(uid)+
				"    # a job's name contains the UID of its pod; this one is of "+stuck[0]+
				"; cancel each with scancel ID; after that, you can force-delete a pod that is still stuck",
		)
	}
	r := steps.Passed("none of %d pods is stuck; a job's token is valid while its pod exists", len(pods))
	r.Again = next
	return r
}
