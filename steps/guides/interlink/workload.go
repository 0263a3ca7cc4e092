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
		Why: "A job acts as the ServiceAccount of its pod, with the rights that this one has in the cluster: no more come " +
			"with the endpoint, and no fewer.",
		Ask: []steps.Question{
			{
				Key: "workload.namespace", Title: "Namespace of the jobs", Kind: steps.Name, Adopt: adoptWorkload(false),
				Help:    "Where the pods for the virtual node are made.",
				Default: steps.Fixed("default", "the published guide"),
			},
			{
				Key: "workload.account", Title: "ServiceAccount of the jobs", Kind: steps.Name, Adopt: adoptWorkload(true),
				Help:    "As in serviceAccountName of the pods.",
				Default: steps.Fixed("default", "the published guide"),
			},
			{
				Key: "workload.argo", Title: "Give it what Argo's executor needs", Kind: steps.YesNo, Adopt: adoptArgo,
				Help: "A Role that lets the ServiceAccount report the results of workflow steps: create and patch " +
					"workflowtaskresults, nothing else.",
				Default: steps.Fixed(false, "only where it is wanted"),
			},
		},
		Actions: []steps.Action{{
			Name: "argo-role", Title: "Let the jobs report to Argo", On: steps.Local, When: forArgo,
			Needs: []string{"account-there"},
			Doer:  action.Manifest{File: "argo-role.yaml"},
		}},
		Checks: workloadChecks(),
	}
}

func workloadNamespace(e steps.Env) string { return e.Answers.Text("workload.namespace") }
func workloadAccount(e steps.Env) string   { return e.Answers.Text("workload.account") }
func forArgo(e steps.Env) bool             { return e.Answers.Bool("workload.argo") }

// workloadIdentity returns the ServiceAccount of the jobs, and workloadUser its user name.
func workloadIdentity(e steps.Env) check.Account {
	return check.Account{Namespace: workloadNamespace(e), Name: workloadAccount(e)}
}
func workloadUser(e steps.Env) string { return workloadIdentity(e).Username() }

const argoSource = "argoproj/argo-workflows: docs/workflow-rbac.md"

func workloadChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "account-there", Title: "the jobs' ServiceAccount is there, and its token is mounted", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "with automountServiceAccountToken: false no volume with a token is put into the pod, so there is " +
				"nothing that could be handed over",
			References: []string{vkSource}, Run: accountThere,
		},
		{
			Name: "account-modest", Title: "Jobs have no permissions on the whole cluster", On: steps.Local,
			Needs: []string{"account-there"},
			Why: "the token leaves the cluster, is good for 100 years as long as its pod is there, and lies in files " +
				"of the other side, or in its batch system's job script",
			References: []string{vkSource}, Run: accountModest,
		},
		{
			Name: "account-argo", Title: "the jobs may report to Argo", On: steps.Local, When: forArgo,
			Needs: []string{"account-there"}, FixedBy: "argo-role",
			Why: "Argo's executor in each pod writes a WorkflowTaskResult; without that right the step fails although " +
				"its command did not",
			References: []string{argoSource}, Run: accountArgo,
		},
		{
			Name: "no-linux-selector", Title: "no pod for the virtual node asks for Linux", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "the virtual node's label kubernetes.io/os is virtual-kubelet: a pod with nodeSelector " +
				"kubernetes.io/os: linux, as many charts have it, stays Pending for ever",
			References: []string{"interlink-hq/interLink: pkg/virtualkubelet/virtualkubelet.go"}, Run: noLinuxSelector,
		},
		{
			Name: "pods-not-forced", Title: "no pod of the virtual node is stuck on its way out", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "a token is bound to its pod and dies with that object. Who force-deletes a pod that hangs leaves its " +
				"batch job running, and that gets 401 from then on",
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
			fmt.Sprintf("there is no ServiceAccount %s/%s", workloadNamespace(e), workloadAccount(e)),
			k+" create serviceaccount "+workloadAccount(e),
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if sa.AutomountServiceAccountToken != nil && !*sa.AutomountServiceAccountToken {
		return steps.Failed(
			fmt.Sprintf(
				"ServiceAccount %s/%s has automountServiceAccountToken: false: a pod has no token unless it sets that to "+
					"true itself",
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
			"pods of it have automountServiceAccountToken: false, so no token: "+check.Some(without),
			k+" get pod "+without[0]+" -o yaml    # take it out where the pod's template stands",
		)
	}
	return steps.Passed("%s/%s", sa.Namespace, sa.Name)
}

// tooMuch are permissions that would give everyone who can read a job's token control of the
// cluster, or its credentials.
var tooMuch = []permission.Rule{
	{Verb: "*", Group: "*", Resource: "*"},
	{Verb: "list", Resource: "secrets"},
	{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
	{Verb: "create", Resource: "pods", Subresource: "exec"},
	{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
}

func accountModest(ctx context.Context, e steps.Env) steps.Result {
	all, err := e.Cluster.CanAs(ctx, workloadIdentity(e).User(), false, tooMuch...)
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
		if d.Rule == tooMuch[0] {
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
		fmt.Sprintf("%s can %s in the whole cluster, and so can everyone who reads a job's token on the other side",
			workloadUser(e), strings.Join(may, ", ")),
		fmt.Sprintf(
			"%s get clusterrolebindings -o custom-columns='NAME:.metadata.name,ROLE:.roleRef.name,SUBJECTS:.subjects[*].name' "+
				"| grep -wE '%s'    "+
				"# delete the binding that grants it, then bind a role with what the jobs need", e.Kubectl(),
			strings.Join(who, "|"),
		),
	)
}

// argoPermissions are the permissions that Argo's executor requires.
func argoPermissions(ns string) []permission.Rule {
	return check.Verbs("argoproj.io", "workflowtaskresults", ns, "create", "patch")
}

func accountArgo(ctx context.Context, e steps.Env) steps.Result {
	lacks, err := check.Denied(ctx, e.Cluster, workloadIdentity(e).User(), true, argoPermissions(workloadNamespace(e))...)
	if err != nil {
		return steps.Errored(err)
	}
	if len(lacks) > 0 {
		return steps.Failed(fmt.Sprintf("%s may not %s", workloadUser(e), strings.Join(lacks, ", not ")), "")
	}
	return steps.Passed("%s may create and patch workflowtaskresults", workloadUser(e))
}

// podsForNode returns the pods of the jobs' namespace that are on the virtual node or can only
// be scheduled there, by its name or by a toleration of its taint.
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
				"pods in namespace %s ask for kubernetes.io/os: linux, which the virtual node is not: %s", workloadNamespace(e),
				check.Some(stuck),
			),
			fmt.Sprintf(
				"%s -n %s get pod %s -o jsonpath='{.metadata.ownerReferences}'    # take kubernetes.io/os out of the "+
					"nodeSelector there",
				e.Kubectl(), workloadNamespace(e), stuck[0],
			),
		)
	}
	return steps.Passed("%d pods for it in namespace %s, none does", len(pods), workloadNamespace(e))
}

// stuckAfter is how long after its grace period a pod counts as stuck.
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
			"pods should have been gone by now: "+check.Some(stuck)+
				"; deleted by force, their jobs go on without a token that is good",
			"end the batch jobs first, run on the edge node: squeue --format='%i %j' | grep "+steps.Quoted(uid)+
				"    # jobs are called by their pod's UID, here that of "+stuck[0]+
				"; then scancel ID; a pod that still hangs may be forced then",
		)
	}
	r := steps.Passed("none of %d; a job's token is good for as long as its pod is there", len(pods))
	r.Again = next
	return r
}
