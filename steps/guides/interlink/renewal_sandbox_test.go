package interlink_test

import (
	"crypto/tls"
	"net"
	"os/exec"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps/guides/interlink"
	"carrick/steps/stepstest"
)

// carrick's proxy serves a renewed certificate without a restart, and the certificate verifies against the CA that jobs
// already have.
func TestVerifyARenewedCertificateNeedsNoRestart(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skipf("this machine has no nginx: %v", err)
	}
	box := seeded(t, "")
	x := stepstest.SiteOf(
		t, box, interlink.Guide(), assets, false, stepstest.Given(t, box, interlink.Guide(), map[string]any{
			"exposure.type": "LoadBalancer", "cert.source": "cert-manager", "test.job": false,
		}),
	)
	takeOver(t, x.Session)
	x.Holds("endpoint-renewed", "apply")
	shown := func() string {
		port := "60443"
		if own := box.Answers["exposure.port"]; own != "" {
			port = own
		}
		//nolint:gosec // the test inspects the certificate itself
		conn, err := tls.Dial(
			"tcp", net.JoinHostPort(box.Answers["exposure.address"], port), &tls.Config{InsecureSkipVerify: true},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	pods := func() string {
		return box.Run(t, clustertest.Local, "", "-n", "interlink-api", "get", "pods", "-o", "name") +
			box.Run(
				t, clustertest.Local, "", "-n", "interlink-api", "get", "pods", "-o",
				"jsonpath={.items[*].status.containerStatuses[*].restartCount}",
			)
	}
	was, ran := shown(), pods()
	// cert-manager reissues it
	box.Run(t, clustertest.Local, "", "-n", "interlink-api", "delete", "secret", "web-ssl-kubernetes-api")
	box.Run(
		t, clustertest.Local, "", "-n", "interlink-api", "wait", "--for=create", "--timeout=300s",
		"secret/web-ssl-kubernetes-api",
	)
	x.Holds("endpoint-renewed", "a renewal")
	x.Holds("endpoint-answers", "a renewal")
	x.Holds("requests-pass", "a renewal") // the recorded responses are still valid, because the CA is the same
	if now := shown(); now == was {
		t.Error("it shows the certificate of before")
	}
	if now := pods(); now != ran {
		t.Errorf("pods were %s, and are %s", ran, now)
	}
}
