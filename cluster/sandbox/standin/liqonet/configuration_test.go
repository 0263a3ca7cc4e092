package liqonet

import (
	"reflect"
	"testing"
)

func cidrsOf(pod, external []string) *cidrs {
	c := &cidrs{}
	c.CIDR.Pod, c.CIDR.External = pod, external
	return c
}

// The CRD rejects a status with an empty CIDR. It accepts a status without any CIDRs, whose condition says that Liqo
// waits.
func TestConfigurationsThatAreComplete(t *testing.T) {
	asked := cidrsOf([]string{"10.42.0.0/16"}, []string{"10.70.0.0/16"})
	for name, c := range map[string]struct {
		asked, given      *cidrs
		complete, refused bool
	}{
		"all":            {asked, cidrsOf([]string{"10.42.0.0/16"}, []string{"10.71.0.0/16"}), true, false},
		"one is missing": {asked, cidrsOf([]string{"10.42.0.0/16"}, []string{""}), false, true},
		"none is asked": {
			cidrsOf([]string{"10.42.0.0/16"}, nil), cidrsOf([]string{"10.42.0.0/16"}, []string{}), false, false,
		},
		"one too many": {asked, cidrsOf([]string{"10.42.0.0/16", "10.43.0.0/16"}, []string{"10.71.0.0/16"}), false, false},
	} {
		if got := c.given.complete(c.asked); got != c.complete {
			t.Errorf("%s: complete %v", name, got)
		}
		if got := c.given.refused(); got != c.refused {
			t.Errorf("%s: refused %v", name, got)
		}
	}
}

func TestOwnCIDRsAreAllOrNone(t *testing.T) {
	kind := func(label, cidr string) network {
		n := network{}
		n.Labels, n.Status.CIDR = map[string]string{networkType: label}, cidr
		return n
	}
	pod, second, external := kind(
		"pod-cidr", "10.42.0.0/16",
	), kind("pod-cidr", "10.43.0.0/16"), kind("external-cidr", "10.70.0.0/16")
	for name, c := range map[string]struct {
		nets []network
		want *cidrs // nil: not all are known
	}{
		"both": {
			[]network{pod, kind("service-cidr", "10.96.0.0/12"), external},
			cidrsOf([]string{"10.42.0.0/16"}, []string{"10.70.0.0/16"}),
		},
		"two for pods": {
			[]network{pod, second, external}, cidrsOf([]string{"10.42.0.0/16", "10.43.0.0/16"}, []string{"10.70.0.0/16"}),
		},
		"no external":   {[]network{pod}, nil},
		"one is waited": {[]network{pod, kind("pod-cidr", ""), external}, nil},
		"two external":  {[]network{pod, external, external}, nil},
	} {
		got, ok := own(c.nets)
		if ok != (c.want != nil) || ok && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v %v", name, got, ok)
		}
	}
}
