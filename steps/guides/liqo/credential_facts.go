package liqo

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/bearer"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

const kubeconfigField = "kubeconfig"

// controlPlanes returns the control-plane kubeconfig Secrets for the provider in all namespaces, because Liqo accepts
// only one in the whole cluster. If the admin is not allowed to list Secrets in all namespaces, controlPlanes searches
// only the tenant namespace.
func controlPlanes(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	sel, err := controlPlaneSelector(e)
	if err != nil {
		return nil, err
	}
	// request the kubeconfigs too, so that storedKubeconfig can reuse this list
	_, err = e.Cluster.Secrets(ctx, "", sel, kubeconfigField)
	if apierrors.IsForbidden(err) {
		return living(ctx, e, check.Secrets, tenantNamespace(e), sel.Labels)
	}
	return living(ctx, e, check.Secrets, "", sel.Labels)
}

func controlPlaneSelector(e steps.Env) (cluster.Selector, error) {
	labels, err := ofPeer(e)
	return cluster.Selector{Labels: labels + "," + identityLabel + "=" + controlPlaneType}, err
}

// controlPlane returns the control-plane kubeconfig Secret in the tenant namespace, or nil if it does not exist.
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
		if s.GetName() == existingName(here, usualControlPlane(e)) {
			return s, nil
		}
	}
	return nil, nil
}

// usualControlPlane returns the name that liqoctl gives the control-plane kubeconfig Secret. It returns "" if the
// provider's cluster id is unknown.
func usualControlPlane(e steps.Env) string {
	id, err := peerID(e)
	if err != nil {
		return ""
	}
	return "kubeconfig-controlplane-" + id
}

func storedKubeconfig(ctx context.Context, e steps.Env, name string) (masked.Value, error) {
	if sel, err := controlPlaneSelector(e); err == nil {
		all, err := e.Cluster.Secrets(ctx, "", sel, kubeconfigField)
		i := slices.IndexFunc(
			all, func(s *cluster.Secret) bool { return s.Namespace == tenantNamespace(e) && s.Name == name },
		)
		if err == nil && i >= 0 {
			return all[i].Data[kubeconfigField], nil
		}
	}
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name, kubeconfigField)
	if err != nil {
		return masked.Value{}, err
	}
	return s.Data[kubeconfigField], nil
}

// awsField is one of the data keys that Liqo reads from a control-plane kubeconfig Secret on EKS (liqotech/liqo:
// pkg/consts/authentication.go).
const awsField = "awsAccessKeyID"

// controlPlaneFact describes the consumer's existing credential:
//
//   - name: the name of its Secret
//   - user: the user that it authenticates as
//   - own: whether carrick created it
//   - current: whether it is a certificate for the existing key
//   - certificate: its certificate in PEM, or ""
//   - aws: whether its Secret also contains AWS keys, which Liqo uses on EKS
//
// If carrick created the credential and its key was deleted, current is false. carrick then creates a new key and a new
// credential.
func controlPlaneFact(ctx context.Context, e steps.Env) (any, error) {
	var s *unstructured.Unstructured
	err := check.Together(
		func() (err error) { s, err = controlPlane(ctx, e); return err },
		func() error {
			if !e.Answered("auth.kind") || certified(e) {
				_, _ = ourKey(ctx, e) // only fills the cache; ofOurKey handles the error
			}
			return nil
		},
	)
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
	by, err := inventory.Creator(ctx, e, s)
	if err != nil {
		return nil, err
	}
	made := by != ""
	m := map[string]any{"name": s.GetName(), "user": "", "own": made, "current": false, "certificate": "", "aws": false}
	_, m["aws"], _ = unstructured.NestedFieldNoCopy(s.Object, "data", awsField)
	k, err := kubeconfig.Parse([]byte(stored.Reveal()))
	if err != nil {
		return m, nil // the checks report the error
	}
	if cert := leaf(k.ClientCert); cert != nil {
		ours := ofOurKey(ctx, e, cert)
		m["user"], m["own"], m["current"] = cert.Subject.CommonName, made || ours, ours
		m["certificate"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
		return m, nil
	}
	if t, err := bearer.Parse(k.Token); err == nil {
		name, _ := consumerAccount(e.Own)
		m["user"] = t.Subject
		m["own"] = made || t.Subject == check.Account{Namespace: peerNamespace(e), Name: name}.Username()
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

// ofOurKey reports whether cert is for the key that carrick created.
func ofOurKey(ctx context.Context, e steps.Env, cert *x509.Certificate) bool {
	key, err := ourKey(ctx, e)
	return err == nil && probe.KeyMatches(cert, []byte(key.Reveal())) == nil
}

func ourKey(ctx context.Context, e steps.Env) (masked.Value, error) {
	name, err := credentialSecret(e)
	if err != nil {
		return masked.Value{}, err
	}
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name, keyField)
	if apierrors.IsNotFound(err) {
		return masked.Value{}, steps.Absent("the consumer's key does not exist yet")
	}
	if err != nil {
		return masked.Value{}, err
	}
	return s.Data[keyField], nil
}

// foreign reports whether the consumer has a credential that carrick did not create. carrick keeps and uses such a
// credential until an admin deletes its Secret.
func foreign(consumer steps.Facts) bool {
	return consumer.Field("control-plane", "own") == false
}

// stored reports whether the consumer has a certificate for the key that carrick created.
func stored(consumer steps.Facts) bool { return consumer.Field("control-plane", "current") == true }

// consumersKubeconfig returns the consumer's kubeconfig for the provider. If the existing kubeconfig is unmanaged,
// consumersKubeconfig returns it unchanged. Otherwise it builds a kubeconfig from the provider's CA and either the
// ServiceAccount token or the consumer's key and certificate.
func consumersKubeconfig(ctx context.Context, e steps.Env) (any, error) {
	if foreign(e.Own) {
		name := e.Own.FieldText("control-plane", "name")
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
	k := kubeconfig.Config{
		Name: id, Server: e.Answers.Text("provider.server"), CA: []byte(ca), Namespace: peerNamespace(e),
	}
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

// certificate returns the consumer's certificate in PEM. If the existing kubeconfig has a certificate for the existing
// key, certificate returns that certificate. Otherwise it returns the provider's fact of the same name, which is
// available only for a short time, because the provider's cluster deletes CertificateSigningRequests within an hour.
func certificate(ctx context.Context, e steps.Env) ([]byte, error) {
	if stored(e.Own) {
		name := e.Own.FieldText("control-plane", "name")
		m, err := storedKubeconfig(ctx, e, name)
		if err != nil {
			return nil, err
		}
		if k, err := kubeconfig.Parse([]byte(m.Reveal())); err == nil {
			return k.ClientCert, nil
		}
	}
	cert, err := e.Peer.Text("certificate")
	return []byte(cert), err
}
