package probe

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"
)

func TestCertProblem(t *testing.T) {
	now := time.Now()
	years := now.AddDate(10, 0, 0)
	root := newAuthority(t, "root", years)
	middle := root.below(t, "middle", years)
	stale := root.below(t, "stale middle", now.AddDate(0, 0, -3))
	old := newAuthority(t, "old root", now.AddDate(0, 0, -5))
	stranger := newAuthority(t, "stranger", years)
	good := root.issue(t, nil)

	for _, tc := range []struct {
		situation string
		chain     []*x509.Certificate
		roots     []authority
		name      string
		now       time.Time
		kind      Problem
		words     []string
	}{
		{situation: "a good chain", chain: []*x509.Certificate{good.cert}, name: "localhost"},
		{situation: "good for an IP address", chain: []*x509.Certificate{good.cert}, name: "127.0.0.1"},
		{situation: "no name is asked for", chain: []*x509.Certificate{good.cert}},
		{
			situation: "a chain with an intermediate", chain: []*x509.Certificate{middle.issue(t, nil).cert, middle.cert},
			name: "localhost",
		},
		{
			situation: "the intermediate is missing", chain: []*x509.Certificate{middle.issue(t, nil).cert}, name: "localhost",
			kind: UnknownAuthority, words: []string{"not in the given CA", "issuer: middle"},
		},
		{
			situation: "the intermediate has expired", chain: []*x509.Certificate{stale.issue(t, nil).cert, stale.cert},
			name: "localhost",
			kind: Expired, words: []string{"CA stale middle expired 3 days ago"},
		},
		{
			situation: "the root has expired", roots: []authority{old}, name: "localhost",
			chain: []*x509.Certificate{old.issue(t, func(c *x509.Certificate) { c.NotBefore = now.AddDate(-1, 0, 0) }).cert},
			kind:  Expired, words: []string{"a CA in its chain has expired"},
		},
		{
			situation: "another authority", chain: []*x509.Certificate{stranger.issue(t, nil).cert}, name: "localhost",
			kind: UnknownAuthority, words: []string{"signed by a CA that is not in the given CA (issuer: stranger)"},
		},
		{
			situation: "self-signed", chain: []*x509.Certificate{stranger.cert},
			kind: UnknownAuthority, words: []string{"self-signed by stranger, which is not in the given CA"},
		},
		{
			situation: "other names", chain: []*x509.Certificate{good.cert}, name: "rome.example.org",
			kind: NameMismatch, words: []string{"valid for localhost, 127.0.0.1 but not for rome.example.org"},
		},
		{
			situation: "a common name alone", name: "leaf",
			chain: []*x509.Certificate{root.issue(t, func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil }).cert},
			kind:  NameMismatch, words: []string{"contains no host name", "common name leaf does not count"},
		},
		{
			situation: "expired", chain: []*x509.Certificate{good.cert}, name: "localhost",
			now:  now.AddDate(0, 0, 4).Add(time.Hour),
			kind: Expired, words: []string{"expired 3 days ago"},
		},
		{
			situation: "not yet valid", chain: []*x509.Certificate{good.cert}, name: "localhost", now: now.Add(-3 * time.Hour),
			kind: NotYetValid, words: []string{"not valid before", "this machine's clock:"},
		},
		{
			situation: "everything at once", chain: []*x509.Certificate{stranger.issue(t, nil).cert}, name: "rome",
			now:  now.AddDate(0, 0, 4).Add(time.Hour),
			kind: UnknownAuthority, words: []string{"issuer: stranger", "but not for rome", "expired 3 days ago"},
		},
		{
			situation: "a client's certificate", name: "localhost",
			chain: []*x509.Certificate{root.issue(t, func(c *x509.Certificate) {
				c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			}).cert},
			kind: Other, words: []string{"server authentication"},
		},
		{
			situation: "control characters in a name", chain: []*x509.Certificate{newAuthority(t, "evil\x1b[2J", years).cert},
			kind: UnknownAuthority, words: []string{`"evil\x1b[2J"`},
		},
		{situation: "no certificate", kind: Other, words: []string{"no certificate"}},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			pool := x509.NewCertPool()
			pool.AddCert(root.cert)
			for _, a := range tc.roots {
				pool.AddCert(a.cert)
			}
			kind, words := CertProblem(tc.chain, pool, tc.name, tc.now)
			if kind != tc.kind {
				t.Errorf("kind %q, want %q (%s)", kind, tc.kind, words)
			}
			if (words == "") != (kind == "") {
				t.Errorf("kind %q has the words %q", kind, words)
			}
			for _, want := range tc.words {
				if !strings.Contains(words, want) {
					t.Errorf("%q does not say %q", words, want)
				}
			}
			if strings.ContainsFunc(words, func(r rune) bool { return r < ' ' }) {
				t.Errorf("control characters in %q", words)
			}
		})
	}
}

func TestCertProblemSaysThatTheSystemsRootsWereUsed(t *testing.T) {
	leaf := newAuthority(t, "private", time.Now().AddDate(1, 0, 0)).issue(t, nil)
	kind, words := CertProblem([]*x509.Certificate{leaf.cert}, nil, "localhost", time.Time{})
	if kind != UnknownAuthority || !strings.Contains(words, "not among the system's CAs") ||
		!strings.Contains(words, "no intermediate certificate was sent") {
		t.Errorf("got %q, %q", kind, words)
	}
}

func TestManyNamesAreCutShort(t *testing.T) {
	root := newAuthority(t, "root", time.Now().AddDate(1, 0, 0))
	leaf := root.issue(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{}
		c.IPAddresses = nil
		c.DNSNames = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	})
	_, words := nameProblem(leaf.cert, "rome")
	if want := "valid for a, b, c, d, e, f and 2 more but not for rome"; words != want {
		t.Errorf("got %q, want %q", words, want)
	}
}
