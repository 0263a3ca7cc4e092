package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// The adopters in this file derive answers from an existing setup, mostly from the kubeconfig in
// Renku's Secret.

func adoptNamespace(ctx context.Context, e steps.Env) (any, string, error) {
	found, err := check.List[appsv1.Deployment](
		ctx, e.Cluster, check.Deployments, "", cluster.Selector{Labels: "app=" + dataServiceApp},
	)
	if err != nil {
		return nil, "", err
	}
	var spaces []string
	for _, d := range found {
		spaces = append(spaces, d.Namespace)
	}
	slices.Sort(spaces)
	switch spaces = slices.Compact(spaces); len(spaces) {
	case 0:
		return nil, "", steps.Absent("no Deployment has label app=%s", dataServiceApp)
	case 1:
		return spaces[0], "Renku's data service runs there", nil
	}
	return nil, "", fmt.Errorf(
		"the data service of Renku runs in several namespaces (%s): set renku.namespace to one of them",
		strings.Join(spaces, " and "),
	)
}

// adoptTracking returns true if Renku's Helm release enables resource request tracking. Otherwise
// it returns no answer.
func adoptTracking(ctx context.Context, e steps.Env) (any, string, error) {
	r, err := valued(ctx, e)
	if err != nil {
		return nil, "", err
	}
	if v, _ := r.Value("dataService.dataTasks.enableResourceRequestTracking"); v == true {
		return true, "Renku's Helm value dataService.dataTasks.enableResourceRequestTracking", nil
	}
	return nil, "", nil
}

func adoptGivenServer(_ context.Context, e steps.Env) (any, string, error) {
	k, err := handedFact(e)
	if err != nil || k["server"] == "" {
		return nil, "", err
	}
	return k["server"], "the server in the kubeconfig under key " + k["key"], nil
}

func adoptKey(_ context.Context, e steps.Env) (any, string, error) {
	k, err := handedFact(e)
	if err != nil {
		return nil, "", err
	}
	ns, name := secretWhere(e)
	return k["key"], fmt.Sprintf("the key of Secret %s/%s that points to the remote cluster", ns, name), nil
}

// adoptSessions returns the namespace in the token of Renku's kubeconfig. A Secret in that
// namespace must contain the token. Without this condition, a manipulated kubeconfig could make
// apply create a ServiceAccount in any namespace.
func adoptSessions(ctx context.Context, e steps.Env) (any, string, error) {
	k, err := handedFact(e)
	if err != nil {
		return nil, "", err
	}
	ns := k["account-namespace"]
	if ns == "" {
		return nil, "", fmt.Errorf(
			"the kubeconfig under key %s authenticates with %s, not with a ServiceAccount token: set sessions.namespace to "+
				"the session namespace",
			k["key"], k["with"],
		)
	}
	all, err := e.Cluster.Secrets(ctx, ns, cluster.Selector{}, corev1.ServiceAccountTokenKey)
	if err != nil {
		return nil, "", err
	}
	if !slices.ContainsFunc(all, func(s *cluster.Secret) bool { return hasRenkuToken(e, s) }) {
		return nil, "", fmt.Errorf(
			"the token under key %s names namespace %s, but no Secret in that namespace contains the token. If the namespace "+
				"is correct, set sessions.namespace to it",
			k["key"], ns,
		)
	}
	return ns, "the namespace of the token under key " + k["key"], nil
}

// adoptIdentity returns the ServiceAccount in the token of Renku's kubeconfig. A Secret in the
// session namespace must contain the token. Without this condition, a token with forged claims
// could make apply store a token of another ServiceAccount in Renku's Secret. Everyone who can read
// that Secret would get the token.
func adoptIdentity(ctx context.Context, e steps.Env) (any, string, error) {
	k, err := handedFact(e)
	switch {
	case err != nil:
		return nil, "", err
	case k["account"] == "":
		return nil, "", fmt.Errorf(
			"the kubeconfig under key %s authenticates with %s, not with a ServiceAccount token", k["key"], k["with"],
		)
	case k["account-namespace"] != sessionsNamespace(e):
		return nil, "", fmt.Errorf(
			"the token under key %s belongs to ServiceAccount %s/%s, which is not in the session namespace %s. carrick "+
				"creates a ServiceAccount there",
			k["key"], k["account-namespace"], k["account"], sessionsNamespace(e),
		)
	}
	of, err := tokenSecrets(ctx, e, k["account"])
	if err != nil {
		return nil, "", err
	}
	if !slices.ContainsFunc(of, func(s *cluster.Secret) bool { return hasRenkuToken(e, s) }) {
		return nil, "", fmt.Errorf(
			"the token under key %s names ServiceAccount %s/%s, but no Secret in that namespace contains the token. If the "+
				"ServiceAccount is correct, set identity.name to its name",
			k["key"], k["account-namespace"], k["account"],
		)
	}
	return k["account"], "the ServiceAccount of the token under key " + k["key"], nil
}

func tokenSecrets(ctx context.Context, e steps.Env, account string) ([]*cluster.Secret, error) {
	all, err := e.Cluster.Secrets(ctx, sessionsNamespace(e), cluster.Selector{}, corev1.ServiceAccountTokenKey)
	return slices.DeleteFunc(slices.Clone(all), func(s *cluster.Secret) bool {
		return s.Type != string(corev1.SecretTypeServiceAccountToken) ||
			s.Annotations[corev1.ServiceAccountNameKey] != account
	}), err
}

func hasRenkuToken(e steps.Env, s *cluster.Secret) bool {
	token, _ := e.Peer.Masked("handed-token")
	return !token.IsZero() && s.Data[corev1.ServiceAccountTokenKey] == token
}

// adoptTokenSecret returns the name of the Secret with the token that Renku uses. If no Secret
// contains that token, it returns the ServiceAccount's token Secret, provided that there is only
// one.
func adoptTokenSecret(ctx context.Context, e steps.Env) (any, string, error) {
	if _, err := handedFact(e); err != nil {
		return nil, "", err
	}
	ns, account := sessionsNamespace(e), identityName(e)
	all, err := tokenSecrets(ctx, e, account)
	if err != nil {
		return nil, "", err
	}
	var of []string
	for _, s := range all {
		if hasRenkuToken(e, s) {
			return s.Name, "the Secret with the token that Renku uses", nil
		}
		of = append(of, s.Name)
	}
	switch len(of) {
	case 0:
		return nil, "", fmt.Errorf(
			"no Secret in %s contains a token of ServiceAccount %s. Renku's token has another source and may expire", ns,
			account,
		)
	case 1:
		return of[0], "the only token Secret of ServiceAccount " + account, nil
	}
	return nil, "", fmt.Errorf(
		"ServiceAccount %s has the token Secrets %s, but none of them contains the token that Renku uses", account,
		strings.Join(of, ", "),
	)
}

// adoptGivenCA determines the source of the CA in Renku's kubeconfig. It returns "secret" if the
// token Secret has the same CA, and "context" if the admin's context has the same CA.
func adoptGivenCA(ctx context.Context, e steps.Env) (any, string, error) {
	k, err := handedFact(e)
	if err != nil {
		return nil, "", err
	}
	s, err := e.Cluster.Secret(
		ctx, sessionsNamespace(e), e.Answers.Text("identity.token-secret"), corev1.ServiceAccountRootCAKey,
	)
	switch {
	case err == nil && check.SamePEM(k["ca"], s.Data[corev1.ServiceAccountRootCAKey].Reveal()):
		return "secret", "the CA under key " + k["key"] + " is the CA of the token Secret", nil
	case check.SamePEM(k["ca"], string(e.Cluster.CA())):
		return "context", "the CA under key " + k["key"] + " is the CA of your context", nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, "", err
	}
	return nil, "", fmt.Errorf(
		"the CA under key %s is neither the CA of the token Secret nor the CA of your context", k["key"],
	)
}

// adoptBackup returns a name for the backup file, or no answer if carrick wrote the kubeconfig's
// key in Renku's Secret. Before apply takes over a key of another tool, it saves the old value in
// this file.
func adoptBackup(ctx context.Context, e steps.Env) (any, string, error) {
	k, err := handedFact(e)
	if err != nil {
		return nil, "", err
	}
	fields, err := secretFields(ctx, e)
	if err != nil {
		return nil, "", err
	}
	for _, f := range fields {
		if steps.OwnsKey(f, k["key"]) && strings.HasPrefix(f.Manager, "carrick.") {
			return nil, "", nil
		}
	}
	return k["key"] + ".before", "the backup file for the old value if carrick takes over key " + k["key"], nil
}

// adoptQuotas returns the names of PriorityClasses that look like those of Renku's pools. They have
// the label app=renku, or the value and preemption policy that Renku uses. adoptQuotas ignores the
// ResourceQuotas in the session namespace, because anyone with the kubeconfig can create
// ResourceQuotas with arbitrary names. Apply grants the kubeconfig permission to delete each
// PriorityClass with an adopted name.
func adoptQuotas(ctx context.Context, e steps.Env) (any, string, error) {
	if _, err := handedFact(e); err != nil {
		return nil, "", err
	}
	classes, err := check.List[schedulingv1.PriorityClass](ctx, e.Cluster, check.PriorityClasses, "", cluster.Selector{})
	if err != nil {
		return nil, "", err
	}
	var out []string
	for _, c := range classes {
		never := c.PreemptionPolicy != nil && *c.PreemptionPolicy == corev1.PreemptNever
		if c.Labels["app"] == "renku" || (never && c.Value == classValue && !c.GlobalDefault) {
			out = append(out, c.Name)
		}
	}
	if len(out) == 0 {
		return nil, "", errors.New("no PriorityClass has label app=renku, or value 100 and preemptionPolicy Never")
	}
	return out, "PriorityClasses like those that Renku creates", nil
}

// adoptIsolation returns an answer only if carrick created the session namespace. If such a
// namespace has no NetworkPolicies, the admin has disabled them. In any other namespace, missing
// NetworkPolicies are a fault and must not become an answer.
func adoptIsolation(ctx context.Context, e steps.Env) (any, string, error) {
	ns := sessionsNamespace(e)
	o, err := e.Cluster.Get(ctx, check.Namespaces, "", ns)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if inventory.CreatedBy(o.GetAnnotations()) == "" {
		return nil, "", nil
	}
	all, err := check.List[networkingv1.NetworkPolicy](ctx, e.Cluster, check.NetworkPolicies, ns, cluster.Selector{})
	if err != nil {
		return nil, "", err
	}
	if len(all) > 0 {
		return true, "namespace " + ns + " has NetworkPolicies", nil
	}
	return false, "carrick created namespace " + ns + " without NetworkPolicies", nil
}
