package liqonet

import (
	"net/netip"
	"testing"
)

func TestFreeGivesWhatIsAskedForOrItsNeighbour(t *testing.T) {
	for _, c := range []struct {
		wanted string
		used   []string
		given  string // "": none
	}{
		{"10.42.0.0/16", nil, "10.42.0.0/16"},
		{"10.42.0.0/16", []string{"10.43.0.0/16"}, "10.42.0.0/16"},
		{"10.70.0.0/16", []string{"10.70.0.0/16"}, "10.71.0.0/16"},
		{"10.70.0.0/16", []string{"10.70.3.0/24", "10.71.0.0/17"}, "10.68.0.0/16"},
		{"10.255.0.0/16", []string{"10.255.0.0/16"}, "10.254.0.0/16"},
		{"10.70.0.0/16", []string{"10.70.0.0/16", "10.42.0.0/16"}, "10.43.0.0/16"},
		{"10.0.0.0/8", []string{"10.1.0.0/16"}, ""},
		{"10.1.0.0/16", []string{"10.0.0.0/8"}, "192.168.0.0/16"},
		{"10.1.0.0/16", []string{"10.0.0.0/8", "192.168.7.0/24"}, "172.16.0.0/16"},
		{"100.64.0.0/16", nil, "10.0.0.0/16"}, // in no pool
		{"100.64.0.0/16", []string{"10.0.0.0/16"}, "10.1.0.0/16"},
		{"192.168.0.0/15", nil, "10.0.0.0/15"}, // larger than its pool
		{"172.16.0.0/12", []string{"172.20.0.0/16"}, "10.0.0.0/12"},
		{"fd00::/64", []string{"fd00::/8"}, ""},
	} {
		var used []netip.Prefix
		for _, u := range c.used {
			used = append(used, netip.MustParsePrefix(u))
		}
		given, ok := free(netip.MustParsePrefix(c.wanted), used)
		if ok != (c.given != "") || ok && given.String() != c.given {
			t.Errorf("%s beside %v: %s %v, want %q", c.wanted, c.used, given, ok, c.given)
		}
	}
}

func TestAcquireLeavesTheClustersOwnWhereItIs(t *testing.T) {
	own := network{}
	own.Labels, own.Spec.CIDR = map[string]string{asItIs: "true"}, "10.42.3.4/16"
	given, ok := acquire(own, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if !ok || given.String() != "10.42.0.0/16" {
		t.Errorf("%s %v", given, ok)
	}
	own.Spec.CIDR = "10.42.0.0"
	if given, ok := acquire(own, nil); ok {
		t.Errorf("no CIDR gives %s", given)
	}
}

func TestOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.1.2": true, "v1.0.0": true, "v0.9.1": true, "v1.2.0": false, "v1.10.0": false, "v2.0.0": false, "latest": false,
		"": false,
	} {
		if older(version, 1, 2) != want {
			t.Errorf("%s: not %v", version, want)
		}
	}
}
