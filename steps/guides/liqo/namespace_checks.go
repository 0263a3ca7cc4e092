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
			Name: "tenant-namespace", Title: "one namespace is the other side's, and labelled so", On: steps.Both,
			FixedBy: "${side}-namespace", Needs: []string{"cluster-id", "peer/cluster-id"},
			Why:        "Liqo finds the namespace of a peering by its labels, and stops with an error where it finds two",
			References: []string{page, spaceSource, "liqotech/liqo#3268"},
			Run:        tenantNamespaceSound,
		},
		{
			Name: "tenant-pair", Title: "each side's tenant namespace carries the other's id, not its own", On: steps.Remote,
			Needs:      []string{"cluster-id", "peer/cluster-id"},
			Why:        "two ids that were swapped look right on either side alone",
			References: []string{page},
			Run:        tenantPair,
		},
		{
			Name: "pod-security", Title: "the tenant namespace lets gateway pods run", On: steps.Both, When: joins,
			FixedBy: "${side}-namespace", Needs: []string{"tenant-namespace"},
			Why: "gateway pods are privileged: under the levels baseline and restricted none is made, and only the " +
				"ReplicaSet says why. The published guide sets no level",
			References: []string{"liqotech/liqo#2135"},
			Run:        gatewaysMayRun,
		},
		{
			Name: "leftovers", Title: "nothing of an older peering is left", On: steps.Both, Needs: []string{"signed-in"},
			Why: "what a peering left behind with a cluster that is gone, or that has another id now, keeps its ports " +
				"and address ranges, and shows as a peering that fails",
			References: []string{"liqotech/liqo#3051", "liqotech/liqo#3122"},
			Run:        leftovers,
		},
	}
}

// labelFact is the fact with the cluster id in the answered namespace's label; "" means no
// label.
const labelFact = "tenant-namespace-label"

// namespaceLabel reads that fact.
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

// forOffloading reports whether Liqo created a namespace for one that the other side offloads
// to this side: it also has the label with the other side's id.
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
			fmt.Sprintf("%d namespaces carry the id %s, and Liqo takes one: %s", len(all), id, strings.Join(all, ", ")),
			e.Kubectl()+" label namespace "+other+" "+remoteIDLabel+
				"-    # takes the label off the one that is not to be used; look first what stands in it",
		)
	}
	ns := found[0]
	switch {
	case ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating:
		return steps.Failed(fmt.Sprintf("namespace %s is being deleted%s", ns.Name, heldBy(ns)),
			e.Kubectl()+" get namespace "+ns.Name+
				" -o jsonpath='{.status.conditions}'    # says what holds it; Liqo's controllers have to run to let go")
	case ns.Name != name:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s carries the id %s, and the answer %s.tenant-namespace is %s", ns.Name, id, e.SideName(), name,
			),
			fmt.Sprintf("under answers in %s write\n  %s.tenant-namespace: %s", e.LinkFile(), e.SideName(), ns.Name),
		)
	case ns.Labels[tenantLabel] != "true":
		why := "Liqo doesn't find it without"
		if v, ok := ns.Labels[tenantLabel]; ok {
			why = fmt.Sprintf("Liqo's webhook takes no Tenant in it with %q", clean.Text(v))
		}
		return steps.Failed(fmt.Sprintf("namespace %s lacks the label %s=true: %s", name, tenantLabel, why),
			e.Kubectl()+" label --overwrite namespace "+name+" "+tenantLabel+"=true")
	}
	if claimed, err := unproved(ctx, e); err != nil {
		return steps.Errored(err)
	} else if claimed != nil {
		return steps.Failed(claimed.found(e), claimed.fix(e))
	}
	return steps.Passed("namespace %s is that of %s", name, id)
}

// noTenantNamespace returns the verdict if no namespace has the label.
func noTenantNamespace(ctx context.Context, e steps.Env, name, id string) steps.Result {
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return steps.Undone("no namespace carries the " + e.PeerName() + "'s id " + id).Or(e.ApplyStep("tenant-namespaces"))
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
			fmt.Sprintf("namespace %s is there, without the label %s=%s", name, remoteIDLabel, id),
			e.ApplyStep("tenant-namespaces"),
		)
	case err == nil && has == own:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s carries the id %s, which is the %s's own: it must be the %s's, %s", name, has, e.SideName(),
				e.PeerName(), id,
			),
			relabel,
		)
	}
	return steps.Failed(
		fmt.Sprintf("namespace %s carries the id %s: it is that of a peering with another cluster than %s", name, has, id),
		fmt.Sprintf(
			"under answers in %s write\n  %s.tenant-namespace: NAME\nwith another name; or, if %s is an id that the %s "+
				"had before: %s",
			e.LinkFile(), e.SideName(), has, e.PeerName(), relabel,
		),
	)
}

// heldBy returns why a namespace is stuck in deletion according to its conditions.
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
	only := "carrick check " + e.LinkFile() + " --only tenant-namespace    # says what to do, side by side"
	switch {
	case labels[here] == ids[here] && labels[there] == ids[there]:
		return steps.Failed(
			fmt.Sprintf(
				"the ids are swapped: namespace %s of the %s carries %s, and %s of the %s carries %s", tenantNamespace(e), here,
				labels[here], peerNamespace(e), there, labels[there],
			),
			swapped,
		)
	case labels[here] != ids[there]:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s of the %s carries %s; it must be %s", tenantNamespace(e), here, cmp.Or(labels[here], "no id"),
				ids[there],
			),
			only,
		)
	case labels[there] != ids[here]:
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s of the %s carries %s; it must be %s", peerNamespace(e), there, cmp.Or(labels[there], "no id"),
				ids[here],
			),
			only,
		)
	}
	return steps.Passed("%s here is for %s, %s there for %s", tenantNamespace(e), ids[there], peerNamespace(e), ids[here])
}

func gatewaysMayRun(ctx context.Context, e steps.Env) steps.Result {
	name := tenantNamespace(e)
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", name)
	if err != nil {
		return check.Missing(err, "namespace "+name, e.ApplyStep("tenant-namespaces"))
	}
	switch level := ns.GetLabels()[check.EnforceLabel]; level {
	case "privileged":
		return steps.Passed("%s enforces the level privileged", name)
	case "":
		return steps.Passed(
			"%s sets no level: the cluster's own default holds, which is privileged unless an admin changed it", name,
		)
	default:
		return steps.Warned(
			fmt.Sprintf("%s enforces the level %s, under which no gateway pod is made", name, clean.Text(level)),
			e.Kubectl()+" label --overwrite namespace "+name+" "+check.EnforceLabel+"=privileged",
		)
	}
}
