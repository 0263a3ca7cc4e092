package interlink

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
)

// madeUpTraefik is the common name of the default certificate that Traefik generates.
const (
	madeUpTraefik = "TRAEFIK DEFAULT CERT"
)

func endpointChecks() []steps.Check {
	from := func(c steps.Check, run func(context.Context, steps.Env, endpointTarget) steps.Result) steps.Check {
		c.On, c.From, c.Run = steps.Both, "its own network", looking(run)
		c.References = append(c.References, page)
		return c
	}
	return []steps.Check{
		from(steps.Check{
			Name: "endpoint-name", Title: "The endpoint's address resolves",
			Why: "Jobs get the address unchanged and cannot connect if compute nodes cannot resolve it.",
		}, endpointName),
		from(steps.Check{
			Name: "endpoint-port", Title: "The endpoint's port accepts connections", Needs: []string{"endpoint-name"},
			Why: "A firewall that is open to the edge node can still block the compute nodes, so run this check on a " +
				"compute node, too.",
		}, endpointPortOpen),
		from(steps.Check{
			Name: "endpoint-certificate", Title: "The endpoint's certificate verifies against the jobs' CA",
			Needs: []string{"endpoint-port"},
			Why: "A job trusts only that CA and rejects any other certificate, such as one that an ingress " +
				"controller generates.", References: []string{nginxControllerSource},
		}, endpointCertificate),
		from(steps.Check{
			Name: "endpoint-names", Title: "The endpoint's certificate is for its address", Needs: []string{"endpoint-port"},
			Why: "Clients compare the address that they connect to with the names and IP addresses in the certificate.",
		}, endpointNames),
		from(steps.Check{
			Name: "endpoint-dates", Title: "The endpoint's certificate is valid now", Needs: []string{"endpoint-port"},
			Why: "If the proxy has not loaded the renewed certificate, clients reject the expired one.",
		}, endpointDates),
		{
			Name: "endpoint-renewed", Title: "The endpoint serves the latest certificate", On: steps.Local,
			Needs: []string{"endpoint-port", "certificate-secret"}, When: not(byServer), Timeout: 3 * time.Minute,
			Why: "Pods get a renewed Secret within about a minute, but an nginx with a fixed file name reads it only at start " +
				"and keeps serving the old certificate.",
			References: []string{
				"https://nginx.org/en/docs/http/ngx_http_ssl_module.html#ssl_certificate",
				"https://kubernetes.io/docs/concepts/configuration/secret/",
			}, Run: looking(endpointRenewed),
		},
		from(steps.Check{
			Name: "endpoint-answers", Title: "The API answers /api, /apis and /version",
			Needs: []string{"endpoint-certificate", "endpoint-names", "endpoint-dates"},
			Why: "Clients request all three paths first. 404 comes from a proxy's path rules, 502 from a proxy that cannot " +
				"reach the API server.",
		}, endpointAnswers),
		from(steps.Check{
			Name: "endpoint-anonymous", Title: "The endpoint reveals nothing without a token",
			Needs:      []string{"endpoint-answers"},
			Why:        "Every compute node can reach the endpoint, so it must reject requests without a token.",
			References: []string{"https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests"},
		}, endpointAnonymous),
		from(steps.Check{
			Name: "endpoint-paths", Title: "The endpoint serves only the API's four paths", Needs: []string{"endpoint-answers"},
			Why: "Jobs must not reach the metrics, logs and debug pages of the API server.",
		}, endpointPaths),
	}
}

func endpointName(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	if isAddress(t.host) {
		return steps.Passed("%s is an IP address", t.host)
	}
	addrs, err := tracked.Look(
		ctx, "endpoint-name/"+string(e.Side)+"/"+t.host, time.Minute, func(ctx context.Context) ([]string, error) {
			got, err := probe.Resolve(ctx, t.host)
			var out []string
			for _, a := range got {
				out = append(out, a.String())
			}
			return out, err
		},
	)
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		return steps.Failed(
			failure.Explain(err),
			"put "+t.host+" to the DNS of the compute nodes, or set exposure.address to an IP address",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	return steps.Passed("%s resolves to %s", t.host, strings.Join(addrs, ", "))
}

func endpointPortOpen(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	key, absent := "endpoint-tcp/"+string(e.Side)+"/"+t.where, t.mode == byProxy && noProxy(e)
	if absent {
		key += "/absent" // as soon as the Service exists, the port is tried again
	}
	_, err := tracked.Look(
		ctx, key, lookAge, func(ctx context.Context) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return probe.TCP(ctx, t.where)
		},
	)
	fix := fmt.Sprintf(
		"on a compute node, and on the edge node: nc -vz %s    # if it fails, allow connections from that network in the "+
			"firewall; a kind cluster opens only the ports that extraPortMappings listed when it was created",
		strings.ReplaceAll(net.JoinHostPort("", portOf(t.where)), ":", t.host+" "),
	)
	switch {
	case err != nil && !errors.Is(err, context.Canceled) && absent:
		return steps.Undone("nothing listens at " + t.where + ", because Service " + proxyName + " does not exist").
			Or(e.ApplyStep("certificates", "proxy")).Symptom()
	case errors.Is(err, syscall.ECONNREFUSED):
		r := steps.Failed("nothing listens at "+t.where, fix)
		if t.mode == byProxy {
			r = r.Symptom() // of the proxy or its Service, if they fail
		}
		return r
	case err != nil && ctx.Err() != nil:
		return steps.Errored(err)
	case err != nil:
		return steps.Failed("cannot connect to "+t.where+": "+failure.Explain(err), fix)
	}
	return steps.Passed("%s", t.where)
}

// noProxy reports whether the proxy's Service does not exist yet.
func noProxy(e steps.Env) bool {
	facts := e.Own
	if e.Side == steps.Remote {
		facts = e.Peer
	}
	exists, err := facts.Value("proxy-exists")
	return err == nil && exists == false
}

func portOf(where string) string {
	_, port, _ := net.SplitHostPort(where)
	return port
}

// endpointHandshake returns the report of a TLS handshake with the endpoint, or the check's result if the handshake
// failed.
func endpointHandshake(ctx context.Context, e steps.Env, t endpointTarget) (probe.TLSReport, *steps.Result) {
	got, err := t.handshake(ctx, e)
	if err == nil {
		return got, nil
	}
	fix := "openssl s_client -connect " + t.where + " </dev/null"
	r := steps.Failed("cannot establish TLS with "+t.where+": "+failure.Explain(err), fix)
	if got.Kind == probe.NotTLS {
		r = steps.Failed(
			t.where+" answers without TLS: jobs would send their tokens unencrypted, and clients do not connect", fix,
		)
	} else if ctx.Err() != nil {
		r = steps.Errored(err)
	}
	return got, &r
}

func endpointCertificate(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	got, no := endpointHandshake(ctx, e, t)
	if no != nil {
		return *no
	}
	name := got.Chain[0].Subject.CommonName
	if name == check.NginxFakeCertificate || name == madeUpTraefik {
		return steps.Failed(
			fmt.Sprintf(
				"%s serves %q, which an ingress controller generates when it has no certificate for the address", t.where, name,
			),
			"set the controller's --default-ssl-certificate to the endpoint's Secret (check ingress-certificate)",
		)
	}
	if t.noCA != nil {
		return steps.Errored(t.noCA)
	}
	roots, err := probe.Pool(t.ca)
	if err != nil {
		return steps.Errored(fmt.Errorf("the CA that jobs get: %w", err))
	}
	// Other checks cover names and dates.
	kind, words := probe.CertProblem(got.Chain, roots, "", inDate(got))
	if kind == "" {
		return steps.Passed(
			"the certificate is %q, signed by %q, over %s", clean.Text(name), clean.Text(got.Chain[0].Issuer.CommonName),
			got.Version,
		)
	}
	by := "the CA that jobs get"
	if t.by == "public" {
		by = "the CAs that this machine trusts"
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s serves %q, signed by %q, which does not verify against %s: %s", t.where, clean.Text(name),
			clean.Text(got.Chain[0].Issuer.CommonName), by, words,
		),
		provesFix(e, t),
	)
}

// provesFix returns the fix for an endpoint that does not serve the expected certificate.
func provesFix(e steps.Env, t endpointTarget) string {
	switch t.mode {
	case byProxy:
		return e.ApplyStep("certificates", "proxy") + "    # if that does not help, another process listens at that address"
	case byServer:
		return "set exposure.mode to proxy, or find the proxy that terminates TLS in front of the API server"
	}
	return "fix the check ingress-certificate first"
}

// datesFix returns the fix for a served certificate that has expired or is not valid yet. If the Secret already
// contains a certificate that is valid for longer, the fix restarts the proxy. Otherwise it renews the certificate.
func datesFix(ctx context.Context, e steps.Env, t endpointTarget, shown *x509.Certificate) string {
	if e.Side == steps.Remote || t.mode == byServer {
		return provesFix(e, t)
	}
	chain, _, err := endpointCertificates(ctx, e)
	switch {
	case err != nil:
		return provesFix(e, t)
	case chain[0].NotAfter.After(shown.NotAfter) && t.mode == byProxy:
		return e.Kubectl() + " rollout restart deployment " + proxyName + " -n " + space(e) + "    # Secret " +
			proxySecret(e) + " has a certificate that is valid until " + chain[0].NotAfter.UTC().Format(time.DateOnly)
	}
	if time.Now().After(chain[0].NotAfter) {
		return expiredFix(ctx, e)
	}
	return renewEndpointFix(ctx, e)
}

// inDate returns the current time if the served certificate is valid now, and otherwise the nearest time at which it is
// valid. Checks that ignore dates verify the certificate at this time.
func inDate(r probe.TLSReport) time.Time {
	now, leaf := time.Now(), r.Chain[0]
	switch {
	case now.After(leaf.NotAfter):
		return leaf.NotAfter.Add(-time.Second)
	case now.Before(leaf.NotBefore):
		return leaf.NotBefore
	}
	return now
}

func endpointNames(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	got, no := endpointHandshake(ctx, e, t)
	if no != nil {
		return *no
	}
	if err := got.Chain[0].VerifyHostname(t.host); err == nil {
		return steps.Passed("%s is among the certificate's names: %s", t.host, strings.Join(got.Names, ", "))
	}
	found := fmt.Sprintf("the certificate is for %s, not for %s", strings.Join(got.Names, ", "), t.host)
	if len(got.Names) == 0 {
		found = "the certificate contains no names, so it is not valid for " + t.host
	}
	switch t.mode {
	case byServer:
		return steps.Failed(
			found,
			"kubeadm: add "+t.host+
				" to apiServer.certSANs, then on each control-plane node: rm /etc/kubernetes/pki/apiserver.*; kubeadm init phase "+
				"certs apiserver --config kubeadm.yaml; or set exposure.mode to proxy",
		)
	case byIngress:
		return steps.Failed(
			found,
			"carrick export "+e.LinkFile()+" DIR    # the exported Certificate has the address in ipAddresses or dnsNames",
		)
	}
	return steps.Failed(found, e.ApplyStep("certificates"))
}

func endpointDates(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	got, no := endpointHandshake(ctx, e, t)
	if no != nil {
		return *no
	}
	leaf, now := got.Chain[0], time.Now()
	fix := datesFix(ctx, e, t, leaf)
	switch left := leaf.NotAfter.Sub(now); {
	case now.Before(leaf.NotBefore):
		begins := leaf.NotBefore.UTC().Format(time.DateTime)
		return steps.Failed("the certificate is not valid before "+begins+", or a clock is wrong",
			"date -u    # if this clock is correct, the certificate is not valid yet: "+fix)
	case left <= 0:
		return steps.Failed("the certificate expired on "+leaf.NotAfter.UTC().Format(time.DateOnly), fix)
	case left < certs.Soon(leaf):
		return steps.Warned("the certificate expires on "+leaf.NotAfter.UTC().Format(time.DateOnly), fix)
	}
	r := steps.Passed("the certificate is valid until %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	r.Again = leaf.NotAfter.Add(-certs.Soon(leaf))
	return r
}
