package liqo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/steps"
)

func sliceCopied(ctx context.Context, e steps.Env) steps.Result {
	if _, err := e.Peer.Value("slice"); err != nil {
		return steps.Errored(err)
	}
	consumerID, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	name := e.Peer.FieldText("slice", "name")
	made, _ := time.Parse(time.RFC3339, fmt.Sprint(e.Peer.Field("slice", "made")))
	ns := tenantNamespace(e)
	again := copyAgain(e)
	got, err := e.Cluster.Get(ctx, resourceSlices, ns, name)
	if apierrors.IsNotFound(err) {
		return steps.Waits(made, "ResourceSlice %s of the consumer does not exist in %s yet", name, ns).Or(again)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if labels := got.GetLabels(); labels[replicatedLabel] != "true" || labels[originLabel] != consumerID {
		return steps.Failed(
			fmt.Sprintf(
				"ResourceSlice %s/%s is not a copy of the consumer's ResourceSlice: it lacks the labels %s: \"true\" and %s: %s. "+
					"It was created on this side",
				ns, name, replicatedLabel, originLabel, consumerID,
			),
			fmt.Sprintf("%s -n %s delete resourceslices.authentication.liqo.io %s", e.Kubectl(), ns, steps.Quoted(name)),
		)
	}
	if old := unlikeAsked(got, e.Peer); len(old) > 0 {
		return steps.Waits(time.Time{}, "the consumer's latest change is not in the copy %s/%s yet (%s)",
			ns, name, strings.Join(old, "; ")).Or(again)
	}
	return steps.Passed("%s/%s is a copy of the consumer's ResourceSlice", ns, name)
}

// copyAgain returns the command that makes the replicator retry a rejected request. Without a restart, the replicator
// retries only after ten hours. For example, the provider rejects requests while the Tenant is drained.
//
// Source: liqotech/liqo internal/crdReplicator/reflection/handler.go (handle returns no error if the provider forbids
// the request), cmd/crd-replicator/main.go (resync-period), 557c199cf.
func copyAgain(e steps.Env) string {
	in := e.PeerKubectl() + " -n " + steps.Quoted(liqoSpaceOf(e.Peer))
	return in +
		" rollout restart deployment -l app.kubernetes.io/name=crd-replicator    # the replicator does not retry rejected " +
		"writes, for example to a drained tenant; to see them: " + in +
		" logs -l app.kubernetes.io/name=crd-replicator --tail 50"
}

// unlikeAsked lists the differences between the copy on the provider and the consumer's slice. Liqo copies every change
// to the slice's spec, so differences are temporary.
//
// Source: liqotech/liqo internal/crdReplicator/reflection/handler.go (updateRemoteObjectSpec), 557c199cf.
func unlikeAsked(copied *unstructured.Unstructured, consumer steps.Facts) []string {
	out := otherAmounts(sliceResources(copied), sliceAsks(consumer))
	meant := consumer.FieldText("slice", "class")
	is := cmp.Or(text(copied, "spec", "class"), usualClass)
	if meant = cmp.Or(meant, usualClass); is != meant {
		out = append(out, fmt.Sprintf("class: %s instead of %s", is, meant))
	}
	return out
}

func liqoSpaceOf(f steps.Facts) string {
	if ns, err := f.Text("liqo-namespace"); err == nil {
		return ns
	}
	return usualNamespace
}

const accepted = "Accepted"

func sliceAccepted(ctx context.Context, e steps.Env) steps.Result {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if s == nil {
		return steps.Undone("the consumer has requested no resources yet")
	}
	all := conditions(s, "status", "conditions")
	who, what := conditionOf(all, "Authentication"), conditionOf(all, "Resources")
	since := lastMoved(s, all)
	describe := e.PeerKubectl() + " -n " + peerNamespace(e) + " describe resourceslices.authentication.liqo.io " +
		steps.Quoted(s.GetName())
	switch {
	case who.status == "Denied":
		return identityDenied(e, who, s.GetName(), describe)
	case what.status == "Denied":
		return resourcesDenied(e, what)
	case who.status == accepted && what.status == accepted && !custom(s) && len(unlikeGranted(s)) > 0:
		return grantStale(e, s, describe)
	case who.status == accepted && what.status == accepted:
		return steps.Passed(
			"%s grants %s", text(s, "spec", "providerClusterID"), amounts(quantities(s, "status", "resources")),
		)
	case text(s, "spec", "csr") == "":
		return steps.Waits(
			since,
			"the consumer's Liqo has not added a certificate request to the ResourceSlice yet. The key for the request is in "+
				"Secret authentication-keys of Liqo's namespace",
		).
			Or(
				e.Kubectl() + " -n " + liqoSpaceOf(e.Own) +
					" get secret authentication-keys    # then: logs -l app.kubernetes.io/name=controller-manager",
			)
	case who.status != accepted:
		return steps.Waits(
			since, "the provider has not authenticated the request yet. To do so, it signs a certificate",
		).Or(describe)
	case custom(s):
		return steps.Waits(
			since, "a controller of the provider's admin must grant resources of class %q and has not done so yet",
			text(s, "spec", "class"),
		).
			Or("set resources.class to default, or ask the provider's admin about the controller of that class")
	}
	return steps.Waits(since, "the provider has not granted the resources yet").Or(describe)
}

// identityDenied returns the verdict for the case where the provider rejects the consumer's identity. The condition
// gives no reason, so identityDenied takes the reason from an event.
func identityDenied(e steps.Env, c condition, slice, describe string) steps.Result {
	said, err := e.Peer.Text("slice-warning")
	switch {
	case err != nil:
		return steps.Failed(
			"the provider denies the authentication: "+c.why()+". The reason is in the events of the provider's copy", describe,
		)
	case otherRequest(said):
		in, secret := e.PeerKubectl()+" -n "+steps.Quoted(peerNamespace(e)), signedCertificate+"-"+slice
		return steps.Failed(
			fmt.Sprintf(
				"the provider denies the authentication: Secret %s on the provider has the certificate of an earlier request, "+
					"with another key (%s)",
				secret, said,
			),
			in+" delete secret "+steps.Quoted(secret)+" && "+in+" delete resourceslices.authentication.liqo.io "+
				steps.Quoted(slice)+
				"    # the consumer's Liqo copies the request again, and the provider signs it",
		)
	case strings.Contains(said, notSigned):
		return steps.Failed(
			"the provider denies the authentication: its cluster signed no certificate for the ResourceSlice within 30 "+
				"seconds. Liqo retries ("+said+")",
			noSigner,
		)
	}
	return steps.Failed("the provider denies the authentication: "+said, describe)
}

// notSigned is Liqo's message if no signer has issued a certificate within 30 s of the approval.
//
// Source: liqotech/liqo v1.2.0, pkg/utils/csr/watcher.go (RetrieveCertificate) and
// pkg/identityManager/certificateIdentityProvider.go (ApproveSigningRequest).
const notSigned = "context canceled before certificate retrieval"

// otherRequest reports whether Liqo rejected a certificate request because it already stores a certificate for a
// different request. said is Liqo's message.
//
// Source: liqotech/liqo pkg/identityManager/interface.go (NotMatchingCSRError), v1.2.0. In v1.0.3 and v1.1.2, the
// message in certificateIdentityProvider.go also contains the cluster's name between the two parts.
func otherRequest(said string) bool {
	return strings.Contains(said, "the stored and the provided CSR ") && strings.Contains(said, " not match")
}

// unlikeGranted lists the differences between the granted and the requested resources. For the class default, Liqo
// grants exactly the requested amounts. unlikeGranted ignores resources that are no longer requested, because they stay
// granted.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/authentication/remoteresourceslice-controller
// (handleResourcesStatus), 557c199cf.
func unlikeGranted(s *unstructured.Unstructured) []string {
	asked, granted := sliceResources(s), quantities(s, "status", "resources")
	maps.DeleteFunc(granted, func(name, _ string) bool { return asked[name] == "" })
	return otherAmounts(granted, asked)
}

// grantStale returns the verdict on a grant that is older than the latest change to the slice. While the Tenant is
// cordoned, Liqo keeps the old grant and grants nothing new.
func grantStale(e steps.Env, s *unstructured.Unstructured, describe string) steps.Result {
	found := "the provider has not granted the latest change yet (" + strings.Join(unlikeGranted(s), "; ") + ")"
	if now := heldBack(e); now != "" {
		return steps.Failed(found+". Its Tenant is "+now, activate(e, now))
	}
	return steps.Waits(time.Time{}, "%s", found).Or(describe)
}

// heldBack returns the condition of the consumer's Tenant if the condition prevents new grants, and "" otherwise.
func heldBack(e steps.Env) string {
	now := e.Peer.FieldText("tenant", "condition")
	if now == cordoned || now == drained {
		return now
	}
	return ""
}

// activate returns the fix for a Tenant that is cordoned or drained. now is the Tenant's condition. For a drained
// Tenant, the fix applies all steps, because Liqo has also deleted the RoleBinding, which another step creates.
func activate(e steps.Env, now string) string {
	again := e.ApplyStep("authentication")
	if now == drained {
		again = "carrick apply " + e.LinkFile()
	}
	if e.Answers.Text("tenant.condition") != active {
		return "set tenant.condition to " + active + ", then: " + again
	}
	return again + "    # add --take-over if another tool has set the condition"
}

// usualClass is the ResourceSlice class that Liqo itself grants.
const usualClass = "default"

func custom(s *unstructured.Unstructured) bool {
	return !slices.Contains([]string{"", usualClass}, text(s, "spec", "class"))
}

// resourcesDenied returns the verdict on denied resources. Liqo itself denies resources only while the Tenant is
// cordoned or drained.
func resourcesDenied(e steps.Env, c condition) steps.Result {
	found := "the provider denies the resources: " + c.why()
	if now := heldBack(e); now != "" {
		return steps.Failed(found+". Its Tenant is "+now, activate(e, now))
	}
	return steps.Failed(
		found,
		e.PeerKubectl()+" -n "+peerNamespace(e)+
			" get tenants.authentication.liqo.io -o yaml    # spec.tenantCondition must be Active",
	)
}
