package liqo

import (
	"context"
	"encoding/base64"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// These are the data keys of the Secret with a gateway's WireGuard keys (liqotech/liqo:
// pkg/consts/externalnetwork.go), and the Secret's default name.
const (
	privateKeyField = "privateKey"
	publicKeyField  = "publicKey"
	usualKeys       = "gw-keys"
)

// keySize is the size of a WireGuard key in bytes.
const keySize = 32

func gatewayKeys() steps.Step {
	return steps.Step{
		Name: "keys", Title: "Gateway keys", When: joins,
		Map: steps.MapRow{Local: "gateway keys", Remote: "gateway keys", Arrow: steps.Both},
		Why: "The gateways authenticate each other with WireGuard keys. carrick creates a key pair for each side and gives " +
			"the other side only the public key.",
		Facts: []steps.Fact{
			{Name: "gateway-keys", Title: "the Secret with the gateway's keys", On: steps.Both, Learn: gatewayKeysName},
			{Name: "public-key", Title: "the public key of the gateway", On: steps.Both, Shared: true, Learn: publicKey},
		},
		Actions: append(
			onBothSides(
				"keys", "Create the keys of the consumer's gateway", "Create the keys of the provider's gateway",
				steps.Action{
					Needs: []string{"tenant-namespace"},
					Doer: action.Mint{
						File: "gateway-keys.yaml", Keys: []string{privateKeyField, publicKeyField}, Make: newGatewayKeys,
						Values: action.Values{
							"tenant-namespace": tenantSpace,
							"name":             func(_ context.Context, e steps.Env) (any, error) { return e.Own.Value("gateway-keys") },
						},
					},
				},
			),
			onBothSides(
				"public-key", "Create the PublicKey of the provider's gateway", "Create the PublicKey of the consumer's gateway",
				steps.Action{
					Needs: []string{"tenant-namespace"},
					Doer: action.Manifest{File: "public-key.yaml", Values: action.Values{
						"tenant-namespace": tenantSpace,
						"name":             namedAfterPeer(publicKeys),
					}},
				},
			)...),
		Checks: keyChecks(),
	}
}

// keySecrets returns the Secrets of the peering that contain a WireGuard key or have the gateway label.
func keySecrets(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	found, err := peeringObjects(ctx, e, check.Secrets)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, s := range found {
		data, _, _ := unstructured.NestedMap(s.Object, "data")
		_, private := data[privateKeyField]
		_, public := data[publicKeyField]
		if private || public || s.GetLabels()[gatewayLabel] != "" {
			out = append(out, s)
		}
	}
	return out, nil
}

// gatewayKeysName returns the name of the Secret with the gateway's keys. It prefers the name in the gateway's spec.
// Otherwise it returns the name of an existing Secret with keys, or the default name.
func gatewayKeysName(ctx context.Context, e steps.Env) (any, error) {
	gateways, err := sideGateways(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, g := range gateways {
		if name := text(g, "spec", "secretRef", "name"); name != "" {
			return name, nil
		}
	}
	found, err := keySecrets(ctx, e)
	return existingName(found, usualKeys), err
}

func gatewayKeyPair(ctx context.Context, e steps.Env) (*cluster.Secret, error) {
	name, err := e.Own.Text("gateway-keys")
	if err != nil {
		return nil, err
	}
	return e.Cluster.Secret(ctx, tenantNamespace(e), name, privateKeyField, publicKeyField)
}

// publicKey returns the public key of this side's gateway in base64, the encoding in a PublicKey object.
func publicKey(ctx context.Context, e steps.Env) (any, error) {
	s, err := gatewayKeyPair(ctx, e)
	if apierrors.IsNotFound(err) {
		return nil, steps.Absent("the keys of the %s's gateway do not exist yet", e.SideName())
	}
	if err != nil {
		return nil, err
	}
	key := s.Data[publicKeyField].Reveal() // the public key is not confidential
	if len(key) != keySize {
		return nil, steps.Absent("the public key of the %s's gateway has %d bytes, not %d", e.SideName(), len(key), keySize)
	}
	return base64.StdEncoding.EncodeToString([]byte(key)), nil
}

func newGatewayKeys(context.Context, steps.Env) (map[string]masked.Value, error) {
	private, err := probe.NewPrivateKey()
	if err != nil {
		return nil, err
	}
	public := private.Public()
	return map[string]masked.Value{
		privateKeyField: masked.New(string(private.Reveal())), publicKeyField: masked.New(string(public[:])),
	}, nil
}
