package liqo

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

func keyChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "keys", Title: "A Secret contains the gateway's key pair", On: steps.Both,
			Needs: []string{"tenant-namespace"}, FixedBy: "${side}-keys",
			Why: "The gateway crashes unless each key has 32 raw bytes; the published guide omits a label that Liqo v1.0.0 " +
				"and liqoctl require.",
			References: []string{
				"liqotech/liqo: pkg/liqo-controller-manager/networking/external-network/wireguard/utils.go " +
					"(checkExistingKeysSecret)",
				"liqotech/liqo: docs/advanced/peering/peering-via-cr.md", "liqotech/liqo#3049",
			},
			Run: keysWhole,
		},
		{
			Name: "keys-differ", Title: "Each side has its own key pair", On: steps.Remote,
			Needs:      []string{"keys", "peer/keys"},
			Why:        "If both sides have the same key pair, copied with the rest of the YAML, no handshake succeeds.",
			References: []string{page},
			Run:        keysDiffer,
		},
		{
			Name: "peer-key", Title: "The gateway has the peer's public key", On: steps.Both,
			Needs: []string{"keys", "peer/keys"}, FixedBy: "${side}-public-key",
			Why: "The gateway ignores all bytes after the 32nd, creates no Connection for a shorter key, and completes " +
				"no handshake with another cluster's key.",
			References: []string{"liqotech/liqo: pkg/gateway/tunnel/wireguard/publickeys_controller.go", page},
			Run:        peerKey,
		},
	}
}

var numeric = regexp.MustCompile(`^[0-9]+$`)

func keysWhole(ctx context.Context, e steps.Env) steps.Result {
	s, err := gatewayKeyPair(ctx, e)
	ns := tenantNamespace(e)
	if apierrors.IsNotFound(err) {
		name, _ := e.Own.Text("gateway-keys")
		return steps.Undone(fmt.Sprintf("Secret %s/%s does not exist", ns, name))
	}
	if err != nil {
		return steps.Errored(err)
	}
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	name := "Secret " + s.Namespace + "/" + s.Name
	if fault := pairFault(s); fault != "" {
		return steps.Failed(
			name+": "+fault,
			newKeys(e, s.Name),
		)
	}
	switch {
	case numeric.MatchString(s.Name):
		return steps.Failed(name+" has a numeric name, which Liqo's templates cannot use",
			fmt.Sprintf(
				"recreate the Secret under another name and set the gateway's spec.secretRef.name to that name: %sget "+
					"secret %s -o yaml",
				inTenant(e), s.Name,
			))
	case s.Labels[remoteIDLabel] != id:
		return steps.Failed(
			fmt.Sprintf(
				"%s has the label %s=%s, which must be %s, like the gateway's label", name, remoteIDLabel,
				cmp.Or(s.Labels[remoteIDLabel], "(none)"), id,
			),
			"",
		)
	case s.Labels[gatewayLabel] != "true":
		return steps.Failed(
			fmt.Sprintf(
				"%s has the label %s=%s, which must be true. Otherwise liqoctl and Liqo v1.0.0 do not find the Secret", name,
				gatewayLabel,
				cmp.Or(s.Labels[gatewayLabel], "(none)"),
			),
			"",
		)
	}
	return keysOnce(ctx, e, s)
}

// pairFault describes the problem with a key pair, or returns "" if there is none. The description reveals nothing
// about the private key except its size.
func pairFault(s *cluster.Secret) string {
	for _, field := range []string{privateKeyField, publicKeyField} {
		if s.Keys[field] == 0 {
			return "missing " + field
		}
	}
	private, err := probe.ParsePrivateKey([]byte(s.Data[privateKeyField].Reveal()))
	if err != nil {
		return keyFault(err)
	}
	public, err := probe.ParsePublicKey([]byte(s.Data[publicKeyField].Reveal()))
	if err != nil {
		return keyFault(err)
	}
	if private.Public() != public {
		return "publicKey does not match privateKey"
	}
	return ""
}

// keyFault returns the message of an ErrKey without its prefix.
func keyFault(err error) string { return strings.TrimPrefix(err.Error(), probe.ErrKey.Error()+": ") }

// keysOnce verifies that no second Secret is labelled as the gateway's keys. If there are two, Liqo uses neither.
func keysOnce(ctx context.Context, e steps.Env, s *cluster.Secret) steps.Result {
	all, err := keySecrets(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	var others []string
	for _, o := range all {
		if o.GetName() != s.Name && o.GetLabels()[gatewayLabel] == "true" {
			others = append(others, o.GetName())
		}
	}
	if len(others) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"namespace %s has more Secrets labelled as gateway keys than %s: %s. Liqo accepts only one",
				s.Namespace, s.Name, check.OrNone(others),
			),
			inTenant(e)+"delete secret "+shellWords(others),
		)
	}
	return steps.Passed("Secret %s/%s has a matching key pair of %d bytes each", s.Namespace, s.Name, keySize)
}

func shellWords(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, steps.Quoted(w))
	}
	return strings.Join(out, " ")
}

func keysDiffer(_ context.Context, e steps.Env) steps.Result {
	own, err := e.Own.Text("public-key")
	if err != nil {
		return steps.Errored(err)
	}
	peer, err := e.Peer.Text("public-key")
	if err != nil {
		return steps.Errored(err)
	}
	if own == peer {
		name, _ := e.Own.Text("gateway-keys")
		return steps.Failed(
			"both sides have the key pair with public key "+own,
			newKeys(e, name),
		)
	}
	return steps.Passed("public key %s here, %s on the peer", own, peer)
}

// newKeys returns the commands that replace this side's key pair. Step tunnel restarts the gateway.
func newKeys(e steps.Env, secret string) string {
	return inTenant(e) + "delete secret " + steps.Quoted(secret) + "    # then " + e.ApplyStep("keys", "tunnel")
}

// labelledAs separates the objects that are labelled with the peer's cluster id from the other objects.
func labelledAs(id string, objs []*unstructured.Unstructured) (with, without []*unstructured.Unstructured) {
	for _, o := range objs {
		if o.GetLabels()[remoteIDLabel] == id {
			with = append(with, o)
		} else {
			without = append(without, o)
		}
	}
	return with, without
}
