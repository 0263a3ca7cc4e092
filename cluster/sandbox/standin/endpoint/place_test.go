package endpoint

import (
	"net"
	"testing"
)

// TestPlacesAreNotShared verifies that each sandbox gets its own place, and that a released place can be claimed again.
func TestPlacesAreNotShared(t *testing.T) {
	var all []*Place
	seen := map[string]bool{}
	for range 3 {
		p, err := Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if seen[p.String()] {
			t.Errorf("%s is claimed twice", p)
		}
		seen[p.String()] = true
		all = append(all, p)
		l, err := net.Listen("tcp", p.String())
		if err != nil {
			t.Errorf("nobody can listen there: %v", err)
			continue
		}
		defer l.Close()
	}
	first := all[0].String()
	if p, err := hold(t.Context(), all[0].Address, all[0].Port); err == nil {
		p.Close()
		t.Errorf("%s is claimed a second time", first)
	}
}

// On a shared address, a place needs a port on which no program listens.
func TestAPortThatIsTakenIsNoPlace(t *testing.T) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p, err := hold(t.Context(), loopback, l.Addr().(*net.TCPAddr).Port); err == nil {
		p.Close()
		t.Errorf("%s is claimed, and somebody listens there", p)
	}
}
