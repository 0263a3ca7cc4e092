package liqo

import (
	"context"
	"encoding/base64"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const roleLabel = "app.kubernetes.io/name=remote-controlplane"

// controlPlaneRole returns the name of the ClusterRole for consumers. It searches by label, because the chart can add a
// prefix to the name.
func controlPlaneRole(ctx context.Context, e steps.Env) (any, error) {
	found, err := check.List[rbacv1.ClusterRole](
		ctx, e.Cluster, check.ClusterRoles, "", cluster.Selector{Labels: roleLabel},
	)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("the provider has no ClusterRole with the label %s", roleLabel)
	}
	return found[0].Name, nil
}

func issuedCertificate(ctx context.Context, e steps.Env) (any, error) {
	name, err := requestName(ctx, e)
	if err != nil {
		return nil, err
	}
	csr, err := e.Cluster.Get(ctx, check.SigningRequests, "", name.(string))
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("the consumer's certificate is not requested yet")
	}
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(text(csr, "status", "certificate"))
	if err != nil || len(raw) == 0 {
		return nil, steps.Absent("the provider has not signed the consumer's certificate yet")
	}
	return string(raw), nil
}

// accountToken returns the token of the consumer's ServiceAccount. carrick gives this token to the author of the peer's
// file, so accountToken returns an error if the tenant namespace is unproved (see unprovedSpace).
func accountToken(ctx context.Context, e steps.Env) (any, error) {
	if err := proved(ctx, e); err != nil {
		return nil, err
	}
	name, err := consumerAccount(e.Peer)
	if err != nil {
		return nil, err
	}
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name+"-token", "token")
	if apierrors.IsNotFound(err) || (err == nil && s.Data["token"].IsZero()) {
		return nil, steps.Absent("the consumer's ServiceAccount has no token yet")
	}
	if err != nil {
		return nil, err
	}
	return s.Data["token"], nil
}

// providerCA returns the CA of the provider's API server in PEM. It returns "" if the answer provider.ca is context and
// the kubeconfig context trusts the system's roots.
func providerCA(ctx context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("provider.ca") == "context" {
		return string(e.Cluster.CA()), nil
	}
	return systemCA(ctx, e, "kube-root-ca.crt", "ca.crt",
		"the provider has no ConfigMap kube-system/kube-root-ca.crt; set provider.ca to context")
}

// clientCA returns the CA with which the provider's API server verifies client certificates.
func clientCA(ctx context.Context, e steps.Env) (any, error) {
	return systemCA(ctx, e, "extension-apiserver-authentication", "client-ca-file",
		"the provider has no client CA in ConfigMap kube-system/extension-apiserver-authentication")
}

// systemCA returns the value of key in a ConfigMap in kube-system. none is the error message if the key does not exist.
func systemCA(ctx context.Context, e steps.Env, name, key, none string) (any, error) {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "kube-system", name)
	if apierrors.IsNotFound(err) || (err == nil && m.Data[key] == "") {
		return nil, steps.Absent("%s", none)
	}
	if err != nil {
		return nil, err
	}
	return m.Data[key], nil
}

// bindingName returns the name of an existing RoleBinding that references the consumers' ClusterRole. If none exists,
// it returns the name that Liqo's published guide uses.
func bindingName(ctx context.Context, e steps.Env) (any, error) {
	found, err := roleBindings(ctx, e)
	if err != nil || len(found) == 0 {
		return usualBinding, err
	}
	for _, b := range found {
		if b.Name == usualBinding {
			return usualBinding, nil
		}
	}
	return found[0].Name, nil
}

// roleBindings returns the RoleBindings in the tenant namespace that reference the consumers' ClusterRole.
func roleBindings(ctx context.Context, e steps.Env) ([]*rbacv1.RoleBinding, error) {
	role, err := e.Own.Text("controlplane-role")
	if err != nil {
		return nil, err
	}
	all, err := check.List[rbacv1.RoleBinding](ctx, e.Cluster, check.RoleBindings, tenantNamespace(e), cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []*rbacv1.RoleBinding
	for _, b := range all {
		if b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == role {
			out = append(out, b)
		}
	}
	return out, nil
}
