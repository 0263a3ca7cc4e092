package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func reachChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "extension-endpoints", Title: "The extension's Service routes to ready pods", On: steps.Local,
			Needs: []string{"signed-in"}, When: usesWebhook, FixedBy: "extension-service", Timeout: 3 * time.Minute,
			Why: "The API server calls the Service. Without a ready pod, or with a wrong target port, the webhook " +
				"never answers.", References: []string{resourcesSource}, Run: extensionEndpoints,
		},
		{
			Name: "extension-reached", Title: "Nothing in the namespace blocks the API server", On: steps.Local,
			Needs: []string{"signed-in"}, When: usesWebhook,
			Why: "The API server is outside the pod network and does not speak Istio mTLS, so a NetworkPolicy for pods or a " +
				"sidecar with mTLS blocks it.",
			References: []string{
				"https://istio.io/latest/docs/ops/common-problems/injection/",
				"https://kubernetes.io/docs/concepts/services-networking/network-policies/",
			}, Run: extensionReached,
		},
	}
}

func extensionEndpoints(ctx context.Context, e steps.Env) steps.Result {
	in := extensionSpace(e)
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, in, extensionName)
	if err != nil {
		return check.Missing(err, "Service "+in+"/"+extensionName, "")
	}
	d, err := theExtension(ctx, e)
	if err != nil {
		return check.AbsentFails(err, e.ApplyStep("extension"))
	}
	i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == 443 })
	if i < 0 {
		return steps.Failed(fmt.Sprintf("Service %s/%s has no port 443, which the webhook calls", in, s.Name), takeOverFix(e))
	}
	if to := s.Spec.Ports[i].TargetPort; to.Type == intstr.Int && to.IntVal != d.port() {
		return steps.Failed(
			fmt.Sprintf(
				"port 443 of Service %s/%s targets port %d of the pods, but they listen on %d", in, s.Name, to.IntVal, d.port(),
			),
			takeOverFix(e),
		)
	}
	if sel := labels.SelectorFromSet(s.Spec.Selector); len(s.Spec.Selector) > 0 &&
		!sel.Matches(labels.Set(d.Spec.Template.Labels)) {
		return steps.Failed(
			fmt.Sprintf("Service %s/%s selects %s, but the pods of Deployment %s have other labels", in, s.Name, sel, d.Name),
			takeOverFix(e),
		)
	}
	ready, err := check.ReadyAddresses(ctx, e.Cluster, in, s.Name)
	if err != nil {
		return steps.Errored(err)
	}
	if ready == 0 {
		return steps.Waits(
			check.WaitsSince(d.Deployment), "Service %s/%s has no ready pod", in, s.Name,
		).Or(e.Kubectl() + " -n " + in + " get service,endpointslices,pods -o wide")
	}
	return steps.Passed("ready pods: %d (Service %s/%s)", ready, in, s.Name)
}

// injection contains the namespace labels that add pods to a service mesh, with or without a sidecar. Each function
// reports whether a value of the label has this effect.
var injection = map[string]func(value string) bool{
	"istio-injection":         func(v string) bool { return v == "enabled" },
	"istio.io/rev":            func(v string) bool { return v != "" },
	"istio.io/dataplane-mode": func(v string) bool { return v == "ambient" },
}

func extensionReached(ctx context.Context, e steps.Env) steps.Result {
	in := extensionSpace(e)
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", in)
	if err != nil {
		return check.Missing(err, "namespace "+in, e.ApplyStep("certificates"))
	}
	pods, err := extensionPods(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	without := fmt.Sprintf(
		"%s label namespace %s istio-injection=disabled istio.io/rev- istio.io/dataplane-mode- --overwrite && %s -n %s "+
			"rollout restart deployment %s",
		e.Kubectl(), in, e.Kubectl(), in, extensionName,
	)
	for _, p := range pods {
		if slices.ContainsFunc(
			slices.Concat(p.Spec.InitContainers, p.Spec.Containers),
			func(c corev1.Container) bool { return c.Name == "istio-proxy" },
		) {
			return steps.Failed("pod "+p.Name+" has an Istio sidecar, but the API server does not speak mTLS", without)
		}
	}
	for label, on := range injection {
		if v := ns.Labels[label]; on(v) {
			return steps.Failed(
				fmt.Sprintf(
					"namespace %s has label %s=%s, so its pods are in a service mesh, but the API server is not", in, label,
					clean.Text(v),
				),
				without,
			)
		}
	}
	return ingressVerdict(ctx, e)
}

// ingressVerdict checks the NetworkPolicies that select the extension's pods.
func ingressVerdict(ctx context.Context, e steps.Env) steps.Result {
	in := extensionSpace(e)
	d, err := theExtension(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	all, err := check.PoliciesOf(ctx, e.Cluster, in, d.Spec.Template.Labels, networkingv1.PolicyTypeIngress)
	if err != nil {
		return steps.Errored(err)
	}
	var holding, blocks []string
	for _, p := range all {
		open, cidrs := allowedNetworks(p, d.port())
		if open {
			return steps.Passed("NetworkPolicy %s allows all ingress on port %d, and the pods have no sidecar", p.Name, d.port())
		}
		holding, blocks = append(holding, p.Name), append(blocks, cidrs...)
	}
	fix := fmt.Sprintf(`%s apply -f - <<'EOF'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s, namespace: %s}
spec:
  podSelector: {matchLabels: {app: %s}}
  policyTypes: [Ingress]
  ingress: [{ports: [{port: %d, protocol: TCP}]}]
EOF`, e.Kubectl(), extensionName, in, extensionName, d.port())
	switch {
	case len(holding) == 0:
		return steps.Passed("no NetworkPolicy selects the extension's pods, and the pods have no sidecar")
	case len(blocks) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"NetworkPolicy %s allows %s. carrick cannot tell whether these networks include the API server's address",
				check.Some(holding), check.Some(blocks),
			),
			fix,
		)
	}
	return steps.Failed(
		fmt.Sprintf(
			"NetworkPolicy %s allows only pods and namespaces, and the API server is neither", check.Some(holding),
		),
		fix,
	)
}

// allowedNetworks returns the CIDRs from which p allows ingress on port. If p allows all ingress on port, everybody is
// true and cidrs is nil.
func allowedNetworks(p *networkingv1.NetworkPolicy, port int32) (everybody bool, cidrs []string) {
	for _, rule := range p.Spec.Ingress {
		if !check.AllowsPort(rule.Ports, corev1.ProtocolTCP, port, func(name string) bool { return name == "https" }) {
			continue
		}
		if len(rule.From) == 0 {
			return true, nil
		}
		for _, from := range rule.From {
			if from.IPBlock == nil {
				continue
			}
			if strings.HasSuffix(from.IPBlock.CIDR, "/0") && len(from.IPBlock.Except) == 0 {
				return true, nil
			}
			cidrs = append(cidrs, clean.Text(from.IPBlock.CIDR))
		}
	}
	return false, cidrs
}
