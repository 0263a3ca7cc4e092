package interlink

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	nginxControllerSource = "kubernetes/ingress-nginx: internal/ingress/controller/controller.go"
	nginxChart            = "kubernetes/ingress-nginx: charts/ingress-nginx/values.yaml"
)

// chainChecks returns the checks of the objects from the published guide.
func chainChecks() []steps.Check {
	onChain := func(c steps.Check) steps.Check {
		c.On, c.When = steps.Local, in(byIngress)
		if c.Name != "ingress-exists" {
			c.Needs = []string{"ingress-exists"}
		} else {
			c.Needs = []string{"signed-in"}
		}
		return c
	}
	return []steps.Check{
		onChain(steps.Check{
			Name: "ingress-exists", Title: "An Ingress forwards to the API",
			Why: "In the published guide, jobs reach the API only through it.", References: []string{page}, Run: ingressThere,
		}),
		onChain(steps.Check{
			Name: "ingress-class", Title: "Exactly one controller serves the Ingress's IngressClass",
			Why: "Two controllers of one IngressClass overwrite each other's status of the Ingress. Without the IngressClass " +
				"no controller serves the Ingress.",
			References: []string{nginxChart, page}, Run: ingressClass,
		}),
		onChain(steps.Check{
			Name: "ingress-upstream", Title: "The reverse proxy has the API's address",
			Why: "In the published cat <<EOF the shell replaces $upstream with an empty string, and nginx cannot start " +
				"with that file.",
			References: []string{page}, Run: ingressUpstream,
		}),
		onChain(steps.Check{
			Name: "ingress-certificate", Title: "The controller serves the Ingress's certificate to jobs",
			Why: "Clients that connect to an IP address send no host name, and ingress-nginx then serves its generated " +
				"certificate, whatever the Ingress names.", References: []string{
				nginxControllerSource, "kubernetes/ingress-nginx: issue 4407",
			}, Run: ingressCertificate,
		}),
		onChain(steps.Check{
			Name: "ingress-port", Title: "The controller listens on the port that jobs use",
			Why: "The published commands set hostPort.ports but not hostPort.enabled, so the port has no effect. A load " +
				"balancer listens on 80 and 443.", References: []string{nginxChart}, Run: ingressPort,
		}),
		onChain(steps.Check{
			Name: "ingress-timeouts", Title: "The Ingress allows long watches and large requests",
			Why: "Without these annotations ingress-nginx closes connections idle for 60 seconds and rejects bodies over 1 " +
				"MiB, so Argo's watches break.", References: []string{
				"kubernetes/ingress-nginx: docs/user-guide/nginx-configuration/annotations.md",
			}, Run: ingressTimeouts,
		}),
		onChain(steps.Check{
			Name: "ingress-inside", Title: "Tokens stay encrypted behind the Ingress",
			Why: "The published reverse proxy listens without TLS, so every job's token crosses the cluster unencrypted, and " +
				"the API server's certificate is not verified.", References: []string{page}, Run: ingressInside,
		}),
	}
}

func withChain(ctx context.Context, e steps.Env, look func(*networkingv1.Ingress) steps.Result) steps.Result {
	i, err := chain(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	return look(i)
}

// repaired returns the command that exports the published guide's files with corrections.
func repaired(e steps.Env) string {
	return "carrick export " + e.LinkFile() +
		" DIR    # writes this chain's files with corrections; or set exposure.mode to proxy"
}

func ingressThere(ctx context.Context, e steps.Env) steps.Result {
	i, err := chain(ctx, e)
	if _, absent := err.(*steps.AbsentError); absent {
		return steps.Failed(err.Error(), repaired(e))
	}
	if err != nil {
		return steps.Errored(err)
	}
	var paths []string
	for _, p := range pathsOf(i) {
		paths = append(paths, clean.Text(p.Path))
	}
	return steps.Passed("Ingress %s/%s, paths %s", i.Namespace, i.Name, strings.Join(paths, ", "))
}

func ingressClass(ctx context.Context, e steps.Env) steps.Result {
	return withChain(ctx, e, func(i *networkingv1.Ingress) steps.Result {
		classes, err := check.List[networkingv1.IngressClass](ctx, e.Cluster, check.IngressClasses, "", cluster.Selector{})
		if err != nil {
			return steps.Errored(err)
		}
		all, err := controllers(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		name := classOf(i)
		if name == "" {
			return steps.Failed(
				"Ingress "+i.Name+" has no ingressClassName, so the controller of the default IngressClass serves it",
				e.Kubectl()+" patch ingress "+i.Name+" -n "+i.Namespace+
					` --type merge -p '{"spec":{"ingressClassName":"nginx-internal"}}'`,
			)
		}
		at := slices.IndexFunc(classes, func(c *networkingv1.IngressClass) bool { return c.Name == name })
		if at < 0 {
			return steps.Failed(
				fmt.Sprintf(
					"IngressClass %s does not exist: the published --set controller.ingressClassResource=%s replaces a map with a "+
						"string, and the chart cannot be installed",
					name, name,
				),
				e.Helm()+" upgrade --install my-ingress-nginx ingress-nginx/ingress-nginx -n "+space(e)+
					" --reuse-values --set controller.ingressClass="+name+
					" --set-json "+
					steps.Quoted(fmt.Sprintf(
						`controller.ingressClassResource={"name":%q,"enabled":true,"controllerValue":%q}`, name, "k8s.io/ingress-"+name,
					)),
			)
		}
		return classServed(e, classes, at, all)
	})
}

func classServed(e steps.Env, classes []*networkingv1.IngressClass, at int, all []controller) steps.Result {
	c := classes[at]
	for n, other := range classes {
		if n != at && other.Spec.Controller == c.Spec.Controller {
			return steps.Failed(
				fmt.Sprintf(
					"IngressClass %s and IngressClass %s have the same controller %s, so each controller serves both IngressClasses",
					c.Name, other.Name,
					clean.Text(c.Spec.Controller),
				),
				repaired(e),
			)
		}
	}
	var by []string
	for _, k := range all {
		if k.class == c.Spec.Controller {
			by = append(by, k.name)
		}
	}
	switch len(by) {
	case 0:
		return steps.Failed(
			fmt.Sprintf(
				"no ingress-nginx runs with --controller-class=%s, which IngressClass %s requires", clean.Text(c.Spec.Controller),
				c.Name,
			),
			repaired(e),
		)
	case 1:
		return steps.Passed("IngressClass %s is served only by %s", c.Name, by[0])
	}
	return steps.Failed(fmt.Sprintf("%s all serve IngressClass %s", strings.Join(by, " and "), c.Name), repaired(e))
}

func ingressUpstream(ctx context.Context, e steps.Env) steps.Result {
	all, err := serverBlocks(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if len(all) == 0 {
		return steps.Failed("no ConfigMap in "+space(e)+" configures a reverse proxy for the API", repaired(e))
	}
	for _, b := range all {
		if bad := b.shellDamage(); bad != "" {
			return steps.Failed(
				bad+
					": the shell that wrote the published file replaced $upstream with an empty string (cat <<EOF), so nginx "+
					"cannot start",
				repaired(e)+". If you write the file manually: cat <<'EOF' keeps $upstream",
			)
		}
	}
	return steps.Passed("ConfigMap %s has the API's address", all[0].configMap)
}

func ingressCertificate(ctx context.Context, e steps.Env) steps.Result {
	return withChain(ctx, e, func(i *networkingv1.Ingress) steps.Result {
		address, secret := e.Answers.Text("exposure.address"), ingressSecret(i)
		if secret == "" {
			return steps.Failed(
				"Ingress "+i.Name+" names no TLS Secret, so the controller serves its generated certificate", repaired(e),
			)
		}
		if slices.Contains(ownHosts(i), address) {
			return steps.Passed("Ingress %s serves host %s with Secret %s", i.Name, address, secret)
		}
		k, err := controllerOfIngress(ctx, e, i)
		if err != nil {
			return steps.Errored(err)
		}
		want := i.Namespace + "/" + secret
		switch {
		case k == nil:
			return steps.Skipped("no controller serves the Ingress (ingress-class), so it is unknown which certificate jobs get")
		case k.cert == want:
			return steps.Passed("%s serves %s to clients that send no host name (--default-ssl-certificate)", k.name, want)
		}
		kind := "a name that no rule of the Ingress contains"
		if isAddress(address) {
			kind = "an IP address (clients then send no host name, so no rule matches)"
		}
		return steps.Failed(
			fmt.Sprintf(
				"jobs connect to %s, %s, and %s has no --default-ssl-certificate=%s, so it serves %q", address, kind, k.name, want,
				check.NginxFakeCertificate,
			),
			e.Helm()+" upgrade my-ingress-nginx ingress-nginx/ingress-nginx -n "+i.Namespace+
				" --reuse-values --set controller.extraArgs.default-ssl-certificate="+want,
		)
	})
}

func ingressPort(ctx context.Context, e steps.Env) steps.Result {
	return withChain(ctx, e, func(i *networkingv1.Ingress) steps.Result {
		k, err := controllerOfIngress(ctx, e, i)
		if err != nil {
			return steps.Errored(err)
		}
		if k == nil {
			return steps.Skipped("no controller serves the Ingress (ingress-class)")
		}
		port := int32(e.Answers.Int("exposure.port"))
		for _, p := range k.ports {
			if p.HostPort == port {
				return steps.Passed("%s has hostPort %d", k.name, port)
			}
		}
		services, err := check.List[corev1.Service](
			ctx, e.Cluster, check.Services, i.Namespace, cluster.Selector{Labels: "app.kubernetes.io/component=controller"},
		)
		if err != nil {
			return steps.Errored(err)
		}
		for _, s := range services {
			for _, p := range s.Spec.Ports {
				if p.NodePort == port || (p.Port == port && s.Spec.Type == corev1.ServiceTypeLoadBalancer) {
					return steps.Passed("Service %s has port %d (%s)", s.Name, port, s.Spec.Type)
				}
			}
		}
		return steps.Failed(fmt.Sprintf("neither a hostPort of %s nor a Service next to it has port %d", k.name, port),
			fmt.Sprintf(
				"%s upgrade my-ingress-nginx ingress-nginx/ingress-nginx -n %s --reuse-values --set "+
					"controller.service.ports.https=%d --set controller.service.ports.http=6080    # in kind: --set "+
					"controller.hostPort.enabled=true --set controller.hostPort.ports.https=%d",
				e.Helm(), i.Namespace, port, port,
			))
	})
}

// chainNotes maps Ingress annotations to the values that keep idle watches open for an hour and allow requests of any
// size.
var chainNotes = map[string]string{
	"nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
	"nginx.ingress.kubernetes.io/proxy-body-size":    "0",
}

func ingressTimeouts(ctx context.Context, e steps.Env) steps.Result {
	return withChain(ctx, e, func(i *networkingv1.Ingress) steps.Result {
		read, size := i.Annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"], i.Annotations["nginx.ingress.kubernetes.io/proxy-body-size"]
		fix := e.Kubectl() + " annotate ingress " + i.Name + " -n " + i.Namespace +
			" --overwrite nginx.ingress.kubernetes.io/proxy-read-timeout=3600 nginx.ingress.kubernetes.io/proxy-body-size=0"
		if n, err := strconv.Atoi(read); err != nil || n < 600 {
			if read == "" {
				read = "not set, which means 60"
			}
			return steps.Failed(
				"proxy-read-timeout is "+clean.Text(read)+" seconds: a watch that is idle for 60 seconds or longer is closed", fix,
			)
		}
		if size != "0" {
			return steps.Warned("proxy-body-size is not 0, so requests over 1 MiB are rejected", fix)
		}
		return steps.Passed("proxy-read-timeout is %s, and the request size is not limited", clean.Text(read))
	})
}

func ingressInside(ctx context.Context, e steps.Env) steps.Result {
	return withChain(ctx, e, func(i *networkingv1.Ingress) steps.Result {
		all, err := serverBlocks(ctx, e)
		if err != nil {
			return steps.Errored(err)
		}
		if !strings.EqualFold(i.Annotations["nginx.ingress.kubernetes.io/backend-protocol"], "HTTPS") {
			return steps.Warned(
				"tokens go over plain HTTP from the Ingress to the reverse proxy (and ingress-nginx gets no more fixes)",
				"set exposure.mode to proxy, which has one fewer hop and uses TLS throughout; or "+repaired(e),
			)
		}
		for _, b := range all {
			if v := every(b.said, "proxy_ssl_verify"); len(v) == 0 || len(v[0].words) != 2 || v[0].words[1] != "on" {
				return steps.Warned(
					"ConfigMap "+b.configMap+" does not set proxy_ssl_verify on, so the API server's certificate is not verified",
					repaired(e),
				)
			}
		}
		return steps.Passed("the connection is encrypted up to the API server, and the API server's certificate is verified")
	})
}
