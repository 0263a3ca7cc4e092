package interlink

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"carrick/cluster"
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

// isAPI reports whether a response is from the API server: it returns errors as a Status, and
// its version and groups as JSON.
func isAPI(r probe.HTTPReport) bool {
	var v struct{ Kind, GitVersion string }
	return json.Unmarshal(r.Body, &v) == nil && (v.Kind != "" || v.GitVersion != "")
}

func endpointAnswers(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	var open []string
	for _, path := range []string{"/api", "/apis", "/version"} {
		r, err := t.get(ctx, e, path)
		if err != nil {
			if ctx.Err() != nil {
				return steps.Errored(err)
			}
			return steps.Failed("GET "+path+": "+failure.Explain(err), askBy(t, path))
		}
		switch {
		case r.Status == 200 && (isAPI(r) || len(r.Body) == 64<<10): // a long list of groups is truncated there
			open = append(open, path)
		case (r.Status == 401 || r.Status == 403) && isAPI(r):
		case r.Status == 404 && path == "/version":
			return steps.Warned(
				"GET /version is 404: kubectl and Helm ask for it. The published Ingress passes only /api and /apis on",
				"add the path /version (and /openapi) to the Ingress: carrick export "+e.LinkFile()+" DIR",
			)
		case r.Status == 404:
			return steps.Failed("GET "+path+" is 404: what answers there does not pass the API's paths on", askBy(t, path))
		case r.Status >= 500:
			return steps.Failed(
				fmt.Sprintf("GET %s is %d: what answers there does not reach the API server", path, r.Status),
				askBy(t, path)+"; "+clusterSays(e, t),
			)
		default:
			return steps.Failed(fmt.Sprintf("GET %s is %d, and not as an API server says it", path, r.Status), askBy(t, path))
		}
	}
	if len(open) == 0 {
		return steps.Passed("all three, and only to who has a token")
	}
	return steps.Passed("all three; %s to anybody", strings.Join(open, ", "))
}

func askBy(t endpointTarget, path string) string {
	return "curl --cacert ca.crt https://" + t.where + path
}

// clusterSays is the command that shows more on the cluster's side.
func clusterSays(e steps.Env, t endpointTarget) string {
	begin := e.Kubectl()
	if e.Side == steps.Remote {
		begin = e.PeerKubectl()
	}
	if t.mode == byProxy {
		return begin + " logs -n " + space(e) + " deployment/" + proxyName
	}
	return begin + " get pods -A"
}

func endpointAnonymous(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	r, err := t.get(ctx, e, "/api/v1/namespaces")
	if err != nil {
		return steps.Errored(err)
	}
	switch {
	case r.Status == 401:
		return steps.Passed("401: anonymous requests are refused altogether")
	case r.Status == 403 && isAPI(r):
		return steps.Passed("403: anonymous requests are known as such and may do nothing here")
	case r.Status == 200:
		return anybodyLists(ctx, e)
	}
	return steps.Warned(
		fmt.Sprintf("GET /api/v1/namespaces without a token is %d: neither 401 nor 403 of an API server", r.Status),
		askBy(t, "/api/v1/namespaces"),
	)
}

// listsNamespaces reports whether a role can list namespaces.
func listsNamespaces(r *rbacv1.ClusterRole) bool {
	has := func(list []string, v string) bool { return slices.Contains(list, v) || slices.Contains(list, "*") }
	return slices.ContainsFunc(r.Rules, func(p rbacv1.PolicyRule) bool {
		return has(p.APIGroups, "") && has(p.Resources, "namespaces") && has(p.Verbs, "list")
	})
}

func anybodyLists(ctx context.Context, e steps.Env) steps.Result {
	const found = "anybody may list namespaces without a token"
	look := "who gave rights to system:anonymous or system:unauthenticated? " + rbacSays(e) +
		" get clusterrolebindings,rolebindings -A -o wide | grep -E 'system:(anonymous|unauthenticated)'"
	if e.Side == steps.Remote {
		return steps.Failed(found, look)
	}
	all, err := check.List[rbacv1.ClusterRoleBinding](ctx, e.Cluster, check.ClusterRoleBindings, "", cluster.Selector{})
	if err != nil {
		return steps.Failed(found, look)
	}
	for _, b := range all {
		if b.Name == "system:public-info-viewer" || len(b.Subjects) == 0 ||
			slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
				return s.Name != "system:anonymous" && s.Name != "system:unauthenticated"
			}) {
			continue
		}
		if role, err := check.Get[rbacv1.ClusterRole](ctx, e.Cluster, check.ClusterRoles, "", b.RoleRef.Name); err != nil ||
			!listsNamespaces(role) {
			continue // such as a role that shows the issuer of tokens
		}
		return steps.Failed(
			fmt.Sprintf("%s: ClusterRoleBinding %s gives them ClusterRole %s", found, b.Name, clean.Text(b.RoleRef.Name)),
			e.Kubectl()+" delete clusterrolebinding "+steps.Quoted(b.Name)+"    # it is for nobody else",
		)
	}
	return steps.Failed(found, look)
}

func rbacSays(e steps.Env) string {
	if e.Side == steps.Remote {
		return e.PeerKubectl()
	}
	return e.Kubectl()
}

// otherPaths are paths of the API server that jobs must not reach.
var otherPaths = []string{"/metrics", "/healthz", "/logs/", "/debug/pprof/", "/"}

func endpointPaths(ctx context.Context, e steps.Env, t endpointTarget) steps.Result {
	if t.mode == byServer {
		return steps.Skipped(
			"jobs dial the API server itself, which serves all its paths; only a token's rights are between them",
		)
	}
	var through []string
	for _, path := range otherPaths {
		r, err := t.get(ctx, e, path)
		if err != nil {
			return steps.Errored(err)
		}
		if isAPI(r) || (r.Status == 200 && !slices.Contains(through, path)) {
			through = append(through, fmt.Sprintf("%s (%d)", path, r.Status))
		}
	}
	if len(through) > 0 {
		fix := e.ApplyStep("proxy")
		if t.mode == byIngress {
			fix = "have the Ingress name its paths: carrick export " + e.LinkFile() + " DIR"
		}
		return steps.Failed("more than the API's paths is passed on: "+strings.Join(through, ", "), fix)
	}
	return steps.Passed("%s: none is passed on", strings.Join(otherPaths, " "))
}
