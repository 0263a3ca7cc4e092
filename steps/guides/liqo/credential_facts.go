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

// kubeconfigField is the key of the ControlPlane Secret that contains the kubeconfig.
const kubeconfigField = "kubeconfig"

// controlPlanes returns the ControlPlane Secrets for the provider in all namespaces, because
// Liqo expects one in the whole cluster.
func controlPlanes(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	sel, err := controlPlaneSelector(e)
	if err != nil {
		return nil, err
	}
	// list the Secrets including the kubeconfig, because storedKubeconfig uses the same list
	_, err = e.Cluster.Secrets(ctx, "", sel, kubeconfigField)
	if apierrors.IsForbidden(err) {
		return living(ctx, e, check.Secrets, tenantNamespace(e), sel.Labels)
	}
	return living(ctx, e, check.Secrets, "", sel.Labels)
}

// controlPlaneSelector returns the selector for the ControlPlane Secrets of the provider.
func controlPlaneSelector(e steps.Env) (cluster.Selector, error) {
	labels, err := ofPeer(e)
	return cluster.Selector{Labels: labels + "," + identityLabel + "=" + controlPlaneType}, err
}

// controlPlane returns the ControlPlane Secret in the tenant namespace, or nil if there is none.
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

// usualControlPlane returns liqoctl's name for the ControlPlane Secret.
func usualControlPlane(e steps.Env) string {
	id, err := peerID(e)
	if err != nil {
		return ""
	}
	return "kubeconfig-controlplane-" + id
}

// storedKubeconfig returns the kubeconfig in the ControlPlane Secret of that name.
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

// awsField is one of the keys that Liqo reads next to a kubeconfig for EKS (liqotech/liqo:
// pkg/consts/authentication.go).
const awsField = "awsAccessKeyID"

// controlPlaneFact describes the existing credential: its Secret ("name"), the user it
// authenticates as ("user"), whether carrick requested it ("own"), whether it is a certificate
// for the existing key ("current"), that certificate in PEM ("certificate"), and whether the
// Secret also contains AWS keys, which Liqo uses on EKS ("aws"). A credential of carrick's
// whose key was deleted is not current and is replaced by one with a new key.
func controlPlaneFact(ctx context.Context, e steps.Env) (any, error) {
	var s *unstructured.Unstructured
	err := check.Together(
		func() (err error) { s, err = controlPlane(ctx, e); return err },
		func() error {
			if !e.Answered("auth.kind") || certified(e) {
				_, _ = ourKey(ctx, e) // ofOurKey requires it and reports its errors
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
		return m, nil // checks report what is wrong with it
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

// ofOurKey reports whether a certificate is for the key that carrick created.
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

// foreign reports whether an existing credential is unmanaged. carrick uses it unchanged. To get
// another one, the admin must delete its Secret.
func foreign(consumer steps.Facts) bool {
	return consumer.Field("control-plane", "own") == false
}

// stored reports whether the consumer has a certificate for the key that carrick created.
func stored(consumer steps.Facts) bool { return consumer.Field("control-plane", "current") == true }

// consumersKubeconfig returns the existing kubeconfig if it is unmanaged. Otherwise it builds one
// from the key in this cluster and the data from the provider.
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

// certificate returns the certificate in use, or else the one that the provider has just issued.
// The latter is not available for long, because the cluster deletes certificate requests within an
// hour.
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
