package liqonet

import (
	"errors"
	"testing"
)

// A reconciliation that panics ends alone: the container does not.
func TestAShortPublicKeyCrashesNothing(t *testing.T) {
	g := &gateway{arguments: []string{"--mode=server", "--remote-cluster-id=rome"}}
	k := publicKey{}
	k.Labels, k.Spec.PublicKey = map[string]string{remoteID: "rome"}, make([]byte, 31)
	if err := g.pair(t.Context(), []publicKey{k}); err == nil || errors.Is(err, errCrash) {
		t.Errorf("got %v", err)
	}
	if g.peer != (key{}) {
		t.Error("it has a peer")
	}
}
