package stepstest

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The fake API server accepts only client certificates of its own CA that have not
// expired.
func TestClientCertificates(t *testing.T) {
	ours, theirs := newAuthority("ours"), newAuthority("theirs")
	for name, c := range map[string]struct {
		by     *authority
		macro  string
		want   string
		groups []string
	}{
		"good":              {ours, "${client-cert u a,b 1h}", "u", []string{"a", "b"}},
		"without groups":    {ours, "${client-cert u - 1h}", "u", nil},
		"ended":             {ours, "${client-cert u a -1h}", "", nil},
		"another authority": {theirs, "${client-cert u a 1h}", "", nil},
	} {
		text, err := base64.StdEncoding.DecodeString(c.by.expand(c.macro))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if who := ours.client([]*x509.Certificate{cert}); who.name != c.want || !slices.Equal(who.groups, c.groups) {
			t.Errorf("%s: %+v", name, who)
		}
	}
	server, err := x509.ParseCertificate(ours.tls().Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if who := ours.client([]*x509.Certificate{server}); who.name != "" {
		t.Errorf("a server's certificate signs in as %s", who.name)
	}
	if who := ours.client(nil); who.name != "" {
		t.Errorf("no certificate signs in as %s", who.name)
	}
}

func TestSubjectIs(t *testing.T) {
	who := person{"u", []string{"g"}}
	for subject, want := range map[rbacv1.Subject]bool{
		{Kind: "User", Name: "u"}:                           true,
		{Kind: "User", Name: "g"}:                           false,
		{Kind: "Group", Name: "g"}:                          true,
		{Kind: "Group", Name: "u"}:                          false,
		{Kind: "Group", Name: "system:authenticated"}:       true,
		{Kind: "ServiceAccount", Name: "u", Namespace: "n"}: false,
		{Kind: "Somebody", Name: "u"}:                       false,
	} {
		if got := who.is(subject); got != want {
			t.Errorf("%+v: %v", subject, got)
		}
	}
}
