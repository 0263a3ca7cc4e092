package liqo

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// usedVerbs are what Liqo's replicator does to what it copies.
var usedVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// withKubeconfig is the provider, seen with the new kubeconfig.
func withKubeconfig(e steps.Env) (*cluster.Cluster, error) {
	m, err := e.Own.Masked("kubeconfig")
	if err != nil {
		return nil, err
	}
	return e.Cluster.As([]byte(m.Reveal()))
}

// credentialRights asks the provider who the consumer is there, and what it may.
// That it is the provider shows in this: no other cluster knows that user and
// grants it these rights in that namespace.
func credentialRights(ctx context.Context, e steps.Env) steps.Result {
	as, err := withKubeconfig(e)
	if err != nil {
		return unparsed(err)
	}
	want, err := e.Own.Text("credential-user")
	if err != nil {
		return steps.Unseen(err)
	}
	ns := peerNamespace(e)
	var who cluster.User
	var may, renews steps.Result
	var unknown error
	_ = check.Together(
		func() error { who, unknown = as.WhoAmI(ctx); return nil },
		func() error {
			may = check.MayI(ctx, as, slices.Concat(check.Verbs(resourceSlices.Group, "resourceslices", ns, usedVerbs...), check.Verbs(namespaceMaps.Group, "namespacemaps", ns, usedVerbs...)), "")
			return nil
		},
		func() error {
			renews = check.MayI(ctx, as, check.Verbs(resourceSlices.Group, "renews", ns, usedVerbs...), "")
			return nil
		},
	)
	bind := mends(e, "credentials")
	switch {
	case apierrors.IsUnauthorized(unknown):
		fix, err := anotherCertificate(e)
		if err != nil {
			return steps.Unseen(err)
		}
		return steps.Failed("the API server at "+as.Server()+" refuses it (401): it has expired, or that is another cluster than the one that it is of", "compare with "+e.PeerKubectl()+" cluster-info; else "+fix)
	case unknown != nil:
		return steps.Unseen(unknown)
	case who.Name != want:
		return steps.Failed(fmt.Sprintf("it signs in as %s, not as %s", who.Name, want), kubeconfigFix(e, bind))
	case may.Status != steps.Pass:
		return may.Or(bind)
	case renews.Status == steps.Fail:
		return steps.Warned("it may not write renews: the certificates of ResourceSlices end and are not renewed", "upgrade Liqo on the provider: its ClusterRole for consumers lacks renews")
	case renews.Status != steps.Pass:
		return renews
	}
	return steps.Passed("as %s, in %s of %s: %d rights on resourceslices, namespacemaps and renews; no other cluster binds that name", who.Name, ns, as.Server(), 3*len(usedVerbs))
}

func credentialLeast(ctx context.Context, e steps.Env) steps.Result {
	as, err := withKubeconfig(e)
	if err != nil {
		return unparsed(err)
	}
	user, err := e.Own.Text("credential-user")
	if err != nil {
		return steps.Unseen(err)
	}
	spaces := []string{peerNamespace(e), "default", "kube-system"}
	if liqo, err := e.Peer.Text("liqo-namespace"); err == nil && !slices.Contains(spaces, liqo) {
		spaces = append(spaces, liqo)
	}
	meant := map[string][]rbacv1.PolicyRule{peerNamespace(e): slices.Concat(copied, renewed)}
	return check.OnlyWithin(ctx, as, meant, spaces,
		e.PeerKubectl()+" get rolebindings,clusterrolebindings -A -o wide | grep -w "+steps.Quoted(user)+"    # delete what grants it; a group of the certificate may, too")
}
