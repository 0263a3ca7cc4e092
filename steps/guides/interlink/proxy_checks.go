package interlink

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func proxyChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "proxy-configuration", Title: "The proxy forwards the API correctly, and nothing else",
			On: steps.Local, Needs: []string{"endpoint-namespace"}, FixedBy: "proxy",
			Why: "By default nginx closes connections idle for 60 seconds, buffers responses and rejects bodies over 1 MiB, " +
				"so watches break and logs lag.",
			References: []string{"https://nginx.org/en/docs/http/ngx_http_proxy_module.html", page}, Run: proxyConfiguration,
		},
		{
			Name: "proxy-runs", Title: "The proxy is running", On: steps.Local, Needs: []string{"proxy-configuration"},
			FixedBy: "proxy", Timeout: 3 * time.Minute,
			Why: "Jobs reach the API only through it.", References: []string{page}, Run: proxyRuns,
		},
		{
			Name: "proxy-current", Title: "The proxy runs with the current configuration and CA", On: steps.Local,
			Needs: []string{"proxy-runs"}, FixedBy: "proxy", Timeout: 2 * time.Minute,
			Why: "nginx reads its configuration and the cluster's CA only at start. At each handshake it rereads only its own " +
				"certificate.", References: []string{
				"https://nginx.org/en/docs/http/ngx_http_ssl_module.html#ssl_certificate",
			}, Run: proxyCurrent,
		},
		{
			Name: "service-serves", Title: "The proxy's port is open and leads to the proxy's pods", On: steps.Local,
			Needs: []string{"proxy-runs"}, FixedBy: "service", Timeout: 3 * time.Minute,
			Why: "A Service without endpoints does not answer. Without a load balancer controller, a Service of type " +
				"LoadBalancer never gets an address.", References: []string{chartOfKube}, Run: serviceServes,
		},
		{
			Name: "proxy-sources", Title: "Only the compute nodes' networks can reach the proxy", On: steps.Local,
			Needs: []string{"endpoint-namespace"}, FixedBy: "fence",
			Why:        "Anyone who can reach the proxy can try tokens and exploit vulnerabilities of the API server.",
			References: []string{page, chartOfKube}, Run: proxyFenced,
		},
	}
}

// proxyDirectives lists the required directives of nginx.conf, with the consequence (harm) of another value.
var proxyDirectives = []struct{ name, want, harm string }{
	{"proxy_buffering", "off", "watches and logs are delayed"},
	{"client_max_body_size", "0", "requests over 1 MiB are rejected"},
	{"proxy_ssl_verify", "on", "the proxy sends tokens to any server that impersonates the API server"},
	{"proxy_http_version", "1.1", "kubectl exec and port-forward fail"},
}

func proxyConfiguration(ctx context.Context, e steps.Env) steps.Result {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, space(e), proxyName)
	if err != nil {
		return check.Missing(err, "ConfigMap "+space(e)+"/"+proxyName, "")
	}
	said, err := readNginx(m.Data["nginx.conf"])
	if err != nil {
		return steps.Failed("nginx.conf is not valid nginx configuration: "+clean.Text(err.Error()), "")
	}
	block := serverBlock{configMap: proxyName, key: "nginx.conf", said: said}
	if bad := block.shellDamage(); bad != "" {
		return steps.Failed(bad, "")
	}
	if len(every(said, "proxy_pass")) == 0 {
		return steps.Failed("nginx.conf forwards no requests", "")
	}
	for _, d := range proxyDirectives {
		got := every(said, d.name)
		if len(got) == 0 || len(got[0].words) != 2 || got[0].words[1].bare() != d.want {
			return steps.Failed(fmt.Sprintf("nginx.conf does not set %s %s, so %s", d.name, d.want, d.harm), "")
		}
	}
	if bad := mishandled(said); bad != "" {
		return steps.Failed(bad, "")
	}
	read := every(said, "proxy_read_timeout")
	if len(read) == 0 || len(read[0].words) != 2 || nginxTime(read[0].words[1].bare()) < 10*time.Minute {
		return steps.Failed(
			"nginx.conf has no proxy_read_timeout of at least ten minutes, so idle watches are closed",
			"",
		)
	}
	return steps.Passed("nginx closes connections that are idle for %s, and does not buffer", read[0].words[1])
}

// mishandled describes how nginx.conf exposes or replaces the jobs' tokens, or returns "" if it only forwards them.
func mishandled(said []directive) string {
	for _, d := range every(said, "proxy_set_header") {
		if len(d.words) == 3 && strings.EqualFold(d.words[1].bare(), "Authorization") &&
			d.words[2].bare() != "$http_authorization" {
			return "nginx.conf replaces the Authorization header of requests, so the API server does not get the jobs' tokens"
		}
	}
	for _, name := range []string{"log_format", "access_log", "add_header", "proxy_pass", "mirror"} {
		for _, d := range every(said, name) {
			if slices.ContainsFunc(d.words, func(w word) bool { return strings.Contains(string(w), "$http_authorization") }) {
				return "nginx.conf uses $http_authorization in " + name +
					", which exposes the jobs' tokens"
			}
		}
	}
	return ""
}

// nginxTime parses a time in nginx's syntax, in which a number without a unit means seconds. It returns 0 if s is
// invalid.
func nginxTime(s string) time.Duration {
	if s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0
	}
	return d
}

func proxyRuns(ctx context.Context, e steps.Env) steps.Result {
	r := check.Available(
		ctx, e, space(e), proxyName,
		e.Kubectl()+" describe pods -n "+space(e)+" -l app.kubernetes.io/name="+proxyName,
	)
	if r.Status != steps.Pass {
		return r
	}
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, space(e), proxyName)
	if err != nil {
		return steps.Errored(err)
	}
	want := e.Answers.Text("exposure.image")
	for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		if c.Image != want {
			return steps.Warned(
				fmt.Sprintf(
					"container %s runs image %s, but exposure.image is %s, and the tokens of all jobs pass through the container",
					clean.Name(c.Name), quoted(c.Image), quoted(want),
				), "",
			)
		}
	}
	return r
}

func serviceServes(ctx context.Context, e steps.Env) steps.Result {
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, space(e), proxyName)
	if err != nil {
		return check.Missing(err, "Service "+space(e)+"/"+proxyName, "")
	}
	on, err := readyOn(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(on) == 0 {
		return steps.Waits(
			s.CreationTimestamp.Time, "Service %s has no ready endpoint on port %d", s.Name, proxyListens,
		).Or(e.Kubectl() + " get endpointslices,pods -n " + space(e))
	}
	switch exposed(e) {
	case asBalancer:
		return balancerServes(e, s)
	case asNodePort:
		return nodePortServes(ctx, e, s, on)
	}
	return hostPortServes(ctx, e)
}

// readyOn returns the node of each ready endpoint of the proxy's Service, or "" for an endpoint without a node name.
func readyOn(ctx context.Context, e steps.Env) ([]string, error) {
	all, err := check.ReadyEndpoints(ctx, e.Cluster, space(e), proxyName, proxyListens)
	var out []string
	for _, at := range all {
		node := ""
		if at.NodeName != nil {
			node = *at.NodeName
		}
		out = append(out, node)
	}
	return out, err
}

func hasPort(s *corev1.Service, port int32, of func(corev1.ServicePort) int32) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return of(p) == port })
}

func balancerServes(e steps.Env, s *corev1.Service) steps.Result {
	port, want := int32(e.Answers.Int("exposure.port")), e.Answers.Text("exposure.address")
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer ||
		!hasPort(s, port, func(p corev1.ServicePort) int32 { return p.Port }) {
		return steps.Failed(
			fmt.Sprintf("Service %s is of type %s and has no load balancer port %d", s.Name, s.Spec.Type, port), "",
		)
	}
	got := balancerAddress(s)
	if got == "" {
		return steps.Waits(s.CreationTimestamp.Time, "Service %s has no address yet", s.Name).
			Or(
				"check that the cluster has a load balancer (a cloud's, or MetalLB with an IPAddressPool and an L2Advertisement): " +
					e.Kubectl() + " describe service " + s.Name + " -n " + space(e) + "    # or set exposure.type to NodePort",
			)
	}
	if isAddress(want) && got != want {
		return steps.Failed(
			fmt.Sprintf("the load balancer assigned Service %s the address %s, but jobs use %s", s.Name, clean.Text(got), want),
			"set exposure.address to "+clean.Text(got)+", then: carrick apply "+e.LinkFile(),
		)
	}
	return steps.Passed("%s, port %d", clean.Text(got), port)
}

func nodePortServes(ctx context.Context, e steps.Env, s *corev1.Service, on []string) steps.Result {
	port := int32(e.Answers.Int("exposure.port"))
	if !hasPort(s, port, func(p corev1.ServicePort) int32 { return p.NodePort }) {
		return steps.Failed(fmt.Sprintf("Service %s has no node port %d", s.Name, port), "")
	}
	nodes, err := realNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	at := nodeOf(nodes, e.Answers.Text("exposure.address"))
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && at != "" && !slices.Contains(on, at) {
		return steps.Failed(
			fmt.Sprintf(
				"the proxy runs on %s, but port %d of %s does not reach the proxy: with externalTrafficPolicy Local only the "+
					"proxy's own node answers",
				strings.Join(on, ", "), port, at,
			),
			e.ApplyStep("proxy")+"    # pins the proxy to that node",
		)
	}
	return steps.Passed("port %d is open on the nodes, and the proxy runs on %s", port, strings.Join(on, ", "))
}

func hostPortServes(ctx context.Context, e steps.Env) steps.Result {
	d, err := check.Get[appsv1.Deployment](ctx, e.Cluster, check.Deployments, space(e), proxyName)
	if err != nil {
		return steps.Errored(err)
	}
	port := int32(e.Answers.Int("exposure.port"))
	for _, c := range d.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort == port }) {
			return steps.Passed("port %d is open on the proxy's node", port)
		}
	}
	return steps.Failed(fmt.Sprintf("the proxy's pods do not use hostPort %d", port), e.ApplyStep("proxy"))
}

func proxyFenced(ctx context.Context, e steps.Env) steps.Result {
	fix := "set exposure.sources (step Exposure) to the networks of the compute nodes, then: carrick apply " +
		e.LinkFile() + " --step proxy"
	if len(e.Answers.List("exposure.sources")) > 0 {
		fix = e.ApplyStep("proxy")
	}
	p, err := check.Get[networkingv1.NetworkPolicy](ctx, e.Cluster, check.NetworkPolicies, space(e), proxyName)
	if err != nil && !apierrors.IsNotFound(err) {
		return steps.Errored(err)
	}
	fenced := err == nil
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, space(e), proxyName)
	if err != nil {
		return check.Missing(err, "Service "+space(e)+"/"+proxyName, e.ApplyStep("proxy"))
	}
	var by []string
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		by = append(by, "the load balancer ("+strings.Join(s.Spec.LoadBalancerSourceRanges, ", ")+")")
	}
	if fenced {
		from := allowedNetworks(p)
		if len(from) == 0 {
			return steps.Warned("NetworkPolicy "+p.Name+" allows everyone", fix)
		}
		if wide(from) ||
			(exposed(e) == asNodePort && s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal) {
			return steps.Warned(
				"NetworkPolicy "+p.Name+" restricts no client: it allows "+strings.Join(from, ", ")+
					", and a node port hides the source address unless externalTrafficPolicy is Local",
				fix,
			)
		}
		by = append(
			by, "NetworkPolicy "+p.Name+" ("+strings.Join(from, ", ")+"), if the cluster's CNI plugin enforces it",
		)
	}
	if fenced {
		opened, err := check.OpenedBy(
			ctx, e.Cluster, space(e), map[string]string{"app.kubernetes.io/name": proxyName}, p.Name,
		)
		if err != nil {
			return steps.Errored(err)
		}
		if len(opened) > 0 {
			return steps.Warned(
				fmt.Sprintf(
					"NetworkPolicy %s allows everyone. NetworkPolicy %s cannot restrict this, because NetworkPolicies are additive",
					strings.Join(opened, ", "),
					p.Name,
				),
				fmt.Sprintf("%s -n %s delete networkpolicy %s", e.Kubectl(), space(e), strings.Join(opened, " ")),
			)
		}
	}
	if len(by) == 0 || wide(s.Spec.LoadBalancerSourceRanges) {
		return steps.Warned(
			"the port is open to everyone unless a firewall blocks it: neither loadBalancerSourceRanges nor a NetworkPolicy "+
				"restricts the networks",
			fix,
		)
	}
	return steps.Passed("access is restricted by %s", strings.Join(by, " and "))
}

// wide reports whether a list of networks includes all addresses.
func wide(cidrs []string) bool {
	return slices.ContainsFunc(cidrs, func(c string) bool { return strings.HasSuffix(c, "/0") })
}
