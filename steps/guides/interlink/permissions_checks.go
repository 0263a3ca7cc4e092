package interlink

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

const vkRoleSource = "interlink-hq/interlink-helm-chart: interlink/templates/service-account.yaml"

func rightsChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "kubelet-creates-tokens", Title: "The virtual kubelet can create tokens for the jobs", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Without this permission the virtual kubelet passes an empty token file and reports the error only in its " +
				"log. The job starts anyway.",
			References: []string{vkSource, vkRoleSource}, Run: kubeletMints,
		},
		{
			Name: "kubelet-least-privilege", Title: "The virtual kubelet can create tokens only for the jobs", On: steps.Local,
			Needs: []string{"kubelet-creates-tokens"},
			Why: "With the chart's ClusterRole, whoever controls the virtual kubelet or reads its non-expiring token " +
				"can become any ServiceAccount, even a cluster admin.",
			References: []string{vkRoleSource}, Run: kubeletMintsNoMore,
		},
	}
}

func tokensIn(namespace string) permission.Rule {
	return permission.Rule{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace}
}

func kubeletMints(ctx context.Context, e steps.Env) steps.Result {
	ns := workloadNamespace(e)
	acts := permission.Rule{Verb: "patch", Resource: "nodes", Subresource: "status"} // not granted to tenants
	lacks, err := check.Denied(ctx, e.Cluster, vkIdentity(e).User(), true, acts, tokensIn(ns),
		permission.Rule{Verb: "get", Resource: "configmaps", Namespace: ns},
		permission.Rule{Verb: "get", Resource: "pods", Namespace: ns})
	if err != nil {
		return steps.Errored(err)
	}
	if slices.Contains(lacks, acts.String()) {
		return steps.Failed(
			fmt.Sprintf("%s cannot %s, so it does not belong to a virtual kubelet and must not create tokens", vkUser(e), acts),
			fmt.Sprintf(
				"set vk.namespace to the namespace where InterLink's chart is installed: %s get deployments -A -l app=%s",
				e.Kubectl(), nodeName(e),
			),
		)
	}
	if len(lacks) > 0 {
		return steps.Failed(
			fmt.Sprintf("%s cannot %s, so jobs get an empty token", vkUser(e), strings.Join(lacks, " or ")), grantTokens(e, ns),
		)
	}
	return steps.Passed("%s can create tokens in namespace %s", vkUser(e), ns)
}

// grantTokens returns commands that allow the virtual kubelet to create tokens in namespace ns.
func grantTokens(e steps.Env, ns string) string {
	k, name := e.Kubectl()+" -n "+ns, nodeName(e)+"-tokens"
	return fmt.Sprintf(
		"%s create role %s --verb=create --resource=serviceaccounts/token\n%s create role %s-reads --verb=get,list,watch "+
			"--resource=configmaps,pods\n",
		k, name, k, name,
	) +
		fmt.Sprintf(
			"%s create rolebinding %s --role=%s --serviceaccount=%s:%s\n%s create rolebinding %s-reads --role=%s-reads "+
				"--serviceaccount=%s:%s",
			k, name, name, vkNamespace(e), nodeName(e), k, name, name, vkNamespace(e), nodeName(e),
		)
}

func kubeletMintsNoMore(ctx context.Context, e steps.Env) steps.Result {
	lacks, err := check.Denied(ctx, e.Cluster, vkIdentity(e).User(), false, tokensIn(""))
	if err != nil {
		return steps.Errored(err)
	}
	if len(lacks) > 0 {
		return steps.Passed("the virtual kubelet cannot create tokens in all namespaces")
	}
	said := fmt.Sprintf(
		"%s can create a token for every ServiceAccount of the cluster, through ClusterRole %s-role of the chart", vkUser(e),
		nodeName(e),
	)
	if s, err := e.Cluster.Secret(ctx, vkNamespace(e), nodeName(e)+"-secret"); err == nil &&
		s.Type == string(corev1.SecretTypeServiceAccountToken) {
		said += fmt.Sprintf("; Secret %s/%s-secret contains a token for it that never expires", vkNamespace(e), nodeName(e))
	} else if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return steps.Errored(err)
	}
	return steps.Warned(said, grantTokens(e, workloadNamespace(e))+
		fmt.Sprintf(
			"\n%s edit clusterrole %s-role    # remove serviceaccounts/token, and repeat this after each upgrade of the chart",
			e.Kubectl(), nodeName(e),
		))
}

// jobHours returns the maximum run time of a job.
func jobHours(e steps.Env) time.Duration {
	return time.Duration(e.Answers.Int("vk.job-hours")) * time.Hour
}

// meanwhile runs read and concurrently lists the virtual kubelet's pods, so that the caller finds the pods in the
// cache.
func meanwhile(ctx context.Context, e steps.Env, read func() error) error {
	return check.Together(read, func() error {
		_, _ = podsOfKubelet(ctx, e) // the caller's own read returns the error
		return nil
	})
}

// podsOfKubelet returns the virtual kubelet's pods that are not being deleted.
func podsOfKubelet(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	all, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, vkNamespace(e), cluster.Selector{Labels: "app=" + nodeName(e)},
	)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, p := range all {
		if p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out, nil
}
