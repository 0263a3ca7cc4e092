package renku

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

func sessionHostResolves(ctx context.Context, e steps.Env) steps.Result {
	addrs, err := check.Resolve(ctx, sessionHost(e))
	if err != nil {
		return steps.Failed(
			failure.Explain(err),
			"add "+sessionHost(e)+" to DNS with the address of the remote cluster's ingress: "+e.Kubectl()+
				" get services -A | grep LoadBalancer",
		)
	}
	return steps.Passed("%v", addrs)
}

// ingressAddress is one address of a LoadBalancer Service. service is the Service's NAMESPACE/NAME.
// address is an IP address or a host name.
type ingressAddress struct{ service, address string }

// ingressAddresses returns the addresses of all LoadBalancer Services that listen on the given port
// or on 443.
func ingressAddresses(ctx context.Context, e steps.Env, port int32) ([]ingressAddress, error) {
	services, err := check.List[corev1.Service](ctx, e.Cluster, check.Services, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []ingressAddress
	for _, s := range services {
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer ||
			!slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port || p.Port == 443 }) {
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
	addrs, err := check.Resolve(ctx, sessionHost(e))
	if err != nil {
		return steps.Errored(err)
	}
	all, err := ingressAddresses(ctx, e, int32(e.Answers.Int("sessions.port")))
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Skipped(
			"no Service of type LoadBalancer on the remote cluster serves the session port, so carrick cannot check whether "+
				"%v is the ingress",
			addrs,
		)
	}
	var names []string
	for _, at := range all {
		names = append(names, at.address+" ("+at.service+")")
		of := []netip.Addr{}
		if ip, err := netip.ParseAddr(at.address); err == nil {
			of = append(of, ip)
		} else if of, err = check.Resolve(ctx, at.address); err != nil {
			return steps.Errored(err)
		}
		for _, a := range addrs {
			if slices.Contains(of, a) {
				return steps.Passed("%s belongs to Service %s", a, at.service)
			}
		}
	}
	return steps.Warned(
		fmt.Sprintf(
			"%s resolves to %v, but the load balancers of the remote cluster are %s", sessionHost(e), addrs,
			strings.Join(names, ", "),
		),
		"change the DNS record, unless a proxy or NAT in front of the cluster forwards the traffic",
	)
}

func sessionTLS(ctx context.Context, e steps.Env) steps.Result {
	if e.Answers.Text("sessions.protocol") != "https" {
		return steps.Skipped("sessions are served over http")
	}
	if sessionHost(e) == "" {
		return steps.Skipped("the session host is not set")
	}
	ca, err := renkuTrust(e)
	if err != nil {
		return steps.Errored(err)
	}
	where := fmt.Sprintf("%s:%d", sessionHost(e), e.Answers.Int("sessions.port"))
	report, err := tracked.Look(
		ctx, "tls+/"+where+"/"+masked.New(ca).Hash(), time.Minute, func(ctx context.Context) (probe.TLSReport, error) {
			return probe.TLS(ctx, where, "", nil)
		},
	)
	if err != nil {
		return steps.Failed(
			"no TLS connection to "+where+" from this machine: "+failure.Explain(err),
			"curl -v https://"+where+"/    # check that the ingress controller runs and the port is open",
		)
	}
	problem := report.Problem
	if !report.Trusted && ca != "" { // verify against Renku's own CA, too
		roots, err := probe.SystemAnd([]byte(ca))
		if err != nil {
			return steps.Errored(err)
		}
		_, problem = probe.CertProblem(report.Chain, roots, sessionHost(e), time.Now())
	}
	secret := e.Answers.Text("sessions.tls-secret")
	fix := "give the ingress controller a default certificate for " + sessionHost(e) +
		" (ingress-nginx: --default-ssl-certificate=NAMESPACE/SECRET), or set sessions.tls-secret to a Secret in " +
		sessionsNamespace(e)
	switch {
	case problem == "":
		r := steps.Passed("%s, %s, certificate valid until %s", where, report.Version, report.NotAfter.Format(time.DateOnly))
		r.Again = report.NotAfter
		return r
	case secret != "" && report.Chain[0].Subject.CommonName == check.NginxFakeCertificate:
		return steps.Skipped(
			"the ingress controller presents its generated certificate. It uses Secret %s only after a session's Ingress "+
				"names that Secret",
			secret,
		)
	case secret != "" && !shows(ctx, e, secret, report.Chain[0]):
		return steps.Skipped(
			"%s presents the ingress controller's own certificate (%q). It uses Secret %s only after a session's Ingress "+
				"names that Secret (tls-secret checks the Secret)",
			where, clean.Text(report.Chain[0].Subject.CommonName), secret,
		)
	case report.Chain[0].Subject.CommonName == check.NginxFakeCertificate:
		return steps.Failed(
			where+" presents the certificate that ingress-nginx generates (\""+check.NginxFakeCertificate+
				"\"): no default certificate is set",
			fix,
		)
	}
	return steps.Failed(where+" presents a certificate that browsers reject: "+problem, fix)
}

// shows reports whether leaf is the certificate in the given Secret of the session namespace. It
// also returns true if that certificate cannot be read.
func shows(ctx context.Context, e steps.Env, secret string, leaf *x509.Certificate) bool {
	s, err := e.Cluster.Secret(ctx, sessionsNamespace(e), secret, "tls.crt")
	if err != nil {
		return true // an unreadable Secret must not hide a finding
	}
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	return err != nil || chain[0].Equal(leaf)
}
