package renku

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// sessionLabels are labels that every session pod has (SwissDataScienceCenter/amalthea:
// internal/controller, api/v1alpha1).
var sessionLabels = labels.Set{
	"app.kubernetes.io/name":       "AmaltheaSession",
	"app.kubernetes.io/created-by": "controller-manager",
}

const (
	sessionPort = 65535 // for signed-in users; a session without authentication listens on another port instead
	metaPort    = 65534 // only the operator connects to this port
)

func networkChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "egress-policy", Title: "A NetworkPolicy restricts session egress and allows DNS", On: steps.Remote,
			When:    isolated,
			FixedBy: "network-policies", Needs: []string{"namespace"},
			Why: "Sessions run users' code. Without a policy this code can reach everything in the cluster. Without DNS no " +
				"session starts.",
			References: []string{page, "SwissDataScienceCenter/renku: helm-chart/renku/templates/network-policies.yaml"},
			Run:        egressPolicy,
		},
		{
			Name: "dns-pods", Title: "The egress DNS rule matches the cluster's DNS", On: steps.Remote, When: isolated,
			Needs: []string{"egress-policy"},
			Why: "A rule that matches no pods allows nothing. OpenShift serves DNS in openshift-dns on port 5353, and " +
				"NodeLocal DNSCache answers at a node address.",
			Run: dnsPods,
		},
		{
			Name: "metadata-blocked", Title: "Sessions cannot reach the cloud metadata service", On: steps.Remote,
			When: isolated, FixedBy: "network-policies", Needs: []string{"egress-policy"},
			Why: "The metadata service returns the node's cloud credentials. The policy in the published guide allows " +
				"sessions to reach the service.",
			Run: metadataFenced,
		},
		{
			Name: "ingress-policy", Title: "A NetworkPolicy restricts ingress to sessions", On: steps.Remote, When: isolated,
			FixedBy: "network-policies", Needs: []string{"namespace"},
			Why: "Without the policy every pod in the cluster can bypass the sign-in and connect to a session " +
				"directly. The published guide has no such policy.",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates/network-policies.yaml"},
			Run:        ingressPolicy,
		},
		{
			Name: "renku-address", Title: "The policy allows sessions to reach Renku", On: steps.Remote, From: "this machine",
			When: isolated,
			Why:  "Sessions sign users in at Renku and fetch code through Renku, but the policy blocks private address ranges.",
			Run:  renkuAddress,
		},
	}
}

func sessionPolicies(
	ctx context.Context, e steps.Env, kind networkingv1.PolicyType,
) ([]*networkingv1.NetworkPolicy, error) {
	return check.PoliciesOf(ctx, e.Cluster, sessionsNamespace(e), sessionLabels, kind)
}

func egressPolicy(ctx context.Context, e steps.Env) steps.Result {
	policies, err := sessionPolicies(ctx, e, networkingv1.PolicyTypeEgress)
	if err != nil {
		return steps.Errored(err)
	}
	if len(policies) == 0 {
		return steps.Undone("no egress policy selects session pods, so sessions can reach everything").Or(fenceFix(ctx, e))
	}
	port := dnsPorts(e)[0].(map[string]any)["port"].(int64)
	for _, p := range policies {
		for _, rule := range p.Spec.Egress {
			if allowsPort(rule.Ports, corev1.ProtocolUDP, int32(port)) &&
				(len(rule.To) == 0 || reachesDNS(e, rule.To)) {
				return steps.Passed(
					"NetworkPolicy %s allows DNS to namespace %s on port %d", p.Name, e.Answers.Text("network.dns-namespace"), port,
				)
			}
		}
	}
	fix := fenceFix(ctx, e)
	if policies[0].Name != egressName {
		fix = e.Kubectl() + " -n " + sessionsNamespace(e) + " edit networkpolicy " + policies[0].Name
	}
	return steps.Failed(
		fmt.Sprintf(
			"NetworkPolicy %s does not allow DNS to namespace %s on UDP port %d", policies[0].Name,
			e.Answers.Text("network.dns-namespace"), port,
		),
		fix,
	)
}

func dnsPods(ctx context.Context, e steps.Env) steps.Result {
	ns, sel := e.Answers.Text("network.dns-namespace"), labels.Set{}
	for k, v := range dnsLabels(e) {
		sel[k] = v.(string)
	}
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, ns, cluster.Selector{Labels: sel.String()})
	if err != nil {
		return steps.Errored(err)
	}
	if len(pods) == 0 {
		return steps.Failed(fmt.Sprintf("no pod in namespace %s has the label %s, so sessions have no DNS", ns, sel),
			e.Kubectl()+" get pods -A -o wide | grep -i dns    # then set network.dns-namespace")
	}
	closed, err := nodeLocalClosed(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if closed {
		return steps.Failed(
			"NodeLocal DNSCache on the nodes answers DNS queries at "+nodeLocalDNS+
				", but no egress rule allows sessions to reach this address",
			"add an egress rule with ipBlock "+nodeLocalDNS+"/32, UDP and TCP port 53: "+e.Kubectl()+" -n "+sessionsNamespace(e)+
				" edit networkpolicy",
		)
	}
	return steps.Passed("%d pods in namespace %s have the label %s", len(pods), ns, sel)
}

// nodeLocalDNS is the default address of NodeLocal DNSCache on every node (kubernetes/kubernetes
// cluster/addons/dns/nodelocaldns).
const nodeLocalDNS = "169.254.20.10"

// nodeLocalClosed reports whether the cluster runs NodeLocal DNSCache and the egress policies
// block its address.
func nodeLocalClosed(ctx context.Context, e steps.Env) (bool, error) {
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, "kube-system", cluster.Selector{Labels: "k8s-app=node-local-dns"},
	)
	if err != nil || len(pods) == 0 {
		return false, err
	}
	policies, err := sessionPolicies(ctx, e, networkingv1.PolicyTypeEgress)
	if err != nil {
		return false, err
	}
	at := netip.MustParseAddr(nodeLocalDNS)
	for _, p := range policies {
		for _, rule := range p.Spec.Egress {
			if check.AllowsAddress(rule.To, at) && allowsPort(rule.Ports, corev1.ProtocolUDP, 53) {
				return false, nil
			}
		}
	}
	return true, nil
}

// metadataAddresses lists the addresses at which clouds serve metadata and credentials to any
// process on a node: AWS, Google Cloud, Azure and OpenStack; AWS over IPv6; AWS ECS; EKS Pod
// Identity; Alibaba Cloud; Azure's WireServer.
var metadataAddresses = []string{
	"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16",
}

func metadataFenced(ctx context.Context, e steps.Env) steps.Result {
	policies, err := sessionPolicies(ctx, e, networkingv1.PolicyTypeEgress)
	if err != nil {
		return steps.Errored(err)
	}
	for _, p := range policies {
		var open []string
		for _, address := range metadataAddresses {
			if slices.ContainsFunc(p.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
				return !onlyDNS(rule.Ports) && check.AllowsAddress(rule.To, netip.MustParseAddr(address))
			}) {
				open = append(open, address)
			}
		}
		if len(open) == 0 {
			continue
		}
		fix := fenceFix(ctx, e)
		if p.Name != egressName {
			fix = e.Kubectl() + " -n " + sessionsNamespace(e) + " edit networkpolicy " + steps.Quoted(p.Name) +
				"    # add to the except list of its ipBlock: 169.254.0.0/16, 100.100.100.200/32, 168.63.129.16/32 (IPv6: " +
				"fd00:ec2::254/128)"
		}
		return steps.Warned(
			fmt.Sprintf(
				"NetworkPolicy %s allows sessions to reach cloud metadata services: %s", p.Name, strings.Join(open, ", "),
			),
			fix,
		)
	}
	return steps.Passed("sessions cannot reach %s", strings.Join(metadataAddresses, ", "))
}

func ingressPolicy(ctx context.Context, e steps.Env) steps.Result {
	policies, err := sessionPolicies(ctx, e, networkingv1.PolicyTypeIngress)
	if err != nil {
		return steps.Errored(err)
	}
	fix := e.Kubectl() + " -n " + sessionsNamespace(e) +
		" get networkpolicies -o yaml    # policies are additive: edit or delete the policy that allows this traffic"
	if len(policies) == 0 {
		return steps.Warned(
			"no ingress policy selects session pods, so every pod in the cluster can reach all ports of sessions",
			fenceFix(ctx, e),
		)
	}
	open, meta := false, false
	for _, p := range policies {
		for _, rule := range p.Spec.Ingress {
			if includesEveryone(rule.From) && allowsOtherPorts(rule.Ports) {
				return steps.Warned(
					"NetworkPolicy "+p.Name+" allows every pod in the cluster to reach session ports that bypass the sign-in", fix,
				)
			}
			open = open || (check.AnyAddress(rule.From) && allowsPort(rule.Ports, corev1.ProtocolTCP, sessionPort))
			meta = meta || allowsPort(rule.Ports, corev1.ProtocolTCP, metaPort)
		}
	}
	if !open || !meta {
		return steps.Warned(
			fmt.Sprintf(
				"port %d must be open to everyone (currently: %v), and port %d to the operator (currently: %v)", sessionPort, open,
				metaPort,
				meta,
			),
			fix,
		)
	}
	return steps.Passed("only port %d is open to everyone, and port %d is open to the operator", sessionPort, metaPort)
}

func renkuAddress(ctx context.Context, e steps.Env) steps.Result {
	domain := e.Answers.Text("renku.domain")
	if domain == "" {
		return steps.Skipped("Renku's domain is not set (renku.domain is empty)")
	}
	addrs, err := tracked.Look(ctx, "resolve/"+domain, 5*time.Minute, func(ctx context.Context) ([]netip.Addr, error) {
		return probe.Resolve(ctx, domain)
	})
	if err != nil {
		return steps.Errored(err).Or("dig +short " + domain)
	}
	policies, err := sessionPolicies(ctx, e, networkingv1.PolicyTypeEgress)
	if err != nil {
		return steps.Errored(err)
	}
	open, closed := throughPolicies(policies, addrs)
	switch {
	case len(policies) > 0 && len(open) == 0:
		return steps.Failed(
			fmt.Sprintf("%s resolves to %v from this machine, but the policy blocks these addresses", domain, closed),
			"add an egress rule for these addresses: "+e.Kubectl()+" -n "+sessionsNamespace(e)+" edit networkpolicy "+
				policies[0].Name,
		)
	case len(policies) > 0 && slices.ContainsFunc(closed, netip.Addr.Is4):
		return steps.Warned(
			fmt.Sprintf("%s resolves to %v from this machine, and the policy blocks %v", domain, addrs, closed),
			"add an egress rule for the blocked addresses: "+e.Kubectl()+" -n "+sessionsNamespace(e)+" edit networkpolicy "+
				policies[0].Name,
		)
	case len(policies) > 0 && len(closed) > 0: // all blocked addresses are IPv6, which most clusters do not use
		return steps.Passed(
			"%s resolves to %v from this machine, and sessions can reach these addresses. The policy blocks %v", domain, open,
			closed,
		)
	}
	return steps.Passed("%s resolves to %v from this machine, and sessions can reach these addresses", domain, addrs)
}
