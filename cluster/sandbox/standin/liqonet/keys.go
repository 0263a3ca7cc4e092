package liqonet

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Data keys of a Secret with WireGuard keys. The values are raw keys of 32 bytes.
const (
	privateField = "privateKey"
	publicField  = "publicKey"
)

// errPanic is the error that controller-runtime logs when a reconciliation panics.
var errPanic = errors.New("panic: runtime error: invalid memory address or nil pointer dereference [recovered]")

// secret returns the name of the Secret with the WireGuard keys. If the gateway resource specifies a Secret, secret
// checks it and adds missing labels (since v1.0.1). Otherwise it creates one.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/networking/external-network/wireguard/utils.go
// (ensureKeysSecret, checkExistingKeysSecret, getWireGuardSecret) and pkg/gateway/tunnel/wireguard/k8s.go
// (CreateKeysSecret).
func (p *Player) secret(ctx context.Context, e *end, all *objects, version string) (string, error) {
	var found []string
	if name := e.Spec.SecretRef.Name; name != "" {
		if err := p.check(ctx, e, all, version); errors.Is(err, errPanic) {
			return "", err
		} else if err != nil {
			p.event(
				ctx, e.reference(), corev1.EventTypeWarning, "KeysSecretCheckFailed",
				fmt.Sprintf("Failed to check keys secret: %v", err),
			)
			return "", err
		}
		found = append(found, name)
	}
	for _, s := range all.secrets {
		if s.Namespace == e.Namespace && s.Name != e.Spec.SecretRef.Name && s.Labels[remoteID] == e.Labels[remoteID] &&
			s.Labels[gatewayL] == "true" {
			found = append(found, s.Name)
		}
	}
	switch len(found) {
	case 0:
		made, err := keys(e)
		if err != nil {
			return "", err
		}
		_, err = p.client.CoreV1().Secrets(e.Namespace).Create(ctx, made, metav1.CreateOptions{FieldManager: manager})
		return made.Name, err
	case 1:
		p.event(ctx, e.reference(), corev1.EventTypeNormal, "KeysSecretChecked", "Checked keys secret")
		return found[0], nil
	}
	err := fmt.Errorf("found multiple secrets associated to WireGuard gateway %s/%s", e.Namespace, e.Name)
	p.event(ctx, e.reference(), corev1.EventTypeWarning, "SecretRefStatusFailed", err.Error())
	return "", err
}

// check checks the Secret that a gateway resource specifies and adds missing labels. It does not check the length of
// the keys.
//
// v1.0.0 adds no labels. If one is missing, the controller of GatewayServers panics, which aborts only this
// reconciliation. The controller of GatewayClients rejects the Secret (liqotech/liqo v1.0.0, the same files;
// liqotech/liqo#3049).
func (p *Player) check(ctx context.Context, e *end, all *objects, version string) error {
	s := find(all.secrets, e.Namespace, e.Spec.SecretRef.Name)
	if s == nil { // a Secret without the label might exist
		var err error
		if s, err = p.client.CoreV1().Secrets(e.Namespace).Get(ctx, e.Spec.SecretRef.Name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	for _, field := range []string{privateField, publicField} {
		if _, ok := s.Data[field]; !ok {
			return fmt.Errorf("secret %s has no field %s", s.Name, field)
		}
	}
	if id, ok := s.Labels[remoteID]; ok && id != e.Labels[remoteID] {
		return fmt.Errorf("secret %s has the label %s=%s, its gateway %s", s.Name, remoteID, id, e.Labels[remoteID])
	}
	switch {
	case s.Labels[remoteID] != "" && s.Labels[gatewayL] == "true":
		return nil
	case version == "v1.0.0" && e.side.mode == server:
		return errPanic
	case version == "v1.0.0":
		return fmt.Errorf("secret %s lacks the label %s or %s", s.Name, remoteID, gatewayL)
	}
	return p.merge(ctx, secrets, s.Namespace, s.Name, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{remoteID: e.Labels[remoteID], gatewayL: "true"}},
	})
}

// keys generates a Secret with WireGuard keys.
func keys(e *end) (*corev1.Secret, error) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	s := &corev1.Secret{ObjectMeta: e.meta()}
	s.Labels[gatewayL] = "true"
	s.Data = map[string][]byte{privateField: private.Bytes(), publicField: private.PublicKey().Bytes()}
	return s, nil
}
