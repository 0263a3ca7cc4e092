package renku

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// addressSource is where upstream builds the sessions' addresses.
const addressSource = "SwissDataScienceCenter/renku-data-services: components/renku_data_services/notebooks/core_sessions.py, crc/api.spec.yaml"

func addressChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "session-host-name", Title: "the sessions' host is a name of their own that an Ingress takes", On: steps.Remote,
			Why: "Renku's API takes host:443 and names with _, an Ingress takes neither; under Renku's own domain sessions could read its cookies",
			See: []string{addressSource},
			Run: sessionHostName,
		},
		{
			Name: "session-host-resolves", Title: "the sessions' host resolves", On: steps.Remote, From: "this machine", Needs: []string{"session-host-name"},
			Why: "browsers open sessions there",
			Run: sessionHostResolves,
		},
		{
			Name: "session-host-is-ingress", Title: "it is the address of the remote cluster's ingress", On: steps.Remote, From: "this machine and the cluster", Needs: []string{"session-host-resolves"},
			Why: "a name that leads elsewhere shows somebody else's page, or none",
			Run: sessionHostIsIngress,
		},
		{
			Name: "session-tls", Title: "browsers trust what answers there", On: steps.Remote, From: "this machine", Needs: []string{"session-host-resolves", "session-protocol"},
			Why: "with the controller's default certificate each session shows what this shows; the one that ingress-nginx makes up is trusted by nobody",
			See: []string{page, "SwissDataScienceCenter/amalthea issue 1058"},
			Run: sessionTLS,
		},
		{
			Name: "session-path", Title: "the sessions' path is empty or /like/this", On: steps.Remote,
			Why: "Renku does not check it, and puts it before each session's name: a slash too many or too few breaks the address",
			See: []string{addressSource},
			Run: sessionPath,
		},
		{
			Name: "session-protocol", Title: "sessions are served by https", On: steps.Remote,
			Why: "with http the sign-in of many identity providers fails, and a portal on https can't frame it",
			See: []string{addressSource},
			Run: func(_ context.Context, e steps.Env) steps.Result {
				if e.Answers.Text("sessions.protocol") != "https" {
					return steps.Warned("sessions are served by http: passwords and data go in the open", "answer sessions.protocol with https")
				}
				return steps.Passed("https")
			},
		},
		{
			Name: "session-port", Title: "sessions use the protocol's own port", On: steps.Remote,
			Why: "any other port stands in the address that Keycloak must let in, and firewalls know it less",
			See: []string{addressSource},
			Run: usualPort,
		},
	}
}

var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkSessionHost is what an Ingress asks of a host (RFC 1123).
func checkSessionHost(v string) error {
	_, err := netip.ParseAddr(v)
	switch {
	case strings.Contains(v, "://"):
		return fmt.Errorf("%q is an address: write the host name alone, without https://", v)
	case err == nil:
		return fmt.Errorf("%q is an IP address: an Ingress serves names", v)
	case strings.ContainsAny(v, "/:"):
		return fmt.Errorf("%q is more than a host name: the port and the path are questions of their own", v)
	case strings.Contains(v, "_"):
		return fmt.Errorf("%q has a _ in it: Renku takes that, an Ingress does not", v)
	case !dnsName.MatchString(v) || len(v) > 253:
		return fmt.Errorf("%q is no host name that an Ingress takes: lower-case letters, digits, - and ., at most 253", v)
	}
	return nil
}

// checkSessionPath keeps the rule that Renku's API does not.
func checkSessionPath(v string) error {
	switch {
	case !strings.HasPrefix(v, "/"):
		return fmt.Errorf("%q does not begin with /: it would be glued to the host", v)
	case strings.HasSuffix(v, "/"):
		return fmt.Errorf("%q ends with /: each session's address would have two", v)
	case strings.ContainsAny(v, " ?#\\") || strings.Contains(v, "//") || strings.Contains(v, "/.."):
		return fmt.Errorf("%q is no path such as /sessions", v)
	}
	return nil
}

// registered is a text of the cluster as Renku has it; "" where it has none.
func registered(e steps.Env, field string) string {
	row, err := rowFact(e)
	if err != nil {
		return ""
	}
	return textOf(row, field)
}

func sessionPath(_ context.Context, e steps.Env) steps.Result {
	path, stored := e.Answers.Text("sessions.path"), registered(e, "session_path")
	if path != "" && checkSessionPath(path) != nil {
		return steps.Failed(checkSessionPath(path).Error(), "answer sessions.path")
	}
	if stored != "" && checkSessionPath(stored) != nil {
		return steps.Failed("as registered, "+checkSessionPath(stored).Error(), "carrick apply "+e.Link+".yaml --step register")
	}
	if path == "" {
		return steps.Passed("none: sessions stand at the root of their host")
	}
	return steps.Passed("%s", path)
}

func sessionHost(e steps.Env) string { return e.Answers.Text("sessions.host") }

// renkuHosts are the names under which the portal itself is known.
func renkuHosts(e steps.Env) []string {
	_, host, _ := strings.Cut(renkuOrigin(e), "://")
	if at, err := netip.ParseAddrPort(host); err == nil {
		host = at.Addr().String()
	} else if name, _, cut := strings.Cut(host, ":"); cut {
		host = name
	}
	return slices.DeleteFunc([]string{host, e.Answers.Text("renku.domain")}, func(s string) bool { return s == "" })
}

func sessionHostName(_ context.Context, e steps.Env) steps.Result {
	host := sessionHost(e)
	if host == "" {
		return steps.Failed("the sessions' host is not known", "answer sessions.host with the name that leads to the remote cluster's ingress")
	}
	if err := checkSessionHost(host); err != nil {
		return steps.Failed(err.Error(), "answer sessions.host")
	}
	if stored := registered(e, "session_host"); stored != "" {
		if err := checkSessionHost(stored); err != nil {
			return steps.Failed("as registered, "+err.Error(), "carrick apply "+e.Link+".yaml --step register")
		}
	}
	if slices.Contains(renkuHosts(e), host) {
		return steps.Failed(host+" is Renku's own domain: it leads to the local cluster", "answer sessions.host with a name that leads to the remote cluster's ingress")
	}
	return steps.Passed("%s", host)
}

// resolved are the addresses of the sessions' host as this machine sees them.
func resolved(ctx context.Context, host string) ([]netip.Addr, error) {
	return cluster.Look(ctx, "resolve/"+host, time.Minute, func(ctx context.Context) ([]netip.Addr, error) {
		return probe.Resolve(ctx, host)
	})
}

func sessionHostResolves(ctx context.Context, e steps.Env) steps.Result {
	addrs, err := resolved(ctx, sessionHost(e))
	if err != nil {
		return steps.Failed(cluster.Explain(err), "add "+sessionHost(e)+" to DNS, with the address of the remote cluster's ingress: "+e.Kubectl()+" get services -A | grep LoadBalancer")
	}
	return steps.Passed("%v", addrs)
}

// ingressAddress is an address at which a Service of the remote cluster can be
// reached.
type ingressAddress struct{ service, address string }

// ingressAddresses are those of all load balancers that serve port.
func ingressAddresses(ctx context.Context, e steps.Env, port int32) ([]ingressAddress, error) {
	services, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []ingressAddress
	for _, s := range services {
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port || p.Port == 443 }) {
			continue
		}
		for _, at := range s.Status.LoadBalancer.Ingress {
			if at.IP != "" {
				out = append(out, ingressAddress{s.Namespace + "/" + s.Name, at.IP})
			}
			if at.Hostname != "" {
				out = append(out, ingressAddress{s.Namespace + "/" + s.Name, at.Hostname})
			}
		}
	}
	return out, nil
}

func sessionHostIsIngress(ctx context.Context, e steps.Env) steps.Result {
	addrs, err := resolved(ctx, sessionHost(e))
	if err != nil {
		return steps.Unseen(err)
	}
	all, err := ingressAddresses(ctx, e, int32(e.Answers.Int("sessions.port")))
	if err != nil {
		return steps.Unseen(err)
	}
	if len(all) == 0 {
		return steps.Skipped("no Service of type LoadBalancer on the remote cluster serves that port: whether %v is its ingress can't be told", addrs)
	}
	var names []string
	for _, at := range all {
		names = append(names, at.address+" ("+at.service+")")
		of := []netip.Addr{}
		if ip, err := netip.ParseAddr(at.address); err == nil {
			of = append(of, ip)
		} else if of, err = resolved(ctx, at.address); err != nil {
			return steps.Unseen(err)
		}
		for _, a := range addrs {
			if slices.Contains(of, a) {
				return steps.Passed("%s is Service %s", a, at.service)
			}
		}
	}
	return steps.Warned(fmt.Sprintf("%s is %v, and the load balancers of the remote cluster are %s", sessionHost(e), addrs, strings.Join(names, ", ")),
		"change the DNS record, unless a proxy or address translation before the cluster passes it on")
}

// madeUp is the name in the certificate that ingress-nginx makes for itself.
const madeUp = "Kubernetes Ingress Controller Fake Certificate"

func sessionTLS(ctx context.Context, e steps.Env) steps.Result {
	if e.Answers.Text("sessions.protocol") != "https" {
		return steps.Skipped("sessions are served by http")
	}
	ca, err := trusted(e)
	if err != nil {
		return steps.Unseen(err)
	}
	where := fmt.Sprintf("%s:%d", sessionHost(e), e.Answers.Int("sessions.port"))
	report, err := cluster.Look(ctx, "tls+/"+where+"/"+cluster.Mask(ca).Hash(), time.Minute, func(ctx context.Context) (probe.TLSReport, error) {
		return probe.TLS(ctx, where, "", nil)
	})
	if err != nil {
		return steps.Failed("no TLS with "+where+" from this machine: "+cluster.Explain(err), "curl -v https://"+where+"/    # is the ingress controller up, the port open?")
	}
	problem := report.Problem
	if !report.Trusted && ca != "" { // Renku's own CA is a good one, too
		roots, err := probe.SystemAnd([]byte(ca))
		if err != nil {
			return steps.Unseen(err)
		}
		_, problem = probe.CertProblem(report.Chain, roots, sessionHost(e), time.Now())
	}
	secret := e.Answers.Text("sessions.tls-secret")
	fix := "give the ingress controller a default certificate for " + sessionHost(e) + " (ingress-nginx: --default-ssl-certificate=NAMESPACE/SECRET), or answer sessions.tls-secret with one that is in " + sessionsNamespace(e)
	switch {
	case problem == "":
		r := steps.Passed("%s, %s until %s", where, report.Version, report.NotAfter.Format(time.DateOnly))
		r.Again = report.NotAfter
		return r
	case secret != "" && report.Chain[0].Subject.CommonName == madeUp:
		return steps.Skipped("the controller shows the certificate that it makes up: %s is shown once a session's Ingress names it", secret)
	case report.Chain[0].Subject.CommonName == madeUp:
		return steps.Failed(where+" shows the certificate that ingress-nginx makes up (\""+madeUp+"\"): no default certificate is set", fix)
	}
	return steps.Failed(where+" shows a certificate that browsers refuse: "+problem, fix)
}

func usualPort(_ context.Context, e steps.Env) steps.Result {
	port, usual := e.Answers.Int("sessions.port"), 443
	if e.Answers.Text("sessions.protocol") == "http" {
		usual = 80
	}
	if port != usual {
		return steps.Warned(fmt.Sprintf("port %d stands in each session's address, and in the one that Keycloak must let in", port),
			fmt.Sprintf("answer sessions.port with %d, if the ingress is there, too", usual))
	}
	return steps.Passed("%d", port)
}
