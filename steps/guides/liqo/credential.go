package liqo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/check"
)

// These are the data keys of the Secret with the consumer's private key and certificate request. Both values are PEM.
const (
	keyField     = "tls.key"
	requestField = "tls.csr"
)

// liqoGroup is the organization in the certificates of Liqo's own identities. Kubernetes uses the organization as the
// user's group. A Liqo webhook prevents users in this group from changing the labels of ResourceSlices (liqotech/liqo:
// pkg/webhooks/resourceslice).
const liqoGroup = "liqo.io"

func keySecretName(_ context.Context, e steps.Env) (any, error) { return credentialSecret(e) }

// usualCredential is the prefix of the name of the Secret with the consumer's key. The provider's
// cluster id is appended.
const usualCredential = "liqo-controlplane-key-"

func credentialSecret(e steps.Env) (string, error) {
	id, err := peerID(e)
	return usualCredential + id, err
}

// newCredentialKey creates a key and a certificate request. Kubernetes cannot revoke a certificate. The request's
// common name is therefore unique to the key, so that an admin can disable the certificate by deleting the RoleBinding
// for that name.
func newCredentialKey(_ context.Context, e steps.Env) (map[string]masked.Value, error) {
	id, err := e.Own.Text("cluster-id")
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: commonName(id, public), Organization: []string{liqoGroup}},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate request: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return map[string]masked.Value{
		keyField:     masked.New(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))),
		requestField: masked.New(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))),
	}, nil
}

// commonName derives a consumer's common name from its cluster id and its public key in DER. The name has at most 64
// characters, the limit of X.509.
func commonName(id string, public []byte) string {
	sum := sha256.Sum256(public)
	if len(id) > 35 {
		id = id[:35]
	}
	return "liqo-controlplane-" + id + "-" + hex.EncodeToString(sum[:5])
}

// requestFact returns the certificate request in PEM. The request is public, although its Secret also contains the key.
func requestFact(ctx context.Context, e steps.Env) (any, error) {
	name, err := credentialSecret(e)
	if err != nil {
		return nil, err
	}
	s, err := e.Cluster.Secret(ctx, tenantNamespace(e), name, requestField)
	if apierrors.IsNotFound(err) || (err == nil && s.Data[requestField].IsZero()) {
		return nil, steps.Absent("the consumer's key does not exist yet")
	}
	if err != nil {
		return nil, err
	}
	return s.Data[requestField].Reveal(), nil
}

// parseRequest parses a certificate request in PEM and verifies its signature. The signature proves that the author of
// the request has the private key.
func parseRequest(text string) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("not a PEM-encoded certificate request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot be parsed: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("not signed with its own key: %w", err)
	}
	return request, nil
}

// requestName returns a name for the CertificateSigningRequest that is unique to the consumer's certificate request. A
// fixed name would not work, because a denied CertificateSigningRequest stays denied, and the cluster deletes
// CertificateSigningRequests on its own schedule.
func requestName(_ context.Context, e steps.Env) (any, error) {
	csr, err := e.Peer.Text("csr")
	if err != nil {
		return nil, err
	}
	id, err := peerID(e)
	sum := sha256.Sum256([]byte(csr))
	return "liqo-controlplane-" + id + "-" + hex.EncodeToString(sum[:5]), err
}

func encodedRequest(_ context.Context, e steps.Env) (any, error) {
	csr, err := e.Peer.Text("csr")
	return base64.StdEncoding.EncodeToString([]byte(csr)), err
}

func isServiceAccount(user string) bool { return strings.HasPrefix(user, check.AccountPrefix) }

// consumerAccount returns the name of the consumer's ServiceAccount on the provider.
func consumerAccount(consumer steps.Facts) (string, error) {
	id, err := consumer.Text("cluster-id")
	return "liqo-controlplane-" + id, err
}

// credentialUser returns the user name with which the consumer authenticates. If carrick keeps the existing credential,
// this is the user of that credential. Otherwise it is the user of the credential that carrick creates.
func credentialUser(_ context.Context, e steps.Env) (any, error) {
	if foreign(e.Own) {
		if user := e.Own.FieldText("control-plane", "user"); user != "" {
			return user, nil
		}
		return nil, steps.Absent("the existing credential cannot be read")
	}
	if user := e.Own.FieldText("control-plane", "user"); user != "" && certified(e) && stored(e.Own) {
		return user, nil
	}
	if tokened(e) {
		name, err := consumerAccount(e.Own)
		return check.Account{Namespace: peerNamespace(e), Name: name}.Username(), err
	}
	csr, err := e.Own.Text("csr")
	if err != nil {
		return nil, err
	}
	request, err := parseRequest(csr)
	if err != nil {
		return nil, steps.Absent("the consumer's certificate request: %s", err)
	}
	return request.Subject.CommonName, nil
}

func subjects(_ context.Context, e steps.Env) (any, error) {
	user, err := e.Peer.Text("credential-user")
	if err != nil {
		return nil, err
	}
	return subjectsOf(user), nil
}

// subjectsOf converts a user name to the subjects of a RoleBinding.
func subjectsOf(user string) []any {
	parts := strings.Split(strings.TrimPrefix(user, check.AccountPrefix), ":")
	if isServiceAccount(user) && len(parts) == 2 {
		return []any{map[string]any{"kind": "ServiceAccount", "namespace": parts[0], "name": parts[1]}}
	}
	return []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}
}
