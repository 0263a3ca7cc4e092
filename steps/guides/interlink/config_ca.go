package interlink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// configCA verifies that jobs get the endpoint's CA, and that the endpoint's certificate verifies against this CA.
func configCA(ctx context.Context, e steps.Env) steps.Result {
	values, err := e.Own.Map("vk-config")
	if err != nil {
		return steps.Errored(err)
	}
	at, err := configuredEndpoint(e)
	if err != nil {
		return steps.Errored(err)
	}
	have := configText(values, keyCA)
	switch {
	case have == "" && at.by == "kube":
		return steps.Passed(
			"%s is not set, so jobs get the cluster's own CA. The endpoint is the API server itself, whose certificate "+
				"that CA signs",
			keyCA,
		)
	case have == "" && at.by == "public":
		return steps.Warned(
			keyCA+
				" is not set, so jobs get the cluster's own CA as ca.crt. Clients that trust only ca.crt reject the endpoint, "+
				"because a public CA signed its certificate",
			"set cert.source to cert-manager or own, or set "+keyCA+
				" to the root of the public CA, which carrick keeps: "+editByHand(e),
		)
	case have == "":
		return steps.Undone(
			keyCA + " is not set: jobs get the cluster's own CA, which did not sign the endpoint's certificate",
		)
	}
	if r, ok := oneCA(have); !ok {
		return r
	}
	if want := at.ca; want != "" && fingerprint(plainPEM(have)) != fingerprint(want) {
		return steps.Failed(
			fmt.Sprintf(
				"jobs get a CA with fingerprint %s, but the endpoint's CA has fingerprint %s", short(fingerprint(plainPEM(have))),
				short(fingerprint(want)),
			),
			"",
		)
	}
	where := net.JoinHostPort(at.host, at.port)
	report, err := tracked.Look(
		ctx, "tls/"+where+"/"+fingerprint(have), time.Minute, func(ctx context.Context) (probe.TLSReport, error) {
			return probe.TLS(ctx, where, "", []byte(have))
		},
	)
	if err != nil {
		return steps.Warned(
			fmt.Sprintf(
				"jobs get the endpoint's CA (%s), but this machine cannot verify the endpoint's certificate against it: %s",
				short(fingerprint(have)), failure.Explain(err),
			),
			"carrick check "+e.LinkFile()+" --only endpoint-port,endpoint-certificate",
		)
	}
	if report.Kind == probe.UnknownAuthority {
		return steps.Failed(
			"the endpoint's certificate does not verify against the CA in the configuration: "+clean.Text(report.Problem), "",
		)
	}
	return steps.Passed(
		"jobs get the endpoint's CA, fingerprint %s, and the certificate that this machine sees verifies against it",
		short(fingerprint(have)),
	)
}

// oneCA reports whether text contains exactly one certificate and that certificate is a CA. If not, it also returns the
// check's failure.
func oneCA(text string) (steps.Result, bool) {
	certs, err := probe.ParseCerts([]byte(text))
	switch {
	case err != nil:
		return steps.Failed(keyCA+" contains no certificate: "+clean.Text(err.Error()), ""), false
	case len(certs) > 1:
		return steps.Failed(
			fmt.Sprintf("%s contains %d certificates, but jobs need only the CA", keyCA, len(certs)), "",
		), false
	case !certs[0].IsCA:
		return steps.Failed(
			fmt.Sprintf(
				"%s is a certificate for %s, not for a CA", keyCA, quoted(strings.Join(probe.Names(certs[0]), ", ")),
			),
			"",
		), false
	}
	return steps.Result{}, true
}

// fingerprint returns the SHA-256 of the first PEM certificate in text, in hexadecimal without colons. If text contains
// no certificate, it returns the SHA-256 of text.
func fingerprint(text string) string {
	raw := []byte(text)
	if certs, err := probe.ParseCerts(raw); err == nil {
		raw = certs[0].Raw
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func short(fingerprint string) string { return fingerprint[:min(16, len(fingerprint))] }
