package liqo

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/steps"
)

// fixedKey returns a key that depends only on name.
func fixedKey(name string) *ecdsa.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		panic(err) // the seed is in the range of the curve
	}
	return key
}

func request(t *testing.T, key any, subject pkix.Name) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func TestCommonName(t *testing.T) {
	for _, c := range []struct{ id, public, want string }{
		{"milan", "a", "liqo-controlplane-milan-ca978112ca"},
		{"milan", "b", "liqo-controlplane-milan-3e23e81600"},
		{strings.Repeat("m", 35), "a", "liqo-controlplane-" + strings.Repeat("m", 35) + "-ca978112ca"},
		{strings.Repeat("m", 63), "a", "liqo-controlplane-" + strings.Repeat("m", 35) + "-ca978112ca"},
	} {
		got := commonName(c.id, []byte(c.public))
		if got != c.want {
			t.Errorf("commonName(%s, %s) = %s, want %s", c.id, c.public, got, c.want)
		}
		if len(got) > 64 {
			t.Errorf("%s has %d characters, X.509 allows 64", got, len(got))
		}
	}
}

// The certificate request that carrick creates passes carrick's own check.
func TestNewKeyIsSound(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	csr := request(t, key, pkix.Name{CommonName: commonName("milan", public), Organization: []string{liqoGroup}})
	if r := judgeRequest(csr, "milan", ""); r.Status != steps.Pass {
		t.Errorf("%s: %s", r.Status, r.Found)
	}
	if r := judgeRequest(csr, "turin", ""); r.Status != steps.Fail {
		t.Errorf("another cluster's: %s: %s", r.Status, r.Found)
	}
}

func TestParseRequest(t *testing.T) {
	good := request(t, fixedKey("a"), pkix.Name{CommonName: "x"})
	block, _ := pem.Decode([]byte(good))
	tampered := append([]byte{}, block.Bytes...)
	tampered[len(tampered)-1] ^= 1 // of the signature
	for name, c := range map[string]struct{ text, wants string }{
		"good":           {good, ""},
		"text around it": {"hello\n" + good, ""},
		"nothing":        {"", "not a PEM-encoded certificate request"},
		"another block": {
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})),
			"not a PEM-encoded certificate request",
		},
		"damaged": {
			string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes[:20]})), "cannot be parsed",
		},
		"signed by another": {
			string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: tampered})), "not signed with its own key",
		},
	} {
		r, err := parseRequest(c.text)
		switch {
		case c.wants == "" && (err != nil || r.Subject.CommonName != "x"):
			t.Errorf("%s: %v", name, err)
		case c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)):
			t.Errorf("%s: %v, want %q", name, err, c.wants)
		}
	}
}

// Only a certificate request like the one that carrick creates passes. An admin who approves any other request grants
// the permissions of the names in it.
func TestJudgeRequest(t *testing.T) {
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := fixedKey("a")
	named := func(of crypto.Signer) string {
		public, err := x509.MarshalPKIXPublicKey(of.Public())
		if err != nil {
			t.Fatal(err)
		}
		return commonName("milan", public)
	}
	good := pkix.Name{CommonName: named(key), Organization: []string{liqoGroup}}
	ask := func(of crypto.Signer, change func(*x509.CertificateRequest)) string {
		asked := x509.CertificateRequest{Subject: pkix.Name{CommonName: named(of), Organization: []string{liqoGroup}}}
		change(&asked)
		der, err := x509.CreateCertificateRequest(rand.Reader, &asked, of)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	extra := func(oid asn1.ObjectIdentifier, value string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: oid, Value: value}}
		}
	}
	groups := func(groups ...string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.Subject.Organization = groups }
	}
	name := func(name string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.Subject.CommonName = name }
	}
	if r := judgeRequest(ask(key, func(*x509.CertificateRequest) {}), "milan", "fix"); r.Status != steps.Pass {
		t.Fatalf("%+v: %s: %s", good, r.Status, r.Found)
	}
	for what, c := range map[string]struct {
		key    crypto.Signer
		change func(*x509.CertificateRequest)
		words  string
	}{
		"an admin":                {key, groups("system:masters"), "organizations are system:masters"},
		"kubeadm's admin":         {key, groups("kubeadm:cluster-admins"), "kubeadm:cluster-admins"},
		"one group of two":        {key, groups(liqoGroup, "milan"), "not only liqo.io"},
		"the same group twice":    {key, groups(liqoGroup, liqoGroup), "not only liqo.io"},
		"no group":                {key, groups(), "organizations"},
		"a component":             {key, name("system:kube-controller-manager"), `"system:kube-controller-manager"`},
		"no name":                 {key, name(""), `common name is ""`},
		"another name":            {key, name("alice"), `"alice", not "` + named(key) + `"`},
		"another consumer's name": {key, name(strings.Replace(named(key), "milan", "turin", 1)), "liqo-controlplane-turin-"},
		"another key's name":      {key, name(named(strong)), named(strong)},
		"a second name":           {key, extra(asn1.ObjectIdentifier{2, 5, 4, 3}, "alice"), "alice"},
		"a unit":                  {key, extra(asn1.ObjectIdentifier{2, 5, 4, 11}, "x"), "more than a common name"},
		// Kubernetes reads a user's UID from it (staging/src/k8s.io/apiserver/pkg/authentication/request/x509/x509.go).
		"a UID":         {key, extra(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, "u"), "more than a common name"},
		"a DNS name":    {key, func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} }, "kubernetes"},
		"an IP address": {key, func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} }, "10.0.0.1"},
		"an extension": {key, func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2}}}
		}, "extensions"},
		"an RSA key":     {strong, func(*x509.CertificateRequest) {}, "RSA, not ECDSA P-256"},
		"an Ed25519 key": {edwards, func(*x509.CertificateRequest) {}, "Ed25519"},
	} {
		r := judgeRequest(ask(c.key, c.change), "milan", "fix")
		if r.Status != steps.Fail || !strings.Contains(r.Found, c.words) || r.Fix != "fix" {
			t.Errorf("%s: %s: %s (%s), want %q", what, r.Status, r.Found, r.Fix, c.words)
		}
	}
}

func TestSubjects(t *testing.T) {
	user := func(name string) []any {
		return []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}}
	}
	for name, want := range map[string][]any{
		"liqo-controlplane-milan-1": user("liqo-controlplane-milan-1"),
		"system:serviceaccount:ns:liqo-controlplane-milan": {
			map[string]any{"kind": "ServiceAccount", "namespace": "ns", "name": "liqo-controlplane-milan"},
		},
		"system:serviceaccount:ns":    user("system:serviceaccount:ns"),
		"system:serviceaccount:a:b:c": user("system:serviceaccount:a:b:c"),
		"ns:name":                     user("ns:name"),
	} {
		if d := cmp.Diff(want, subjectsOf(name)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// csr returns a CertificateSigningRequest with the given conditions, each in the format "TYPE REASON TIME".
func csr(name, forSigner, certificate string, conditions ...string) *unstructured.Unstructured {
	var list []any
	for _, c := range conditions {
		f := strings.Fields(c)
		list = append(list, map[string]any{"type": f[0], "reason": f[1], "message": "m", "lastUpdateTime": f[2]})
	}
	status := map[string]any{"conditions": list}
	if certificate != "" {
		status["certificate"] = certificate
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec":     map[string]any{"signerName": forSigner}, "status": status,
	}}
}

func TestApproval(t *testing.T) {
	const early, late = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
	for name, c := range map[string]struct {
		conditions []string
		want, why  string
		since      string
	}{
		"nothing yet":           {nil, "", "", "2026-01-01T00:00:00Z"},
		"approved":              {[]string{"Approved Ok " + early}, "Approved", "Ok: m", early},
		"denied":                {[]string{"Denied No " + early}, "Denied", "No: m", early},
		"failed after approval": {[]string{"Approved Ok " + early, "Failed Bad " + late}, "Failed", "Bad: m", late},
		"in another order":      {[]string{"Failed Bad " + late, "Approved Ok " + early}, "Failed", "Bad: m", late},
	} {
		r := csr("a", signer, "", c.conditions...)
		if got := approval(r); got != c.want {
			t.Errorf("%s: approval is %q, want %q", name, got, c.want)
		}
		state, why, since := decision(r)
		if state != c.want || why != c.why || since.UTC().Format(time.RFC3339) != c.since {
			t.Errorf("%s: %s, %q, %s", name, state, why, since)
		}
	}
}

func TestLastDecided(t *testing.T) {
	const early, late = "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"
	old, fresh := csr("old", signer, "c", "Approved Ok "+early), csr("fresh", signer, "", "Approved Ok "+late)
	kubelets, denied := csr(
		"kubelet", signer+"-kubelet", "c", "Approved Ok "+late,
	), csr("denied", signer, "", "Denied No "+late)
	for _, all := range [][]*unstructured.Unstructured{{old, fresh, kubelets, denied}, {denied, kubelets, fresh, old}} {
		if got := lastDecided(all); got != fresh {
			t.Errorf("%v", got)
		}
	}
	if got := lastDecided([]*unstructured.Unstructured{kubelets, denied}); got != nil {
		t.Errorf("%s, although none was approved for that signer", got.GetName())
	}
}

func TestJudgeServerAddress(t *testing.T) {
	const home, away = "https://127.0.0.1:6443", "https://192.0.2.1:6443"
	for _, c := range []struct {
		server, own string
		want        steps.Status
		found       string
	}{
		{"https://rome.example.org:6443", away, steps.Pass, ""},
		{"https://203.0.113.9:6443", away, steps.Pass, ""},
		{"https://10.0.0.9:6443", away, steps.Pass, ""},
		{
			"https://127.0.0.1:7443", away, steps.Fail,
			"127.0.0.1 is a loopback address, so Liqo's pods would connect to themselves",
		},
		{
			"https://localhost:7443", away, steps.Fail,
			"localhost is a loopback address, so Liqo's pods would connect to themselves",
		},
		{"https://[::1]:7443", away, steps.Fail, "::1 is a loopback address, so Liqo's pods would connect to themselves"},
		{"https://127.0.0.1:7443", home, steps.Pass, ""},
		{"https://localhost:7443", home, steps.Pass, ""},
		{home, home, steps.Fail, "https://127.0.0.1:6443 is the consumer's own API server"},
		{away, away, steps.Fail, "https://192.0.2.1:6443 is the consumer's own API server"},
		{"https://0.0.0.0:6443", home, steps.Fail, "0.0.0.0 is not reachable from another machine"},
		{"https://169.254.1.1:6443", away, steps.Fail, "169.254.1.1 is not reachable from another machine"},
		{"https://kubernetes", away, steps.Fail, "kubernetes resolves to the consumer's own API server in Liqo's pods"},
		{
			"https://kubernetes.default.svc", away, steps.Fail,
			"kubernetes.default.svc resolves to the consumer's own API server in Liqo's pods",
		},
		{
			"https://api.rome.svc.cluster.local", away, steps.Fail,
			"api.rome.svc.cluster.local resolves to the consumer's own API server in Liqo's pods",
		},
		{
			"https://rome-control-plane:6443", away, steps.Warn,
			"rome-control-plane is a host name without a domain, which the consumer's pods can resolve only if their DNS " +
				"has a record for it, as in kind clusters",
		},
		{
			"https://rancher.example.org/k8s/clusters/c-1", away, steps.Fail,
			"https://rancher.example.org/k8s/clusters/c-1 is Rancher's proxy, which accepts neither client certificates nor " +
				"ServiceAccount tokens",
		},
		{"https://%zz", away, steps.Fail, "the server address is not valid: https://%zz"},
	} {
		r := judgeServerAddress(c.server, c.own, "fix")
		fix := "fix"
		if strings.Contains(c.server, "rancher") {
			fix += " (in Rancher: an Authorized Cluster Endpoint)"
		}
		if r.Status != c.want || (r.Status != steps.Pass && (r.Found != c.found || r.Fix != fix)) {
			t.Errorf("%s from %s: %s: %s (%s)", c.server, c.own, r.Status, r.Found, r.Fix)
		}
	}
}

func TestOtherParts(t *testing.T) {
	k := kubeconfig.Config{
		Name: "a", Server: "https://a", CA: []byte("ca\n"), ClientCert: []byte("cert"), ClientKey: masked.New("key"),
	}
	same := k
	same.Name, same.Namespace, same.CA, same.ClientKey = "b", "ns", []byte("ca"), masked.New("key\n")
	if got := otherParts(k, same); len(got) > 0 {
		t.Errorf("what is only written in another way: %v", got)
	}
	other := kubeconfig.Config{
		Server: "https://b", Token: masked.New("t"), ProxyURL: "http://p", ClientKey: masked.New("secret"),
	}
	got := otherParts(other, k)
	if len(got) != 6 {
		t.Errorf("%d parts differ: %v", len(got), got)
	}
	if strings.Contains(strings.Join(got, " "), "secret") {
		t.Errorf("a secret is shown: %v", got)
	}
}

// Another user can create the CertificateSigningRequest first, with another spec.
func TestExpected(t *testing.T) {
	year, decade := int32(365*24*3600), int32(10*365*24*3600)
	good := certificatesv1.CertificateSigningRequestSpec{
		Request: []byte("a"), SignerName: signer, Usages: slices.Clone(usages), ExpirationSeconds: &year,
	}
	type spec = certificatesv1.CertificateSigningRequestSpec
	for name, c := range map[string]struct {
		change func(*spec)
		want   string
	}{
		"carrick's":        {func(*spec) {}, ""},
		"usages reordered": {func(s *spec) { slices.Reverse(s.Usages) }, ""},
		"shorter":          {func(s *spec) { s.ExpirationSeconds = new(int32(600)) }, ""},
		"another request":  {func(s *spec) { s.Request = []byte("b") }, "the consumer's certificate request"},
		"another signer":   {func(s *spec) { s.SignerName = "kubernetes.io/kubelet-serving" }, "kubelet-serving"},
		"for servers": {func(s *spec) {
			s.Usages = append(s.Usages, certificatesv1.UsageServerAuth)
		}, "usages"},
		"without a limit": {func(s *spec) { s.ExpirationSeconds = nil }, "expirationSeconds"},
		"for ten years":   {func(s *spec) { s.ExpirationSeconds = &decade }, "365 days"},
	} {
		got := *good.DeepCopy()
		c.change(&got)
		err := compareRequest("a")(got)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
