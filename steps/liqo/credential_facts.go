package liqo

import (
	"context"
	"crypto/x509"
	"encoding/base64"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

const roleLabel = "app.kubernetes.io/name=remote-controlplane"

// kubeconfigField is the key of the ControlPlane Secret.
const kubeconfigField = "kubeconfig"

// controlPlanes are the ControlPlane Secrets for the provider, wherever they are:
// Liqo takes one in the whole cluster.
func controlPlanes(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	sel, err := ofPeer(e)
	if err != nil {
		return nil, err
	}
	sel += "," + identityLabel + "=" + controlPlaneType
	found, err := living(ctx, e, secrets, "", sel)
	if apierrors.IsForbidden(err) {
		return living(ctx, e, secrets, tenantNamespace(e), sel)
	}
	return found, err
}

// controlPlane is the one in the tenant namespace, nil where there is none.
func controlPlane(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	found, err := controlPlanes(ctx, e)
	if err != nil {
		return nil, err
	}
	var here []*unstructured.Unstructured
	for _, s := range found {
		if s.GetNamespace() == tenantNamespace(e) {
			here = append(here, s)
		}
	}
	for _, s := range here {
		if s.GetName() == adopted(here, usualControlPlane(e)) {
			return s, nil
		}
	}
	return nil, nil
}

// usualControlPlane is the name that liqoctl gives.
func usualControlPlane(e steps.Env) string {
	id, err := peerID(e)
	if err != nil {
		return ""
	}
	return "kubeconfig-controlplane-" + id
}

// storedKubeconfig is what the ControlPlane Secret of that name holds.
func storedKubeconfig(ctx context.Context, e steps.Env, name string) (cluster.Masked, error) {
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name, kubeconfigField)
	if err != nil {
		return cluster.Masked{}, err
	}
	return s.Data[kubeconfigField], nil
}

// controlPlaneFact says which credential stands: its Secret ("name"), who it signs
// in as ("user"), and whether it is of the key that carrick had made ("own").
func controlPlaneFact(ctx context.Context, e steps.Env) (any, error) {
	s, err := controlPlane(ctx, e)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, steps.Absent("the consumer has no credential for the provider yet")
	}
	stored, err := storedKubeconfig(ctx, e, s.GetName())
	if err != nil {
		return nil, err
	}
	m := map[string]any{"name": s.GetName(), "user": "", "own": false}
	k, err := cluster.ParseKubeconfig([]byte(stored.Reveal()))
	if err != nil {
		return m, nil // what is wrong with it is for the checks
	}
	if cert := leaf(k.ClientCert); cert != nil {
		m["user"] = cert.Subject.CommonName
		m["own"] = ofOurKey(ctx, e, cert)
		return m, nil
	}
	if t, err := cluster.ParseToken(k.Token); err == nil {
		name, _ := accountName(e.Own)
		m["user"] = t.Subject
		m["own"] = t.Subject == accountPrefix+peerNamespace(e)+":"+name
	}
	return m, nil
}

func leaf(chain []byte) *x509.Certificate {
	certs, err := probe.ParseCerts(chain)
	if err != nil {
		return nil
	}
	return certs[0]
}

// ofOurKey tells whether a certificate is for the key that carrick had made.
func ofOurKey(ctx context.Context, e steps.Env, cert *x509.Certificate) bool {
	key, err := ourKey(ctx, e)
	return err == nil && probe.KeyMatches(cert, []byte(key.Reveal())) == nil
}

func ourKey(ctx context.Context, e steps.Env) (cluster.Masked, error) {
	name, err := credentialSecret(e)
	if err != nil {
		return cluster.Masked{}, err
	}
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name, keyField)
	if apierrors.IsNotFound(err) {
		return cluster.Masked{}, steps.Absent("the consumer's key is not made yet")
	}
	if err != nil {
		return cluster.Masked{}, err
	}
	return s.Data[keyField], nil
}

// foreign tells whether a credential stands that somebody else made. It is used
// as it is; whoever wants another one deletes its Secret.
func foreign(consumer steps.Facts) bool {
	return standing(consumer, "control-plane", "own") == false
}

// stored tells whether the consumer holds a certificate for the key that carrick
// had made.
func stored(consumer steps.Facts) bool {
	user, _ := standing(consumer, "control-plane", "user").(string)
	return standing(consumer, "control-plane", "own") == true && !isAccount(user)
}

// kubeconfigFact is what stands where somebody else made it, else what carrick
// makes of the key here and of what the provider hands over.
func kubeconfigFact(ctx context.Context, e steps.Env) (any, error) {
	if foreign(e.Own) {
		name, _ := standing(e.Own, "control-plane", "name").(string)
		return storedKubeconfig(ctx, e, name)
	}
	ca, err := e.Peer.Text("ca")
	if err != nil {
		return nil, err
	}
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	k := cluster.Kubeconfig{Name: id, Server: e.Answers.Text("provider.server"), CA: []byte(ca), Namespace: peerNamespace(e)}
	if tokened(e) {
		k.Token, err = e.Peer.Masked("token")
		return k.Bytes(), err
	}
	if k.ClientKey, err = ourKey(ctx, e); err != nil {
		return nil, err
	}
	k.ClientCert, err = certificate(ctx, e)
	return k.Bytes(), err
}

// certificate is the one that is in use, else the one that the provider has just
// issued: the cluster forgets those within the hour.
func certificate(ctx context.Context, e steps.Env) ([]byte, error) {
	if stored(e.Own) {
		name, _ := standing(e.Own, "control-plane", "name").(string)
		m, err := storedKubeconfig(ctx, e, name)
		if err != nil {
			return nil, err
		}
		if k, err := cluster.ParseKubeconfig([]byte(m.Reveal())); err == nil {
			return k.ClientCert, nil
		}
	}
	cert, err := e.Peer.Text("certificate")
	return []byte(cert), err
}

// controlPlaneRole is found by its label: the chart's name for it has a prefix
// that admins may change.
func controlPlaneRole(ctx context.Context, e steps.Env) (any, error) {
	found, err := check.List[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", cluster.Selector{Labels: roleLabel})
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
	csr, err := e.Cluster.Get(ctx, signingRequests, "", name.(string))
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("the consumer's certificate is not asked for yet")
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

func accountToken(ctx context.Context, e steps.Env) (any, error) {
	name, err := accountName(e.Peer)
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

func providerCA(ctx context.Context, e steps.Env) (any, error) {
	if e.Answers.Text("provider.ca") == "context" {
		if ca := e.Cluster.CA(); len(ca) > 0 {
			return string(ca), nil
		}
		return nil, steps.Absent("your context of the provider names no CA: it trusts the system's")
	}
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, "kube-system", "kube-root-ca.crt")
	if apierrors.IsNotFound(err) || (err == nil && m.Data["ca.crt"] == "") {
		return nil, steps.Absent("the provider has no ConfigMap kube-system/kube-root-ca.crt; answer provider.ca with context")
	}
	if err != nil {
		return nil, err
	}
	return m.Data["ca.crt"], nil
}

// bindingName is the RoleBinding to that ClusterRole that is there, else the one
// of the published guide.
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

// roleBindings are those of the tenant namespace to the consumers' ClusterRole.
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
