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

// These are the labels and ports of session pods (SwissDataScienceCenter/amalthea:
// internal/controller, api/v1alpha1).
var sessionLabels = labels.Set{
	"app.kubernetes.io/name":       "AmaltheaSession",
	"app.kubernetes.io/created-by": "controller-manager",
}

const (
	sessionPort = 65535 // for signed-in users; a session without authentication has its own port instead
	metaPort    = 65534 // for the operator
)

func networkChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "egress-policy", Title: "a policy fences sessions in, and lets DNS through", On: steps.Remote, When: isolated,
			FixedBy: "network-policies", Needs: []string{"namespace"},
			Why: "a session runs other people's code, which reaches everything in the cluster where no policy stops " +
				"it; without DNS a session can't start at all",
			References: []string{page, "SwissDataScienceCenter/renku: helm-chart/renku/templates/network-policies.yaml"},
			Run:        egressPolicy,
		},
		{
			Name: "dns-pods", Title: "the DNS rule meets this cluster's DNS", On: steps.Remote, When: isolated,
			Needs: []string{"egress-policy"},
			Why: "a rule for pods that are not there lets nothing through. OpenShift serves DNS in openshift-dns, on port " +
				"5353; NodeLocal DNSCache answers at an address of the node",
			Run: dnsPods,
		},
		{
			Name: "metadata-fenced", Title: "sessions can't reach the cloud's metadata service", On: steps.Remote,
			When: isolated, FixedBy: "network-policies", Needs: []string{"egress-policy"},
			Why: "the metadata service hands out the node's own cloud credentials; the published guide's policy lets " +
				"sessions reach it",
			Run: metadataFenced,
		},
		{
			Name: "ingress-policy", Title: "a policy keeps the cluster out of sessions", On: steps.Remote, When: isolated,
			FixedBy: "network-policies", Needs: []string{"namespace"},
			Why: "without it every pod of the cluster reaches a session's own port, past its sign-in; the published " +
				"guide leaves it out",
			References: []string{"SwissDataScienceCenter/renku: helm-chart/renku/templates/network-policies.yaml"},
			Run:        ingressPolicy,
		},
		{
			Name: "renku-address", Title: "the policy lets sessions reach Renku", On: steps.Remote, From: "this machine",
			When: isolated,
			Why:  "sessions sign users in at Renku and fetch code through it; the policy closes the private ranges",
			Run:  renkuAddress,
		},
	}
}

// sessionPolicies returns the policies of one type that select session pods.
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
		return steps.Undone("no egress policy selects session pods: they reach everything").Or(fenceFix(ctx, e))
	}
	port := dnsPorts(e)[0].(map[string]any)["port"].(int64)
	for _, p := range policies {
		for _, rule := range p.Spec.Egress {
			if allowsPort(rule.Ports, corev1.ProtocolUDP, int32(port)) &&
				(len(rule.To) == 0 || reachesDNS(e, rule.To)) {
				return steps.Passed("%s lets DNS through, to %s on port %d", p.Name, e.Answers.Text("network.dns-namespace"), port)
			}
		}
	}
	fix := fenceFix(ctx, e)
	if policies[0].Name != egressName {
		fix = e.Kubectl() + " -n " + sessionsNamespace(e) + " edit networkpolicy " + policies[0].Name
	}
	return steps.Failed(
		fmt.Sprintf(
			"%s lets no DNS through to %s on UDP port %d", policies[0].Name, e.Answers.Text("network.dns-namespace"), port,
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
		return steps.Failed(fmt.Sprintf("no pod in %s has the label %s: sessions would have no DNS", ns, sel),
			e.Kubectl()+" get pods -A -o wide | grep -i dns    # then answer network.dns-namespace")
	}
	closed, err := nodeLocalClosed(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if closed {
		return steps.Failed(
			"the nodes run NodeLocal DNSCache, which answers pods at "+nodeLocalDNS+": no egress rule lets sessions reach that",
			"add an egress rule with ipBlock "+nodeLocalDNS+"/32, UDP and TCP port 53: "+e.Kubectl()+" -n "+sessionsNamespace(e)+
				" edit networkpolicy",
		)
	}
	return steps.Passed("%d pods in %s have the label %s", len(pods), ns, sel)
}

// nodeLocalDNS is the address on which NodeLocal DNSCache listens on every node by default
// (kubernetes/kubernetes cluster/addons/dns/nodelocaldns).
const nodeLocalDNS = "169.254.20.10"

// nodeLocalClosed reports whether the cluster runs that cache and the policies block it.
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

// metadataAddresses are the addresses at which clouds serve metadata and credentials to any
// process on a node: AWS, Google Cloud, Azure and OpenStack; AWS by IPv6; AWS ECS; EKS Pod
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
			fmt.Sprintf("NetworkPolicy %s lets sessions reach cloud metadata services: %s", p.Name, strings.Join(open, ", ")),
			fix,
		)
	}
	return steps.Passed("closed to sessions: %s", strings.Join(metadataAddresses, ", "))
}

func ingressPolicy(ctx context.Context, e steps.Env) steps.Result {
	policies, err := sessionPolicies(ctx, e, networkingv1.PolicyTypeIngress)
	if err != nil {
		return steps.Errored(err)
	}
	fix := e.Kubectl() + " -n " + sessionsNamespace(e) +
		" get networkpolicies -o yaml    # policies add up: edit or delete the one that opens it"
	if len(policies) == 0 {
		return steps.Warned(
			"no ingress policy selects session pods: every pod of the cluster reaches all their ports", fenceFix(ctx, e),
		)
	}
	open, meta := false, false
	for _, p := range policies {
		for _, rule := range p.Spec.Ingress {
			if everybody(rule.From) && allowsOtherPorts(rule.Ports) {
				return steps.Warned(p.Name+" lets every pod of the cluster reach ports of a session past its sign-in", fix)
			}
			open = open || (check.AnyAddress(rule.From) && allowsPort(rule.Ports, corev1.ProtocolTCP, sessionPort))
			meta = meta || allowsPort(rule.Ports, corev1.ProtocolTCP, metaPort)
		}
	}
	if !open || !meta {
		return steps.Warned(
			fmt.Sprintf(
				"port %d must be open to everybody (it is: %v) and %d to the operator (it is: %v)", sessionPort, open, metaPort,
				meta,
			),
			fix,
		)
	}
	return steps.Passed("only port %d is open to everybody, and %d to the operator", sessionPort, metaPort)
}

func renkuAddress(ctx context.Context, e steps.Env) steps.Result {
	domain := e.Answers.Text("renku.domain")
	if domain == "" {
		return steps.Skipped("Renku's domain is not known (renku.domain is empty)")
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
		return steps.Failed(fmt.Sprintf("%s is %v as seen from here, which the policy closes", domain, closed),
			"add an egress rule for that address: "+e.Kubectl()+" -n "+sessionsNamespace(e)+" edit networkpolicy "+
				policies[0].Name)
	case len(policies) > 0 && slices.ContainsFunc(closed, netip.Addr.Is4):
		return steps.Warned(fmt.Sprintf("%s is %v as seen from here; the policy closes %v of it", domain, addrs, closed),
			"add an egress rule for those addresses, too: "+e.Kubectl()+" -n "+sessionsNamespace(e)+" edit networkpolicy "+
				policies[0].Name)
	case len(policies) > 0 && len(closed) > 0: // IPv6, which most clusters do not have
		return steps.Passed(
			"%s is %v as seen from here, which sessions may reach; %v is closed to them", domain, open, closed,
		)
	}
	return steps.Passed("%s is %v as seen from here, which sessions may reach", domain, addrs)
}
