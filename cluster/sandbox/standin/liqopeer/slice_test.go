package liqopeer

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSlicesThatAreCordoned(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       bool
	}{
		{"", "", false},
		{cordon, "true", true},
		{cordonTenant, "true", true},
		{cordon, "false", false},
		{cordonTenant, "0", false},
		{cordon, "1", true},
		{cordon, "", true},
	} {
		s := &slice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{c.key: c.value}}}
		if got := isCordoned(s); got != c.want {
			t.Errorf("%s=%s: %v", c.key, c.value, got)
		}
	}
}

func TestAQuotaHasTheNameOfItsUser(t *testing.T) {
	s := &slice{ObjectMeta: metav1.ObjectMeta{Name: "rome"}, Spec: sliceSpec{ConsumerClusterID: "milan"}}
	if got := quotaName(s); got != "rome-efee614420c5" {
		t.Errorf("%s", got)
	}
}

func TestSlicesThatAskForAVirtualNode(t *testing.T) {
	for value, want := range map[string]bool{"": false, "true": true, "yes": true, "false": false, "False": false} {
		s := &slice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{createVirtualNode: value}}}
		if got := wantsVirtualNode(s); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func TestARequestIsWaitedForHalfAMinute(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(age time.Duration, certificate string) *certificatesv1.CertificateSigningRequest {
		r := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-age))},
		}
		r.Status.Certificate = []byte(certificate)
		return r
	}
	for _, c := range []struct {
		age         time.Duration
		certificate string
		want        bool
	}{{29 * time.Second, "", false}, {31 * time.Second, "", true}, {time.Hour, "signed", false}} {
		if got := overdue(at(c.age, c.certificate), now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestAddressesByPreference(t *testing.T) {
	node := func(all ...corev1.NodeAddress) corev1.Node {
		return corev1.Node{Status: corev1.NodeStatus{Addresses: all}}
	}
	name, inner := corev1.NodeAddress{
		Type: corev1.NodeHostName, Address: "one",
	}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}
	outer := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "192.0.2.3"}
	for _, c := range []struct {
		nodes []corev1.Node
		want  string
	}{
		{nil, ""},
		{[]corev1.Node{node(name)}, "one"},
		{[]corev1.Node{node(name, inner)}, "10.0.0.2"},
		{[]corev1.Node{node(name, inner), node(outer)}, "192.0.2.3"},
	} {
		if got := addressOf(c.nodes); got != c.want {
			t.Errorf("%v: %q, want %q", c.nodes, got, c.want)
		}
	}
}
