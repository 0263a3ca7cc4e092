package liqo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

func offloadingReady(ctx context.Context, e steps.Env) steps.Result {
	name := e.Answers.Text("offloading.namespace")
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	var ns, o *unstructured.Unstructured
	err = check.Together(
		func() (err error) { ns, err = present(ctx, e, check.Namespaces, "", name); return err },
		func() (err error) { o, err = present(ctx, e, namespaceOffloadings, name, offloadingName); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	if o == nil {
		lacks := "it has no NamespaceOffloading"
		if ns == nil {
			lacks = "it does not exist"
		}
		return steps.Undone("namespace " + name + " is not offloaded: " + lacks)
	}
	if r := judgeOffloading(e, o, id); r.Status != steps.Pass {
		return r
	}
	if text(o, "spec", "podOffloadingStrategy") != "Local" && (ns == nil || ns.GetLabels()[scheduledLabel] != "true") {
		return steps.Warned(
			fmt.Sprintf(
				"namespace %s is offloaded but lacks the label %s: \"true\", so Liqo's webhook ignores new pods in it",
				name, scheduledLabel,
			),
			e.Kubectl()+" label namespace "+name+" "+scheduledLabel+"=true",
		)
	}
	return steps.Passed(
		"namespace %s is namespace %s on %s; pod placement: %s", name, text(o, "status", "remoteNamespaceName"), id,
		text(o, "spec", "podOffloadingStrategy"),
	)
}

// judgeOffloading returns the verdict on a NamespaceOffloading for the provider with the given cluster id.
func judgeOffloading(e steps.Env, o *unstructured.Unstructured, id string) steps.Result {
	what := "NamespaceOffloading " + o.GetNamespace() + "/" + o.GetName()
	describe := e.Kubectl() + " -n " + o.GetNamespace() + " describe namespaceoffloadings.offloading.liqo.io " +
		offloadingName
	seen, is := intAt(o, "status", "observedGeneration"), int(o.GetGeneration())
	byCluster, _, _ := unstructured.NestedMap(o.Object, "status", "remoteNamespacesConditions")
	about, _ := byCluster[id].([]any)
	here := conditionsOf(about)
	ready := conditionOf(here, "Ready")
	switch phase := text(o, "status", "offloadingPhase"); {
	case o.GetDeletionTimestamp() != nil || phase == "Terminating":
		return steps.Failed(
			what+" is being deleted (finalizers "+check.OrNone(o.GetFinalizers())+
				"), together with the namespace on the provider and everything in it",
			describe,
		)
	case seen == 0:
		return steps.Waits(o.GetCreationTimestamp().Time, "Liqo has not processed %s yet", what).Or(describe)
	case seen < is:
		return steps.Waits(
			time.Time{}, "Liqo has not processed the latest change of %s yet (generation %d, observed %d)", what, is, seen,
		).Or(describe)
	case phase == "NoClusterSelected" || conditionOf(here, "OffloadingRequired").status == "False":
		return steps.Failed(
			what+" selects no virtual node of "+id+": its clusterSelector matches no such node",
			e.Kubectl()+" get nodes -l "+nodeTypeLabel+"="+virtualNodeType+
				" --show-labels    # then set offloading.clusters to labels of those nodes, or leave it empty for all providers",
		)
	case ready.reason == "CreationLoopBackOff":
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s already exists on the provider, and Liqo did not create it",
				text(o, "status", "remoteNamespaceName"),
			),
			e.PeerKubectl()+" get namespace "+steps.Quoted(text(o, "status", "remoteNamespaceName"))+
				" -o yaml    # then undo this step and change offloading.mapping or offloading.remote-name",
		)
	case phase == "AllFailed" || (phase == "SomeFailed" && ready.status != "True"):
		return steps.Failed(strings.TrimSpace(what+" has failed ("+phase+") "+ready.why()), describe)
	case phase == "SomeFailed":
		return steps.Warned(what+" is offloaded to "+id+", but failed on another provider", describe)
	case phase == "Ready":
		return steps.Passed("%s is ready", what)
	default:
		return steps.Waits(
			lastMoved(o, here), "%s", strings.TrimSpace(what+" is "+cmp.Or(phase, "None")+" "+ready.why()),
		).Or(describe)
	}
}

func olderPods(ctx context.Context, e steps.Env) steps.Result {
	name := e.Answers.Text("offloading.namespace")
	o, err := present(ctx, e, namespaceOffloadings, name, offloadingName)
	if err != nil {
		return steps.Errored(err)
	}
	if o == nil {
		return steps.Skipped("namespace %s is not offloaded", name)
	}
	if text(o, "spec", "podOffloadingStrategy") == "Local" {
		return steps.Passed("all pods of the namespace stay on the consumer")
	}
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, name, cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	var owned, bare []string
	for _, p := range pods {
		switch {
		case p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" ||
			!p.CreationTimestamp.Time.Before(o.GetCreationTimestamp().Time) || tolerates(p):
		case len(p.OwnerReferences) > 0:
			owned = append(owned, p.Name)
		default:
			bare = append(bare, p.Name)
		}
	}
	if len(owned)+len(bare) == 0 {
		return steps.Passed(
			"no pod from before the offloading is pending (%s in namespace %s)", steps.Plural(len(pods), "pod"), name,
		)
	}
	fix := e.Kubectl() + " -n " + name + " delete pod " + strings.Join(slices.Concat(owned, bare), " ")
	if len(bare) > 0 {
		fix += "    # no controller recreates " + strings.Join(bare, ", ") + ": save the manifest first"
	}
	return steps.Warned(
		fmt.Sprintf(
			"%s pending since before the namespace was offloaded: %s. They cannot run on the provider",
			steps.Plural(len(owned)+len(bare), "pod"), check.OrNone(slices.Concat(owned, bare)),
		),
		fix,
	)
}

// tolerates reports whether a pod can be scheduled on virtual nodes.
func tolerates(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == virtualNodeTaint || (t.Key == "" && t.Operator == corev1.TolerationOpExists)
	})
}
