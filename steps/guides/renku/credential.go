package renku

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// withItself is the value of From in checks that send requests with the kubeconfig under test, not
// with the admin's credentials.
const withItself = "the new kubeconfig"

func credentialChecks() []steps.Check {
	return slices.Concat([]steps.Check{
		{
			Name: "credential-accepted", Title: "The kubeconfig authenticates as the ServiceAccount", On: steps.Remote,
			From:  withItself,
			Needs: []string{"server-tls", "kubeconfig-self-contained", "token-encoding"},
			Why:   "A token of another cluster or of a recreated ServiceAccount is rejected.",
			Run:   credentialAccepted,
		},
		{
			Name: "lists-pods", Title: "The kubeconfig can list the session pods", On: steps.Remote, From: withItself,
			Needs: []string{"credential-accepted", "role-rules"}, FixedBy: "role",
			Why:        "The published guide uses this test to verify that the address, the token and the namespace match.",
			References: []string{page},
			Run:        listsPods,
		},
		{
			Name: "credential-rights", Title: "The kubeconfig has all permissions that Renku needs", On: steps.Remote,
			From: withItself, Needs: []string{"credential-accepted", "role-rules"}, FixedBy: "role",
			Why: "Renku reports a missing permission as HTTP 500. The check covers all permissions that its services use, not " +
				"only the published guide's Role.",
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return rightsAllowed(ctx, e, slices.Concat(usedPermissions(sessionsNamespace(e)), optionalPermissions(e)))
			},
		},
		{
			Name: "credential-priorityclasses", Title: "The kubeconfig can look up the pools' PriorityClasses",
			On: steps.Remote, From: withItself,
			Needs: []string{"credential-accepted"}, FixedBy: "priorityclasses-role",
			Why: "Otherwise creating a pool with a quota fails with HTTP 500. Renku treats the 403 as a missing PriorityClass " +
				"and tries to create it.",
			References: []string{
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/db.py (create_quota)",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return rightsAllowed(ctx, e, onClasses(e, "list", "get"))
			},
		},
		{
			Name: "credential-deletes-classes", Title: "The kubeconfig can delete the pools' PriorityClasses",
			On: steps.Remote, From: withItself,
			Needs: []string{"credential-accepted"}, FixedBy: "delete-class-role",
			Why: "Without this permission, deleting a pool with a quota fails with HTTP 500, and Renku keeps the pool.",
			References: []string{
				"SwissDataScienceCenter/renku-data-services: components/renku_data_services/crc/db.py (delete_quota)",
			},
			Run: func(ctx context.Context, e steps.Env) steps.Result {
				return rightsAllowed(ctx, e, onClasses(e, "delete"))
			},
		},
		{
			Name: "least-privilege", Title: "The kubeconfig grants nothing beyond its roles", On: steps.Remote,
			From: withItself, Needs: []string{"credential-accepted"},
			Why: "The kubeconfig leaves the cluster. Anyone who obtains it has all its permissions.",
			Run: leastPrivilege,
		},
	}, accountChecks(), []steps.Check{
		{
			Name: "reachable-from-pods", Title: "The local cluster reaches the remote API server", On: steps.Local,
			From: "a pod of the local cluster", When: asksFromInside,
			FixedBy: "reach-job", Needs: []string{"peer/server-tls"}, Timeout: 2 * time.Minute,
			Why: "Pods may be unable to reach an address that this machine reaches. If the address drops packets, " +
				"Renku's watcher can restart repeatedly.",
			References: []string{"SwissDataScienceCenter/renku-data-services: components/renku_data_services/k8s/watcher"},
			Run:        reachedFromInside,
		},
	})
}

func credentialAccepted(ctx context.Context, e steps.Env) steps.Result {
	as, err := withKubeconfig(e)
	if err != nil {
		return kubeconfigUnread(err)
	}
	refused := func() steps.Result {
		return steps.Failed("the server at "+as.Server()+" rejects the token (401)",
			"verify that the address belongs to the remote cluster and not to a proxy that issues its own tokens (Rancher). "+
				"If it belongs to the remote cluster: "+e.Kubectl()+
				" -n "+
				sessionsNamespace(e)+" delete secret "+e.Answers.Text("identity.token-secret")+", then "+e.ApplyStep("identity"))
	}
	return check.AuthenticatesAs(ctx, as, userName(e), refused, func(name string) steps.Result {
		return steps.Failed(
			fmt.Sprintf("the kubeconfig authenticates as %s, not as %s", name, userName(e)),
			"set identity.name to that ServiceAccount, or "+rebuild,
		)
	})
}

func listsPods(ctx context.Context, e steps.Env) steps.Result {
	as, err := withKubeconfig(e)
	if err != nil {
		return kubeconfigUnread(err)
	}
	// A watch would go on after the permission is gone.
	pods, err := as.Find(ctx, check.Pods, sessionsNamespace(e), cluster.Selector{})
	if apierrors.IsForbidden(err) {
		return steps.Failed(failure.Explain(err), "")
	}
	if err != nil {
		return steps.Errored(err)
	}
	r := steps.Passed("%s in %s", steps.Plural(len(pods), "pod"), sessionsNamespace(e))
	r.Again = time.Now().Add(time.Minute)
	return r
}

func onClasses(e steps.Env, verbs ...string) (out []permission.Rule) {
	for _, name := range e.Answers.List("pools.quotas") {
		for _, verb := range verbs {
			out = append(out, permission.Rule{Verb: verb, Group: "scheduling.k8s.io", Resource: "priorityclasses", Name: name})
		}
	}
	return out
}

func rightsAllowed(ctx context.Context, e steps.Env, rights []permission.Rule) steps.Result {
	as, err := withKubeconfig(e)
	if err != nil {
		return kubeconfigUnread(err)
	}
	return check.MayI(ctx, as, rights, "")
}

func leastPrivilege(ctx context.Context, e steps.Env) steps.Result {
	renkus := cluster.Selector{Labels: "app=renku"}
	e.Cluster.StartSelected(check.PriorityClasses, "", renkus)
	as, err := withKubeconfig(e)
	if err != nil {
		return kubeconfigUnread(err)
	}
	ns := sessionsNamespace(e)
	meant := map[string][]rbacv1.PolicyRule{ns: roleRules(e), "": clusterRules(e)}
	// Ignore a few unused verbs in the published guide's Role.
	meant[ns] = append(meant[ns], rule("", "resourcequotas", "update", "watch"), check.PullsImages)
	// Another link can share the account and have other pools.
	classes, err := check.List[schedulingv1.PriorityClass](ctx, e.Cluster, check.PriorityClasses, "", renkus)
	if err != nil {
		return steps.Errored(err)
	}
	names := e.Answers.List("pools.quotas")
	for _, c := range classes {
		names = append(names, c.Name)
	}
	for _, name := range names {
		meant[""] = append(meant[""], deletionRule(name))
	}
	spaces := slices.Compact([]string{ns, "default", "kube-system"})
	r, excess := check.Excess(ctx, as, meant, spaces)
	if r.Status == steps.Fail {
		return withoutExcess(ctx, e, excess, r)
	}
	return r
}

func reachedFromInside(ctx context.Context, e steps.Env) steps.Result {
	ns, name := renkuNamespace(e), "carrick-reach-"+e.Link
	job, err := check.Get[batchv1.Job](ctx, e.Cluster, check.Jobs, ns, name)
	if err != nil {
		return check.Missing(err, "Job "+ns+"/"+name, "")
	}
	if asked, is := askedAddress(job); is && asked != e.Answers.Text("remote.server") {
		return steps.Failed(
			fmt.Sprintf(
				"Job %s tested %s, but the server in the kubeconfig is now %s", name, clean.Text(asked),
				clean.Text(e.Answers.Text("remote.server")),
			),
			e.Kubectl()+" -n "+ns+" delete job "+name+" && "+e.ApplyStep("kubeconfig"),
		)
	}
	if job.Status.Succeeded == 0 && job.Status.Failed == 0 {
		return steps.Waits(job.CreationTimestamp.Time, "Job %s is running", name)
	}
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, ns, cluster.Selector{Labels: "batch.kubernetes.io/job-name=" + name},
	)
	if err != nil {
		return steps.Errored(err)
	}
	if len(pods) == 0 {
		return steps.Skipped("Job %s has finished and its pod no longer exists, so its log cannot be read", name)
	}
	pod := pods[len(pods)-1].Name
	log, err := tracked.Look(
		ctx, "log/"+ns+"/"+pod, time.Hour,
		func(ctx context.Context) (string, error) { return e.Cluster.Logs(ctx, ns, pod, "ask", 50) },
	)
	if err != nil {
		return steps.Errored(err)
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	again := e.Kubectl() + " -n " + ns + " logs " + pod + "; then delete Job " + name + " and run " +
		e.ApplyStep("kubeconfig")
	if strings.Contains(log, "(Unauthorized)") || strings.Contains(log, "(Forbidden)") {
		return steps.Passed(
			"a pod on node %s reached the API server, which rejects requests without credentials",
			pods[len(pods)-1].Spec.NodeName,
		)
	}
	if json.Unmarshal([]byte(log), &version) != nil || version.GitVersion == "" {
		return steps.Failed(
			fmt.Sprintf("the test from node %s failed: %s", pods[len(pods)-1].Spec.NodeName, firstLine(log)), again,
		)
	}
	return steps.Passed(
		"a pod on node %s reached the API server (Kubernetes %s)", pods[len(pods)-1].Spec.NodeName, version.GitVersion,
	)
}

// askedAddress returns the server address in the Job's command.
func askedAddress(job *batchv1.Job) (string, bool) {
	for _, c := range job.Spec.Template.Spec.Containers {
		for _, arg := range c.Command {
			if at, is := strings.CutPrefix(arg, "--server="); is {
				return at, true
			}
		}
	}
	return "", false
}

func firstLine(s string) string {
	for i, r := range s {
		if r == '\n' {
			return s[:i]
		}
	}
	if s == "" {
		return "the log is empty"
	}
	return s
}
