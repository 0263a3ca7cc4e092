package renku

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// A name with addresses of both kinds is reached where the policy opens one.
func TestAddressesThroughPolicies(t *testing.T) {
	var policy networkingv1.NetworkPolicy
	if err := yaml.UnmarshalStrict(
		[]byte(`spec: {egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]}]}`), &policy,
	); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		addr string
		open bool
	}{{"203.0.113.7", true}, {"10.1.2.3", false}, {"2001:db8::1", false}} {
		open, closed := throughPolicies([]*networkingv1.NetworkPolicy{&policy}, []netip.Addr{netip.MustParseAddr(tc.addr)})
		if (len(open) == 1) != tc.open || len(open)+len(closed) != 1 {
			t.Errorf("%s: open %v, closed %v", tc.addr, open, closed)
		}
	}
}

func TestPortsOfPolicies(t *testing.T) {
	for _, tc := range []struct {
		ports    string
		protocol corev1.Protocol
		port     int32
		want     bool
	}{
		{`[]`, "UDP", 53, true},
		{`[{port: 53}]`, "UDP", 53, false},
		{`[{port: 53}]`, "TCP", 53, true},
		{`[{port: 53, protocol: UDP}]`, "UDP", 53, true},
		{`[{port: dns, protocol: UDP}]`, "UDP", 5353, true},
		{`[{port: http, protocol: TCP}]`, "TCP", 80, false},
		{`[{protocol: UDP}]`, "UDP", 53, true},
		{`[{port: 1, endPort: 100, protocol: UDP}]`, "UDP", 53, true},
		{`[{port: 54, endPort: 100, protocol: UDP}]`, "UDP", 53, false},
	} {
		var ports []networkingv1.NetworkPolicyPort
		if err := yaml.Unmarshal([]byte(tc.ports), &ports); err != nil {
			t.Fatal(err)
		}
		if got := allowsPort(ports, tc.protocol, tc.port); got != tc.want {
			t.Errorf("%s: %s %d: %v", tc.ports, tc.protocol, tc.port, got)
		}
	}
}
