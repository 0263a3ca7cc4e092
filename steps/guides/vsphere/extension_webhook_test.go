package vsphere

import (
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/certificate"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps"
)

// The CA in a webhook can be an earlier CA that still verifies the certificate. Its expiry must be
// reported.
func TestACAInTheWebhookEnds(t *testing.T) {
	made := func() certificate.Pair {
		ca, err := certificate.NewAuthority("CA", 2)
		if err != nil {
			t.Fatal(err)
		}
		return ca
	}
	one, other := made(), made()
	for situation, c := range map[string]struct {
		root, beside certificate.Pair
		left         time.Duration // of the one in the webhook
		want         steps.Status
	}{
		"the one beside the certificate is another check's": {one, one, 5 * 24 * time.Hour, steps.Pass},
		"another, which lasts":                              {one, other, 500 * 24 * time.Hour, steps.Pass},
		"another, which ends":                               {one, other, 5 * 24 * time.Hour, steps.Warn},
	} {
		roots, err := probe.ParseCerts(c.root.Cert)
		if err != nil {
			t.Fatal(err)
		}
		roots[0].NotBefore, roots[0].NotAfter = time.Now().AddDate(-1, 0, 0), time.Now().Add(c.left)
		s := &cluster.Secret{Data: map[string]masked.Value{"ca.crt": masked.New(string(c.beside.Cert))}}
		r := bundleExpiry(s, roots[0], "webhook a", "carrick apply")
		if r.Status != c.want || (c.want == steps.Warn && (!strings.Contains(r.Found, "webhook a") ||
			r.Fix != "carrick apply")) {
			t.Errorf("%s: %s: %s (%s)", situation, r.Status, r.Found, r.Fix)
		}
	}
}
