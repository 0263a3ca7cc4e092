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

// neededPermissions returns the permissions for the objects that the guide writes on this side.
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

// announceReads announces the objects that checks will read later, so that a user can request all required permissions
// at once.
func announceReads(e steps.Env) {
	e.Cluster.WillRead(check.ValidatingWebhooks, "")
	e.Cluster.WillRead(check.MutatingWebhooks, "")
	liqo, err := liqoSpace(e)
	if apierrors.IsForbidden(err) { // assume the default, so that most users need to request permissions only once
		liqo, err = usualNamespace, nil
	}
	if err == nil {
		e.Cluster.WillRead(check.Deployments, liqo)
		e.Cluster.WillRead(check.DaemonSets, liqo)
		e.Cluster.WillRead(check.Pods, liqo)
		e.Cluster.WillRead(check.EndpointSlices, liqo)
		e.Cluster.WillRead(check.Secrets, liqo) // for the webhooks' certificate
	}
}

// announcePeerReads announces the objects that checks will read in the namespaces of this peering.
func announcePeerReads(e steps.Env) {
	e.Cluster.WillRead(check.Deployments, tenantNamespace(e))
	e.Cluster.WillRead(check.Pods, tenantNamespace(e))
	if e.Side == steps.Local {
		e.Cluster.WillRead(check.Pods, e.Answers.Text("offloading.namespace"))
	}
}

func mayPeer(ctx context.Context, e steps.Env) steps.Result {
	announceReads(e)
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
	announcePeerReads(e)
	need := append(neededPermissions(e), bind...)
	return check.MayMake(ctx, e, who, need, check.NamespacesOf(need)...)
}

// toBind returns the permission to bind the consumers' ClusterRole. If the admin already has all permissions that the
// ClusterRole grants, toBind returns none. Kubernetes prevents users from granting permissions that they do not have.
// If the ClusterRole does not exist or its name cannot be read, toBind also returns none, because other checks report
// this problem.
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
		role, err = &rbacv1.ClusterRole{}, nil // the role's rules are unknown, so require the permission to bind it
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

// grantedBy expands RBAC rules to the individual permissions that they grant in a namespace.
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
