package check

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/permission"
	"carrick/steps"
)

// AccountPrefix is the prefix of every ServiceAccount's user name.
const AccountPrefix = "system:serviceaccount:"

// Account is a ServiceAccount.
type Account struct{ Namespace, Name string }

// Username returns the user name under which the API server authenticates the account.
func (a Account) Username() string { return AccountPrefix + a.Namespace + ":" + a.Name }

// User returns the account with the groups that the API server adds to it.
func (a Account) User() cluster.User {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"}
	return cluster.User{Name: a.Username(), Groups: groups}
}

// Is reports whether a subject of a binding is the account.
func (a Account) Is(s rbacv1.Subject) bool { return IsUser(s, a.Username()) }

// IsUser reports whether a subject of a binding is the user called username. A ServiceAccount matches by its kind or by
// its user name. A ServiceAccount subject without a namespace matches no user, even in a RoleBinding.
func IsUser(s rbacv1.Subject, username string) bool {
	switch s.Kind {
	case rbacv1.UserKind:
		return s.Name == username
	case rbacv1.ServiceAccountKind:
		return Account{s.Namespace, s.Name}.Username() == username
	}
	return false
}

// Denied describes the permissions in rights that user does not have. expected is true if the user should have them.
// The credentials of c require the permission to create SubjectAccessReviews.
func Denied(
	ctx context.Context, c *cluster.Cluster, user cluster.User, expected bool, rights ...permission.Rule,
) ([]string, error) {
	all, err := c.CanAs(ctx, user, expected, rights...)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range all {
		if d.Err != nil {
			return nil, d.Err
		}
		if !d.Allowed {
			out = append(out, d.Rule.String())
		}
	}
	return out, nil
}

// TokenSecret verifies that s is a token Secret of the account in its namespace and has the keys. recreate is the fix
// for a Secret that Kubernetes never fills for that account.
func TokenSecret(e steps.Env, s *cluster.Secret, account, recreate string, keys ...string) steps.Result {
	name, of := s.Namespace+"/"+s.Name, s.Annotations[corev1.ServiceAccountNameKey]
	switch {
	case s.Type != string(corev1.SecretTypeServiceAccountToken):
		return steps.Failed(fmt.Sprintf("Secret %s has type %s, which Kubernetes does not fill", name, s.Type), recreate)
	case of != account:
		return steps.Failed(fmt.Sprintf("Secret %s belongs to ServiceAccount %q, not %q", name, of, account), recreate)
	}
	return TokenFilled(e, s, keys...)
}

// TokenFilled verifies that the controller manager has filled a token Secret, so that it has all keys. It waits while a
// key is empty.
func TokenFilled(e steps.Env, s *cluster.Secret, keys ...string) steps.Result {
	for _, key := range keys {
		if s.Keys[key] == 0 {
			return steps.Waits(s.Created, "Secret %s/%s has no %s yet", s.Namespace, s.Name, key).Or(
				"is the controller manager running? " + e.Kubectl() +
					" -n kube-system get pods -l component=kube-controller-manager")
		}
	}
	return steps.Passed("Secret %s/%s", s.Namespace, s.Name)
}

// AuthenticatesAs verifies that the API server authenticates a credential as username. refused returns the result for a
// 401 response. other returns the result if the credential belongs to another user called name.
func AuthenticatesAs(
	ctx context.Context, credential *cluster.Cluster, username string, refused func() steps.Result,
	other func(name string) steps.Result,
) steps.Result {
	who, err := credential.WhoAmI(ctx)
	switch {
	case apierrors.IsUnauthorized(err):
		return refused()
	case err != nil:
		return steps.Errored(err)
	case who.Name != username:
		return other(who.Name)
	}
	return steps.Passed("authenticated as %s", who.Name)
}
