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

// kubeconfigField is the key of the ControlPlane Secret.
const kubeconfigField = "kubeconfig"

// controlPlanes are the ControlPlane Secrets for the provider, wherever they are:
// Liqo takes one in the whole cluster.
func controlPlanes(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	sel, err := controlPlaneSelector(e)
	if err != nil {
		return nil, err
	}
	// with the kubeconfig, which storedKubeconfig takes from there
	_, err = e.Cluster.Secrets(ctx, "", sel, kubeconfigField)
	if apierrors.IsForbidden(err) {
		return living(ctx, e, check.Secrets, tenantNamespace(e), sel.Labels)
	}
	return living(ctx, e, check.Secrets, "", sel.Labels)
}

// controlPlaneSelector selects them.
func controlPlaneSelector(e steps.Env) (cluster.Selector, error) {
	labels, err := ofPeer(e)
	return cluster.Selector{Labels: labels + "," + identityLabel + "=" + controlPlaneType}, err
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
		if s.GetName() == existingName(here, usualControlPlane(e)) {
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

// awsField is one of the keys that Liqo looks for beside a kubeconfig for EKS
// (liqotech/liqo: pkg/consts/authentication.go).
const awsField = "awsAccessKeyID"

// controlPlaneFact says which credential stands: its Secret ("name"), who it signs
// in as ("user"), whether carrick had made it ("own"), whether it is a certificate
// for the key that is there ("current"), that certificate in PEM ("certificate"),
// and whether AWS keys stand beside it, which Liqo takes on EKS ("aws"). One whose key somebody has deleted is
// carrick's and not current: it is replaced by one of a new key.
func controlPlaneFact(ctx context.Context, e steps.Env) (any, error) {
	var s *unstructured.Unstructured
	err := check.Together(
		func() (err error) { s, err = controlPlane(ctx, e); return err },
		func() error {
			if !e.Answered("auth.kind") || certified(e) {
				_, _ = ourKey(ctx, e) // ofOurKey needs it, and says what is wrong with it
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
		return m, nil // what is wrong with it is for the checks
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

// ofOurKey tells whether a certificate is for the key that carrick had made.
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
		return masked.Value{}, steps.Absent("the consumer's key is not made yet")
	}
	if err != nil {
		return masked.Value{}, err
	}
	return s.Data[keyField], nil
}

// foreign tells whether a credential stands that somebody else made. It is used
// as it is; whoever wants another one deletes its Secret.
func foreign(consumer steps.Facts) bool {
	return consumer.Field("control-plane", "own") == false
}

// stored tells whether the consumer holds a certificate for the key that carrick
// had made.
func stored(consumer steps.Facts) bool { return consumer.Field("control-plane", "current") == true }

// consumersKubeconfig is what stands where somebody else made it, else what carrick
// makes of the key here and of what the provider hands over.
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

// certificate is the one that is in use, else the one that the provider has just
// issued: the cluster forgets those within the hour.
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
