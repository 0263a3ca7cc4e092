package liqo

import (
	"context"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

const publicKeyKind = "publickeies.networking.liqo.io"

func peerKey(ctx context.Context, e steps.Env) steps.Result {
	ns := tenantNamespace(e)
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	all, err := living(ctx, e, publicKeys, ns, "")
	if err != nil {
		return steps.Errored(err)
	}
	switch ours, rest := labelledAs(id, all); {
	case len(all) == 0:
		return steps.Undone(
			fmt.Sprintf("namespace %s has no PublicKey, so the gateway has no peer and creates no Connection", ns),
		)
	case len(ours) == 0:
		return steps.Failed(
			fmt.Sprintf(
				"PublicKey %s lacks the label %s=%s, so the gateway ignores it", placeOf(rest[0]), remoteIDLabel, id,
			),
			"",
		)
	case len(ours) > 1:
		return severalKeys(e, ours)
	default:
		return rightKey(e, ours[0])
	}
}

// severalKeys returns the verdict on several PublicKeys. The fix deletes all of them except the PublicKey with the
// peer's key.
func severalKeys(e steps.Env, found []*unstructured.Unstructured) steps.Result {
	peer, err := e.Peer.Text("public-key")
	if err != nil {
		return steps.Errored(err)
	}
	keep := found[0].GetName()
	for _, o := range found {
		if text(o, "spec", "publicKey") == peer {
			keep = o.GetName()
			break
		}
	}
	var others []string
	for _, name := range names(found) {
		if name != keep {
			others = append(others, name)
		}
	}
	return steps.Failed(
		fmt.Sprintf(
			"%d PublicKeys have the peer's id (%s), and the gateway switches between them", len(found),
			check.OrNone(names(found)),
		),
		inTenant(e)+"delete "+publicKeyKind+" "+shellWords(others),
	)
}

func rightKey(e steps.Env, o *unstructured.Unstructured) steps.Result {
	own, err := e.Own.Text("public-key")
	if err != nil {
		return steps.Errored(err)
	}
	peer, err := e.Peer.Text("public-key")
	if err != nil {
		return steps.Errored(err)
	}
	name, key := "PublicKey "+placeOf(o), text(o, "spec", "publicKey")
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return steps.Failed(name+" is not valid base64", "")
	}
	_, fault := probe.ParsePublicKey(raw)
	switch {
	case key == peer && o.GetLabels()[gatewayLabel] != "true":
		return steps.Warned(
			fmt.Sprintf(
				"%s has the peer's key but lacks the label %s=true, so liqoctl does not find it", name, gatewayLabel,
			),
			"",
		)
	case key == peer:
		return steps.Passed("%s has the public key of the %s's gateway, %s", name, e.PeerName(), peer)
	case key == own:
		return steps.Failed(
			fmt.Sprintf("%s has the %s's own public key. The %s's public key is %s", name, e.SideName(), e.PeerName(), peer), "",
		)
	case fault != nil:
		return steps.Failed(name+": "+keyFault(fault), "")
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s has %s, but the %s's gateway has %s. The key is mistyped, or the gateway's keys were recreated", name, key,
			e.PeerName(), peer,
		),
		"",
	)
}
