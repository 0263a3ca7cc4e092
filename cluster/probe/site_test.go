package probe

import "testing"

func TestSameSite(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"sessions.example.org", "renku.example.org", true},
		{"Sessions.Example.ORG.", "sessions.example.org", true},
		{"sessions.example.org", "renku.example.com", false},
		{"sessions.ethz.co.uk", "renku.epfl.co.uk", false}, // co.uk is a suffix, not a site
		{"a.github.io", "b.github.io", false},
		{"localhost", "localhost", true},
		{"localhost", "127.0.0.1", false},
		{"10.0.0.1", "10.1.0.1", false},
		{"", "example.org", false},
	} {
		if got := SameSite(tc.a, tc.b); got != tc.want {
			t.Errorf("SameSite(%q, %q) is %v", tc.a, tc.b, got)
		}
	}
}
