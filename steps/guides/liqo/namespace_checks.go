package liqo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const spaceSource = "liqotech/liqo: pkg/tenantNamespace/namespaceManager.go"

func namespaceChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "tenant-namespace", Title: "One namespace is labelled as the peer's tenant namespace", On: steps.Both,
			FixedBy: "${side}-namespace", Needs: []string{"cluster-id", "peer/cluster-id"},
			Why: "Liqo finds the namespace of a peering by its labels, and stops with an error if two namespaces have " +
				"these labels.",
			References: []string{page, spaceSource, "liqotech/liqo#3268"},
			Run:        tenantNamespaceSound,
		},
		{
			Name: "tenant-pair", Title: "Each tenant namespace has the other side's cluster id", On: steps.Remote,
			Needs:      []string{"cluster-id", "peer/cluster-id"},
			Why:        "If the ids are swapped, each side looks correct on its own.",
			References: []string{page},
			Run:        tenantPair,
		},
		{
			Name: "pod-security", Title: "The tenant namespace allows gateway pods", On: steps.Both, When: joins,
			FixedBy: "${side}-namespace", Needs: []string{"tenant-namespace"},
			Why: "Pod Security levels baseline and restricted block the privileged gateway pods, with an error only in " +
				"the ReplicaSet; the published guide sets no level.",
			References: []string{"liqotech/liqo#2135"},
			Run:        gatewaysMayRun,
		},
		{
			Name: "leftovers", Title: "No leftovers of an earlier peering exist", On: steps.Both, Needs: []string{"signed-in"},
			Why: "Leftovers of a peering with a removed or renamed cluster keep their ports and address ranges, and " +
				"Liqo shows them as a failed peering.",
			References: []string{"liqotech/liqo#3051", "liqotech/liqo#3122"},
			Run:        leftovers,
		},
	}
}

// labelFact is the name of the fact with the cluster id in the tenant namespace's label. If the namespace has no such
// label, the fact's value is "".
const labelFact = "tenant-namespace-label"

func namespaceLabel(ctx context.Context, e steps.Env) (any, error) {
	name := tenantNamespace(e)
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("the %s has no namespace %s yet", e.SideName(), name)
	}
	if err != nil {
		return nil, err
	}
	return clean.Text(ns.GetLabels()[remoteIDLabel]), nil
}

// forOffloading reports whether Liqo created a namespace for an offloaded namespace of the other side. Such a namespace
// is also labelled with the other side's cluster id.
func forOffloading(ns *corev1.Namespace) bool { return ns.Annotations[remoteSpaceOwner] != "" }

func tenantNamespaceSound(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	label := remoteIDLabel + "=" + id
	found, err := check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", cluster.Selector{Labels: label})
	if err != nil {
		return steps.Errored(err)
	}
	found = slices.DeleteFunc(found, forOffloading)
	name := tenantNamespace(e)
	switch {
	case len(found) == 0:
		return noTenantNamespace(ctx, e, name, id)
	case len(found) > 1:
		var all []string
		for _, ns := range found {
			all = append(all, ns.Name)
		}
		other := all[slices.IndexFunc(all, func(n string) bool { return n != name })]
		return steps.Failed(
			fmt.Sprintf(
				"%d namespaces are labelled with cluster id %s, but Liqo accepts only one: %s", len(all), id,
				strings.Join(all, ", "),
			),
			e.Kubectl()+" label namespace "+other+" "+remoteIDLabel+
				"-    # removes the label from the namespace that you do not use; check its contents first",
		)
	}
	ns := found[0]
	switch {
	case ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating:
		return steps.Failed(fmt.Sprintf("namespace %s is being deleted%s", ns.Name, heldBy(ns)),
			e.Kubectl()+" get namespace "+ns.Name+
				" -o jsonpath='{.status.conditions}'    # shows what blocks the deletion; Liqo's controllers must run to remove "+
				"the finalizers")
	case ns.Name != name:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s is labelled with cluster id %s, but the answer %s.tenant-namespace is %s", ns.Name, id, e.SideName(),
				name,
			),
			fmt.Sprintf("under answers in %s, set\n  %s.tenant-namespace: %s", e.LinkFile(), e.SideName(), ns.Name),
		)
	case ns.Labels[tenantLabel] != "true":
		why := "Liqo does not find the namespace"
		if v, ok := ns.Labels[tenantLabel]; ok {
			why = fmt.Sprintf("Liqo's webhook rejects Tenants in it while the value is %q", clean.Text(v))
		}
		return steps.Failed(fmt.Sprintf("namespace %s lacks the label %s=true: %s", name, tenantLabel, why),
			e.Kubectl()+" label --overwrite namespace "+name+" "+tenantLabel+"=true")
	}
	if claimed, err := unproved(ctx, e); err != nil {
		return steps.Errored(err)
	} else if claimed != nil {
		return steps.Failed(claimed.found(e), claimed.fix(e))
	}
	return steps.Passed("namespace %s is the tenant namespace of %s", name, id)
}

// noTenantNamespace returns the verdict for the case where no namespace is labelled with the peer's cluster id. name is
// the tenant namespace in the answers.
func noTenantNamespace(ctx context.Context, e steps.Env, name, id string) steps.Result {
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return steps.Undone(
			"no namespace is labelled with the " + e.PeerName() + "'s cluster id " + id,
		).Or(e.ApplyStep("tenant-namespaces"))
	}
	if err != nil {
		return steps.Errored(err)
	}
	relabel := e.Kubectl() + " label --overwrite namespace " + name + " " + remoteIDLabel + "=" + id
	has := clean.Text(ns.Labels[remoteIDLabel])
	own, err := e.Own.Text("cluster-id")
	switch {
	case has == "":
		return steps.Failed(
			fmt.Sprintf("namespace %s exists, but lacks the label %s=%s", name, remoteIDLabel, id),
			e.ApplyStep("tenant-namespaces"),
		)
	case err == nil && has == own:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s is labelled with cluster id %s, which belongs to the %s. The label must have the %s's cluster id, %s",
				name, has,
				e.SideName(),
				e.PeerName(), id,
			),
			relabel,
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"namespace %s is labelled with cluster id %s, so it belongs to a peering with a cluster other than %s", name, has,
			id,
		),
		fmt.Sprintf(
			"under answers in %s, set\n  %s.tenant-namespace: NAME\nto another name; or, if %s is an earlier id of the %s: %s",
			e.LinkFile(), e.SideName(), has, e.PeerName(), relabel,
		),
	)
}

// heldBy returns the reason why a namespace is stuck in deletion, in the format ": MESSAGE". If the namespace's
// conditions give no reason, it returns "".
func heldBy(ns *corev1.Namespace) string {
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == corev1.NamespaceFinalizersRemaining ||
			c.Type == corev1.NamespaceContentRemaining) {
			return ": " + clean.Text(c.Message)
		}
	}
	return ""
}

func tenantPair(_ context.Context, e steps.Env) steps.Result {
	ids, labels := map[string]string{}, map[string]string{}
	here, there := e.SideName(), e.PeerName()
	for _, look := range []struct {
		fact string
		into map[string]string
	}{{"cluster-id", ids}, {labelFact, labels}} {
		var err error
		if look.into[here], err = e.Own.Text(look.fact); err != nil {
			return steps.Errored(err)
		}
		if look.into[there], err = e.Peer.Text(look.fact); err != nil {
			return steps.Errored(err)
		}
	}
	swapped := fmt.Sprintf("%s label --overwrite namespace %s %s=%s; %s label --overwrite namespace %s %s=%s",
		e.Kubectl(), tenantNamespace(e), remoteIDLabel, ids[there], e.PeerKubectl(), peerNamespace(e), remoteIDLabel,
		ids[here])
	only := "carrick check " + e.LinkFile() + " --only tenant-namespace    # shows the fix for each side"
	switch {
	case labels[here] == ids[here] && labels[there] == ids[there]:
		return steps.Failed(
			fmt.Sprintf(
				"the cluster ids are swapped: namespace %s of the %s is labelled with %s, and %s of the %s with %s",
				tenantNamespace(e), here,
				labels[here], peerNamespace(e), there, labels[there],
			),
			swapped,
		)
	case labels[here] != ids[there]:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s of the %s is labelled with %s; the label must be %s", tenantNamespace(e), here,
				cmp.Or(labels[here], "no id"),
				ids[there],
			),
			only,
		)
	case labels[there] != ids[here]:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s of the %s is labelled with %s; the label must be %s", peerNamespace(e), there,
				cmp.Or(labels[there], "no id"),
				ids[here],
			),
			only,
		)
	}
	return steps.Passed(
		"namespace %s is for %s, and namespace %s on the peer is for %s", tenantNamespace(e), ids[there], peerNamespace(e),
		ids[here],
	)
}

func gatewaysMayRun(ctx context.Context, e steps.Env) steps.Result {
	name := tenantNamespace(e)
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", name)
	if err != nil {
		return check.Missing(err, "namespace "+name, e.ApplyStep("tenant-namespaces"))
	}
	switch level := ns.GetLabels()[check.EnforceLabel]; level {
	case "privileged":
		return steps.Passed("namespace %s enforces Pod Security level privileged", name)
	case "":
		return steps.Passed(
			"namespace %s sets no Pod Security level. The cluster default applies, which is privileged unless an "+
				"admin changed it", name,
		)
	default:
		return steps.Warned(
			fmt.Sprintf("namespace %s enforces Pod Security level %s, which blocks gateway pods", name, clean.Text(level)),
			e.Kubectl()+" label --overwrite namespace "+name+" "+check.EnforceLabel+"=privileged",
		)
	}
}
