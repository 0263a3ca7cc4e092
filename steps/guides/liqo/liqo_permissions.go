package liqo

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/check"
)

// neededPermissions returns the permissions for the objects that the guide writes on the env's
// side with these answers.
func neededPermissions(e steps.Env) []permission.Rule {
	ns := tenantNamespace(e)
	need := check.ToApply("", check.Namespaces)
	if joins(e) {
		gateways := gatewayClients
		if listens(e) {
			gateways = gatewayServers
		}
		need = slices.Concat(
			need, check.ToApply(ns, check.Secrets, configurations, publicKeys, gateways), check.ToFollow(ns, connections),
		)
	}
	if e.Side == steps.Local {
		return slices.Concat(
			need, check.ToApply(ns, check.Secrets, resourceSlices), check.ToFollow(ns, virtualNodes, identities),
			check.ToApply(e.Answers.Text("offloading.namespace"), namespaceOffloadings),
		)
	}
	need = append(need, check.ToApply(ns, tenants, check.RoleBindings)...)
	if certified(e) {
		return slices.Concat(need, check.ToApply("", check.SigningRequests),
			check.Verbs(check.SigningRequests.Group, check.SigningRequests.Resource+"/approval", "", "update"),
			[]permission.Rule{{Verb: "approve", Group: check.SigningRequests.Group, Resource: "signers", Name: signer}})
	}
	return append(need, check.ToApply(ns, check.ServiceAccounts, check.Secrets)...)
}

// foreseen announces the objects that checks will read later, for users who must request
// permissions.
func foreseen(e steps.Env) {
	e.Cluster.WillRead(check.ValidatingWebhooks, "")
	e.Cluster.WillRead(check.MutatingWebhooks, "")
	liqo, err := liqoSpace(e)
	if apierrors.IsForbidden(err) { // so that most users have to request permissions only once
		liqo, err = usualNamespace, nil
	}
	if err == nil {
		e.Cluster.WillRead(check.Deployments, liqo)
		e.Cluster.WillRead(check.DaemonSets, liqo)
		e.Cluster.WillRead(check.Pods, liqo)
		e.Cluster.WillRead(check.EndpointSlices, liqo)
		e.Cluster.WillRead(check.Secrets, liqo) // the certificate of the webhooks
	}
}

// foreseenOfPeer announces the objects in the namespaces of this peering.
func foreseenOfPeer(e steps.Env) {
	e.Cluster.WillRead(check.Deployments, tenantNamespace(e))
	e.Cluster.WillRead(check.Pods, tenantNamespace(e))
	if e.Side == steps.Local {
		e.Cluster.WillRead(check.Pods, e.Answers.Text("offloading.namespace"))
	}
}

func mayPeer(ctx context.Context, e steps.Env) steps.Result {
	foreseen(e)
	// Without permission to list namespaces, the tenant namespace cannot be determined.
	var may steps.Result
	var bind []permission.Rule
	err := check.Together(
		func() error {
			may = check.MayI(ctx, e.Cluster, check.Verbs("", "namespaces", "", "list"), "")
			return nil
		},
		func() (err error) {
			if e.Side == steps.Remote {
				bind, err = toBind(ctx, e)
			}
			return err
		},
	)
	who := e.SideName() + " cluster"
	if may.Status != steps.Pass {
		return check.MayMake(ctx, e, who, check.ToApply("", check.Namespaces))
	}
	if _, err := peerID(e); steps.IsAbsent(err) {
		return steps.Skipped("the required permissions depend on the %s's cluster id: %s", e.PeerName(), err)
	}
	if err != nil {
		return steps.Errored(err)
	}
	foreseenOfPeer(e)
	need := append(neededPermissions(e), bind...)
	return check.MayMake(ctx, e, who, need, check.NamespacesOf(need)...)
}

// toBind returns the permission to bind the consumers' role, unless the admin has all permissions
// that the role grants: Kubernetes prevents users from granting permissions that they do not have.
// It returns none if the role does not exist or cannot be read. Other checks report that.
func toBind(ctx context.Context, e steps.Env) ([]permission.Rule, error) {
	name, err := e.Own.Text("controlplane-role")
	if steps.IsAbsent(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	role, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", name)
	if apierrors.IsForbidden(err) {
		role, err = &rbacv1.ClusterRole{}, nil // the role's rules are unknown: require the permission to bind it
	}
	if err != nil {
		return nil, err
	}
	bind := permission.Rule{
		Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Namespace: tenantNamespace(e), Name: name,
	}
	granted := grantedBy(role.Rules, tenantNamespace(e))
	decisions, err := e.Cluster.Can(ctx, append(granted, bind)...)
	if err != nil {
		return nil, err
	}
	holdsAll := len(granted) > 0
	for _, d := range decisions {
		if d.Err != nil {
			return nil, d.Err
		}
		if d.Rule != bind && !d.Allowed {
			holdsAll = false
		}
	}
	if holdsAll {
		return nil, nil
	}
	return []permission.Rule{bind}, nil
}

// grantedBy returns the permissions that rules grant in a namespace, one by one.
func grantedBy(rules []rbacv1.PolicyRule, namespace string) []permission.Rule {
	var out []permission.Rule
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				name, sub, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					out = append(
						out, permission.Rule{Verb: verb, Group: group, Resource: name, Subresource: sub, Namespace: namespace},
					)
				}
			}
		}
	}
	return out
}
