package liqo

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// usedVerbs lists the verbs that Liqo's replicator uses on the objects that it copies.
var usedVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// answers contains the results of requests to the provider's API server with the new kubeconfig.
type answers struct {
	who         cluster.User
	unknown     error // the error if the user is unknown
	may, renews steps.Result
}

func ask(ctx context.Context, as *cluster.Cluster, ns string) answers {
	var out answers
	writes := func(group string, resource string) []permission.Rule {
		return check.Verbs(group, resource, ns, usedVerbs...)
	}
	_ = check.Together(
		func() error { out.who, out.unknown = as.WhoAmI(ctx); return nil },
		func() error {
			out.may = check.MayI(
				ctx, as,
				slices.Concat(writes(resourceSlices.Group, "resourceslices"), writes(namespaceMaps.Group, "namespacemaps")), "",
			)
			return nil
		},
		func() error { out.renews = check.MayI(ctx, as, writes(resourceSlices.Group, "renews"), ""); return nil },
	)
	return out
}

// credentialPermissions requests the consumer's user name and permissions from the provider's API server. The result
// also proves that the server belongs to the provider, because no other cluster grants this user these permissions in
// the tenant namespace.
func credentialPermissions(ctx context.Context, e steps.Env) steps.Result {
	as, err := check.WithKubeconfig(e, kubeconfigName)
	if err != nil {
		return unparsed(err)
	}
	want, err := e.Own.Text("credential-user")
	if err != nil {
		return steps.Errored(err)
	}
	ns := peerNamespace(e)
	said, bind := ask(ctx, as, ns), e.ApplyStep("credentials")
	switch {
	case apierrors.IsUnauthorized(said.unknown):
		fix, err := anotherCertificate(e)
		if err != nil {
			return steps.Errored(err)
		}
		return steps.Failed(
			"the API server at "+as.Server()+
				" rejects the credential (401). The credential has expired, or the address belongs to another cluster",
			"compare the address with "+e.PeerKubectl()+" cluster-info. If both are the same cluster: "+fix,
		)
	case said.unknown != nil:
		return steps.Errored(said.unknown)
	case said.who.Name != want:
		return steps.Failed(
			fmt.Sprintf("the kubeconfig authenticates as %s, not as %s", said.who.Name, want), kubeconfigFix(e, bind),
		)
	case said.may.Status != steps.Pass:
		return said.may.Or(bind)
	case said.renews.Status == steps.Fail:
		return steps.Warned(
			"the kubeconfig cannot write renews, so certificates of ResourceSlices expire without renewal",
			"upgrade Liqo on the provider: its ClusterRole for consumers has no rule for the resource renews",
		)
	case said.renews.Status != steps.Pass:
		return said.renews
	}
	return steps.Passed(
		"user %s in namespace %s of %s has %d permissions on resourceslices, namespacemaps and renews. No other cluster "+
			"grants them to this user",
		said.who.Name, ns, as.Server(), 3*len(usedVerbs),
	)
}

func credentialLeast(ctx context.Context, e steps.Env) steps.Result {
	as, err := check.WithKubeconfig(e, kubeconfigName)
	if err != nil {
		return unparsed(err)
	}
	user, err := e.Own.Text("credential-user")
	if err != nil {
		return steps.Errored(err)
	}
	spaces := []string{peerNamespace(e), "default", "kube-system"}
	if liqo, err := e.Peer.Text("liqo-namespace"); err == nil && !slices.Contains(spaces, liqo) {
		spaces = append(spaces, liqo)
	}
	meant := map[string][]rbacv1.PolicyRule{peerNamespace(e): slices.Concat(copied, renewed)}
	return check.OnlyWithin(ctx, as, meant, spaces,
		e.PeerKubectl()+" get rolebindings,clusterrolebindings -A -o wide | grep -w "+steps.Quoted(user)+
			"    # delete the binding that grants the extra permission; its subject can also be a group of the certificate")
}
