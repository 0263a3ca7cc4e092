package interlink_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"carrick/cluster/certificate"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// The next apply reissues a certificate that carrick created and another user has damaged. The plan gives the reason.
func TestVerifySpoiltCertificateIsIssuedAnew(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.Reset(t)
	box.Seed(t, "interlink")
	answers := stepstest.Given(
		t, box, interlink.Guide(), map[string]any{"exposure.type": "NodePort", "cert.source": "own"},
	)
	delete(answers, "test.watch")
	delete(answers, "exposure.port")
	s := stepstest.Open(t, box, upToCertificates(), assets, "here", answers)
	stepstest.Apply(t, s)
	other, err := certificate.NewAuthority("another", 1)
	if err != nil {
		t.Fatal(err)
	}
	for key, c := range map[string]struct{ text, why string }{
		"tls.key": {other.Key.Reveal(), "the existing key does not belong to the certificate"},
		"tls.crt": {"none", "the existing certificate cannot be read"},
		"ca.crt":  {string(other.Cert), "the existing ca.crt is not the CA's certificate"},
	} {
		t.Run(key, func(t *testing.T) {
			patch := fmt.Sprintf(`{"data":{%q:%q}}`, key, base64.StdEncoding.EncodeToString([]byte(c.text)))
			box.Run(
				t, clustertest.Local, "", "-n", "interlink-api", "patch", "secret", "web-ssl-kubernetes-api", "--type=merge", "-p",
				patch,
			)
			p, err := s.Plan(t.Context(), engine.Scope{})
			if err != nil {
				t.Fatal(err)
			}
			if said := fmt.Sprintf("%+v", p.Actions); !strings.Contains(said, c.why) {
				t.Errorf("the plan does not say that %s: %s", c.why, said)
			}
			stepstest.Apply(t, s, steps.ApplyOptions{TakeOver: true})
			stepstest.Green(t, s)
			again, err := s.Plan(t.Context(), engine.Scope{})
			if err != nil || !again.Empty() {
				t.Errorf("there is something to do still: %v %+v", err, again)
			}
		})
	}
	stepstest.Undo(t, s)
}

// upToCertificates returns the guide without the steps proxy and endpoint, which serve the certificates.
func upToCertificates() *steps.Guide {
	g := endpointHalf()
	var kept []steps.Step
	for _, s := range g.Steps {
		if s.Name == "proxy" || s.Name == "endpoint" {
			continue
		}
		kept = append(kept, s)
	}
	g.Steps = kept
	return g
}

// carrick apply makes cert-manager reissue an expired certificate at once, although cert-manager is backing off after a
// failure. apply does not delete the Secret.
func TestVerifyExpiredCertificateIsIssuedAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	x := joined(t, box, "certificate-expired", true, nil)
	uid := func() string {
		return box.Run(t, clustertest.Local, "", "-n", "interlink-api", "get", "secret", "web-ssl-kubernetes-api",
			"-o", "jsonpath={.metadata.uid}")
	}
	was := uid()
	p, err := x.Plan(t.Context(), engine.Scope{Steps: []string{"certificates"}})
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("%+v", p.Actions)
	for _, want := range []string{
		"status of Certificate interlink-api/web-ssl-kubernetes-api", "carrick makes cert-manager reissue it now",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the plan does not say %q: %s", want, said)
		}
	}
	if err := x.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	x.Holds("certificate-secret", "apply")
	if now := uid(); now != was {
		t.Errorf("Secret %s was deleted: it is %s", was, now)
	}
	x.Forget()
	if v := x.Of("endpoint-dates"); v.Status != steps.Pass { // nginx has read the old certificate at start
		x.Fix(v.Fix)
		x.Holds("endpoint-dates", v.Fix)
	}
	if again, err := x.Plan(t.Context(), engine.Scope{Steps: []string{"certificates"}}); err != nil || !again.Empty() {
		t.Errorf("there is something to do still: %v %+v", err, again)
	}
}
