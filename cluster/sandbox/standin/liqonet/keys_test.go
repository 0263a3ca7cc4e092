package liqonet

import "testing"

func TestOnlyThePrivateKeyCrashesAGateway(t *testing.T) {
	for n, good := range map[int]bool{0: false, 31: false, 32: true, 44: false} {
		if _, err := privateKey(make([]byte, n)); (err == nil) != good {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
