package liqo

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

func sliceCopied(ctx context.Context, e steps.Env) steps.Result {
	if _, err := e.Peer.Value("slice"); err != nil {
		return steps.Unseen(err)
	}
	consumerID, err := peerID(e)
	if err != nil {
		return steps.Unseen(err)
	}
	name, _ := standing(e.Peer, "slice", "name").(string)
	made, _ := time.Parse(time.RFC3339, fmt.Sprint(standing(e.Peer, "slice", "made")))
	ns := tenantNamespace(e)
	got, err := e.Cluster.Get(ctx, resourceSlices, ns, name)
	if apierrors.IsNotFound(err) {
		return steps.Waits(made, "ResourceSlice %s of the consumer is not in %s yet", name, ns).
			Or(e.PeerKubectl() + " -n " + steps.Quoted(liqoSpaceOf(e.Peer)) + " logs -l app.kubernetes.io/name=crd-replicator --tail 50    # says what it was refused")
	}
	if err != nil {
		return steps.Unseen(err)
	}
	if labels := got.GetLabels(); labels[replicatedLabel] != "true" || labels[originLabel] != consumerID {
		return steps.Failed(fmt.Sprintf("ResourceSlice %s/%s is no copy of the consumer's: its labels don't say %s: \"true\" and %s: %s. It was made here, in the copy's place", ns, name, replicatedLabel, originLabel, consumerID),
			fmt.Sprintf("%s -n %s delete resourceslices.authentication.liqo.io %s", e.Kubectl(), ns, steps.Quoted(name)))
	}
	return steps.Passed("%s/%s is a copy of the consumer's", ns, name)
}

// liqoSpaceOf is Liqo's namespace on a side, for a command.
func liqoSpaceOf(f steps.Facts) string {
	if ns, err := f.Text("liqo-namespace"); err == nil {
		return ns
	}
	return usualNamespace
}

// accepted is the status of a slice's conditions that are as they should be.
const accepted = "Accepted"

func sliceAccepted(ctx context.Context, e steps.Env) steps.Result {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return steps.Unseen(err)
	}
	if s == nil {
		return steps.Failed("the consumer asks for no resources yet", "")
	}
	all := conditions(s, "status", "conditions")
	who, what := conditionOf(all, "Authentication"), conditionOf(all, "Resources")
	since := lastMoved(s, all)
	describe := e.PeerKubectl() + " -n " + peerNamespace(e) + " describe resourceslices.authentication.liqo.io " + steps.Quoted(s.GetName())
	switch {
	case who.status == "Denied":
		return steps.Failed("the provider does not take who asks: "+who.why()+". The slice's certificate request must name the slice and the consumer's id", describe)
	case what.status == "Denied":
		return resourcesDenied(e, what)
	case who.status == accepted && what.status == accepted:
		return steps.Passed("%s grants %s", text(s, "spec", "providerClusterID"), amounts(quantities(s, "status", "resources")))
	case text(s, "spec", "csr") == "":
		return steps.Waits(since, "the consumer's own Liqo has put no certificate request into the slice yet; its key is in Secret authentication-keys of its namespace").
			Or(e.Kubectl() + " -n " + liqoSpaceOf(e.Own) + " get secret authentication-keys    # then: logs -l app.kubernetes.io/name=controller-manager")
	case who.status != accepted:
		return steps.Waits(since, "the provider has not answered who asks yet; it signs a certificate for that").Or(describe)
	case custom(s):
		return steps.Waits(since, "the resources of class %q are granted by a controller of the provider's admin, which has not answered yet", text(s, "spec", "class")).
			Or("answer resources.class with default, or ask the provider's admin who grants that class")
	}
	return steps.Waits(since, "the provider has not answered what is asked for yet").Or(describe)
}

// custom tells whether a slice's class is one that Liqo does not grant itself.
func custom(s *unstructured.Unstructured) bool {
	return !slices.Contains([]string{"", "default"}, text(s, "spec", "class"))
}

// resourcesDenied is the verdict on resources that are denied: Liqo itself does
// that only for a tenant that is cordoned or drained.
func resourcesDenied(e steps.Env, c condition) steps.Result {
	found := "the provider denies the resources: " + c.why()
	if now, _ := standing(e.Peer, "tenant", "condition").(string); now == "Cordoned" || now == "Drained" {
		return steps.Failed(found+". Its Tenant is "+now, "answer tenant.condition with Active, then: "+mends(e, "authentication"))
	}
	return steps.Failed(found, e.PeerKubectl()+" -n "+peerNamespace(e)+" get tenants.authentication.liqo.io -o yaml    # spec.tenantCondition must be Active")
}
