package interlink

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// chainService is the Service of the published guide's reverse proxy.
const chainService = "my-nginx-kubernetes-api"

// leadsToAPI reports whether i forwards requests to the API as in the published guide. This is the case if a backend is
// the Service chainService, or if the name of the backend for /api or /apis contains "kubernetes".
func leadsToAPI(i *networkingv1.Ingress) bool {
	for _, p := range pathsOf(i) {
		if s := p.Backend.Service; s != nil && (s.Name == chainService || (p.Path == "/api" ||
			p.Path == "/apis") && strings.Contains(s.Name, "kubernetes")) {
			return true
		}
	}
	return false
}

func pathsOf(i *networkingv1.Ingress) []networkingv1.HTTPIngressPath {
	var out []networkingv1.HTTPIngressPath
	for _, r := range i.Spec.Rules {
		if r.HTTP != nil {
			out = append(out, r.HTTP.Paths...)
		}
	}
	return out
}

// chain returns the Ingress in the endpoint's namespace that forwards to the API as in the published guide.
func chain(ctx context.Context, e steps.Env) (*networkingv1.Ingress, error) {
	all, err := check.List[networkingv1.Ingress](ctx, e.Cluster, check.Ingresses, space(e), cluster.Selector{})
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if leadsToAPI(i) {
			return i, nil
		}
	}
	return nil, steps.Absent("no Ingress in %s forwards to the API", space(e))
}

func learnChainAddress(ctx context.Context, e steps.Env) (any, error) {
	i, err := chain(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, t := range i.Spec.TLS {
		if len(t.Hosts) > 0 {
			return t.Hosts[0], nil
		}
	}
	return nil, steps.Absent("Ingress %s names no host", i.Name)
}

// ingressSecret returns the name of the first TLS Secret of i, or "" if i names no Secret.
func ingressSecret(i *networkingv1.Ingress) string {
	for _, t := range i.Spec.TLS {
		if t.SecretName != "" {
			return t.SecretName
		}
	}
	return ""
}

// ownHosts returns the hosts of i that are listed both in a rule and in the TLS section. ingress-nginx serves the
// certificate of i only for these hosts.
func ownHosts(i *networkingv1.Ingress) []string {
	var out []string
	for _, r := range i.Spec.Rules {
		for _, t := range i.Spec.TLS {
			if r.Host != "" && slices.Contains(t.Hosts, r.Host) {
				out = append(out, r.Host)
			}
		}
	}
	return out
}

// controller describes an ingress-nginx container, including the arguments that select its Ingresses and certificates.
type controller struct {
	name    string // workload, such as "Deployment NAMESPACE/NAME"
	class   string // --controller-class
	classIs string // --ingress-class
	cert    string // --default-ssl-certificate
	ports   []corev1.ContainerPort
}

// controllers returns the ingress-nginx controllers in the Deployments and DaemonSets of all namespaces.
func controllers(ctx context.Context, e steps.Env) ([]controller, error) {
	deployments, err := check.List[appsv1.Deployment](
		ctx, e.Cluster, check.Deployments, "", cluster.Selector{Labels: "app.kubernetes.io/component=controller"},
	)
	if err != nil {
		return nil, err
	}
	sets, err := check.List[appsv1.DaemonSet](
		ctx, e.Cluster, check.DaemonSets, "", cluster.Selector{Labels: "app.kubernetes.io/component=controller"},
	)
	if err != nil {
		return nil, err
	}
	var out []controller
	for _, d := range deployments {
		out = append(out, controllersOf("Deployment "+d.Namespace+"/"+d.Name, d.Spec.Template.Spec)...)
	}
	for _, d := range sets {
		out = append(out, controllersOf("DaemonSet "+d.Namespace+"/"+d.Name, d.Spec.Template.Spec)...)
	}
	return out, nil
}

func controllersOf(name string, pod corev1.PodSpec) []controller {
	var out []controller
	for _, c := range pod.Containers {
		args := slices.Concat(c.Command, c.Args)
		if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "nginx-ingress-controller") }) {
			continue
		}
		k := controller{name: name, class: "k8s.io/ingress-nginx", classIs: "nginx", ports: c.Ports}
		for _, a := range args {
			if v, ok := strings.CutPrefix(a, "--controller-class="); ok {
				k.class = v
			}
			if v, ok := strings.CutPrefix(a, "--ingress-class="); ok {
				k.classIs = v
			}
			if v, ok := strings.CutPrefix(a, "--default-ssl-certificate="); ok {
				k.cert = v
			}
		}
		out = append(out, k)
	}
	return out
}

// classOf returns the name of the IngressClass of i, or "" if i names none.
func classOf(i *networkingv1.Ingress) string {
	if i.Spec.IngressClassName != nil {
		return *i.Spec.IngressClassName
	}
	return i.Annotations["kubernetes.io/ingress.class"]
}

// controllerOfIngress returns the ingress-nginx controller for the IngressClass of i, or nil if carrick finds none.
func controllerOfIngress(ctx context.Context, e steps.Env, i *networkingv1.Ingress) (*controller, error) {
	classes, err := check.List[networkingv1.IngressClass](ctx, e.Cluster, check.IngressClasses, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	all, err := controllers(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		for _, k := range all {
			if c.Name == classOf(i) && c.Spec.Controller == k.class {
				return &k, nil
			}
		}
	}
	return nil, nil
}

// serverBlock is the nginx configuration in one key of a ConfigMap.
type serverBlock struct {
	configMap, key string
	said           []directive
	err            error
}

// serverBlocks returns the nginx configurations in the endpoint's namespace that contain proxy_pass. It omits the
// configuration of carrick's own proxy.
func serverBlocks(ctx context.Context, e steps.Env) ([]serverBlock, error) {
	all, err := check.List[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, space(e), cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []serverBlock
	for _, c := range all {
		for key, text := range c.Data {
			if !strings.Contains(text, "proxy_pass") || c.Name == proxyName {
				continue
			}
			b := serverBlock{configMap: c.Name, key: key}
			b.said, b.err = readNginx(text)
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b serverBlock) int { return strings.Compare(a.configMap+a.key, b.configMap+b.key) })
	return out, nil
}

// shellDamage describes how a shell has damaged the configuration by expanding nginx's variables, or returns "" if the
// configuration is undamaged.
func (b serverBlock) shellDamage() string {
	where := fmt.Sprintf("ConfigMap %s, %s", b.configMap, clean.Text(b.key))
	if b.err != nil {
		return where + " is not valid nginx configuration: " + clean.Text(b.err.Error())
	}
	for _, d := range every(b.said, "set") {
		if len(d.words) != 3 || !strings.HasPrefix(string(d.words[1]), "$") {
			return where + " sets a variable without a name"
		}
	}
	for _, d := range every(b.said, "proxy_pass") {
		if len(d.words) != 2 {
			return where + " has a proxy_pass without an address"
		}
	}
	return ""
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
