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

// These are the default certificates that controllers generate.
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
			Name: "endpoint-name", Title: "the endpoint's address can be resolved",
			Why: "jobs are given the address as it stands: what compute nodes can't resolve, jobs can't dial",
		}, endpointName),
		from(steps.Check{
			Name: "endpoint-port", Title: "the endpoint's port takes connections", Needs: []string{"endpoint-name"},
			Why: "a firewall that is open to the edge node is not yet open to the compute nodes: run this from one of them, too",
		}, endpointPortOpen),
		from(steps.Check{
			Name: "endpoint-certificate", Title: "the CA that jobs are given proves the endpoint",
			Needs: []string{"endpoint-port"},
			Why: "a job trusts that CA and no other: what another one signed, such as the certificate that an ingress " +
				"controller makes up, is refused", References: []string{nginxControllerSource},
		}, endpointCertificate),
		from(steps.Check{
			Name: "endpoint-names", Title: "the endpoint's certificate is for its address", Needs: []string{"endpoint-port"},
			Why: "clients compare the address that they dial, an IP address with the certificate's IP addresses",
		}, endpointNames),
		from(steps.Check{
			Name: "endpoint-dates", Title: "the endpoint's certificate is in date", Needs: []string{"endpoint-port"},
			Why: "a proxy that shows an old certificate has not noticed that it was renewed",
		}, endpointDates),
		{
			Name: "endpoint-renewed", Title: "the endpoint shows the certificate that was issued last", On: steps.Local,
			Needs: []string{"endpoint-port", "certificate-secret"}, When: not(byServer), Timeout: 3 * time.Minute,
			Why: "a kubelet brings a renewed Secret into a pod's files within a minute or so; an nginx that names the " +
				"file by its name alone reads it when it starts and never again, until the old certificate ends",
			References: []string{
				"https://nginx.org/en/docs/http/ngx_http_ssl_module.html#ssl_certificate",
				"https://kubernetes.io/docs/concepts/configuration/secret/",
			}, Run: looking(endpointRenewed),
		},
		from(steps.Check{
			Name: "endpoint-answers", Title: "/api, /apis and /version are answered by the API",
			Needs: []string{"endpoint-certificate", "endpoint-names", "endpoint-dates"},
			Why: "clients ask for all of them before anything else; 404 is a proxy's rule for paths, 502 a proxy that can't " +
				"reach the API server",
		}, endpointAnswers),
		from(steps.Check{
			Name: "endpoint-anonymous", Title: "without a token nothing of the cluster is told",
			Needs:      []string{"endpoint-answers"},
			Why:        "the endpoint is open to every compute node: whoever asks without a token must be refused",
			References: []string{"https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests"},
		}, endpointAnonymous),
		from(steps.Check{
			Name: "endpoint-paths", Title: "nothing but the API's four paths is answered", Needs: []string{"endpoint-answers"},
			Why: "metrics, logs and debugging of the API server are no business of jobs",
		}, endpointPaths),
	}
}

func endpointName(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	if isAddress(t.host) {
		return steps.Passed("%s is an address", t.host)
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
			t.host+" can't be resolved: "+failure.Explain(err),
			"put "+t.host+" into a DNS that compute nodes ask, or answer exposure.address with an IP address",
		)
	}
	if err != nil {
		return steps.Errored(err)
	}
	return steps.Passed("%s is %s", t.host, strings.Join(addrs, ", "))
}

func endpointPortOpen(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	_, err := tracked.Look(
		ctx, "endpoint-tcp/"+string(e.Side)+"/"+t.where, lookAge, func(ctx context.Context) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return probe.TCP(ctx, t.where)
		},
	)
	fix := fmt.Sprintf(
		"on a compute node, and on the edge node: nc -vz %s    # is the firewall open from their network? A cluster of "+
			"kind opens only what extraPortMappings named when it was made",
		strings.ReplaceAll(net.JoinHostPort("", portOf(t.where)), ":", t.host+" "),
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return steps.Failed("nothing listens at "+t.where, fix)
	case err != nil && ctx.Err() != nil:
		return steps.Errored(err)
	case err != nil:
		return steps.Failed("no connection to "+t.where+": "+failure.Explain(err), fix)
	}
	return steps.Passed("%s", t.where)
}

func portOf(where string) string {
	_, port, _ := net.SplitHostPort(where)
	return port
}

// endpointHandshake returns the TLS handshake, or the verdict if there is none.
func endpointHandshake(ctx context.Context, e steps.Env, t endpointTarget) (probe.TLSReport, *steps.Result) {
	got, err := t.handshake(ctx, e)
	if err == nil {
		return got, nil
	}
	fix := "openssl s_client -connect " + t.where + " </dev/null"
	r := steps.Failed("no TLS with "+t.where+": "+failure.Explain(err), fix)
	if got.Kind == probe.NotTLS {
		r = steps.Failed(
			t.where+" answers, but not in TLS: jobs would send their tokens in the clear, and clients refuse", fix,
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
			fmt.Sprintf("%s shows %q, which an ingress controller makes up when it has none for the address", t.where, name),
			"the controller's --default-ssl-certificate has to name the endpoint's Secret (check ingress-certificate)",
		)
	}
	if t.noCA != nil {
		return steps.Errored(t.noCA)
	}
	roots, err := probe.Pool(t.ca)
	if err != nil {
		return steps.Errored(fmt.Errorf("the CA that jobs are given: %w", err))
	}
	// Other checks judge names and dates.
	kind, words := probe.CertProblem(got.Chain, roots, "", inDate(got))
	if kind == "" {
		return steps.Passed(
			"%q, signed by %q, by %s", clean.Text(name), clean.Text(got.Chain[0].Issuer.CommonName), got.Version,
		)
	}
	by := "the CA that jobs are given"
	if t.by == "public" {
		by = "the CAs that this machine trusts"
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s shows %q, signed by %q, which %s did not sign: %s", t.where, clean.Text(name),
			clean.Text(got.Chain[0].Issuer.CommonName), by, words,
		),
		provesFix(e, t),
	)
}

// provesFix is the fix if the endpoint serves another certificate than expected.
func provesFix(e steps.Env, t endpointTarget) string {
	switch t.mode {
	case byProxy:
		return e.ApplyStep("certificates", "proxy") + "    # does another program listen at that address?"
	case byServer:
		return "answer exposure.mode with proxy; or is something between that ends TLS?"
	}
	return "look at check ingress-certificate"
}

// datesFix is the fix if the endpoint's certificate is not valid now: use the one in its
// Secret, or issue another one.
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
			proxySecret(e) + " holds one until " + chain[0].NotAfter.UTC().Format(time.DateOnly)
	}
	if time.Now().After(chain[0].NotAfter) {
		return expiredFix(ctx, e)
	}
	return renewEndpointFix(ctx, e)
}

// inDate returns a time at which the certificate is valid.
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
		return steps.Passed("%s is among %s", t.host, strings.Join(got.Names, ", "))
	}
	found := fmt.Sprintf("the certificate is for %s, not for %s", strings.Join(got.Names, ", "), t.host)
	if len(got.Names) == 0 {
		found = "the certificate is for no address at all, not for " + t.host
	}
	switch t.mode {
	case byServer:
		return steps.Failed(
			found,
			"kubeadm: add "+t.host+
				" to apiServer.certSANs, then on each control-plane node: rm /etc/kubernetes/pki/apiserver.*; kubeadm init phase "+
				"certs apiserver --config kubeadm.yaml; or answer exposure.mode with proxy",
		)
	case byIngress:
		return steps.Failed(
			found, "carrick export "+e.LinkFile()+" DIR    # its Certificate has the address among its ipAddresses or dnsNames",
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
		return steps.Failed("the certificate is not good before "+begins+": is a clock wrong?",
			"date -u    # is this clock right? If it is, the certificate was made for later: "+fix)
	case left <= 0:
		return steps.Failed("the certificate ended on "+leaf.NotAfter.UTC().Format(time.DateOnly), fix)
	case left < certs.Soon(leaf):
		return steps.Warned("the certificate ends on "+leaf.NotAfter.UTC().Format(time.DateOnly), fix)
	}
	r := steps.Passed("until %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	r.Again = leaf.NotAfter.Add(-certs.Soon(leaf))
	return r
}
