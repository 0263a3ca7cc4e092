package liqonet

import (
	"errors"
	"testing"
)

// TestAShortPublicKeyCrashesNothing verifies that a panic aborts only the reconciliation, and not the container.
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
