package certmanager

import (
	"context"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"carrick/cluster/sandbox/world"
)

// site returns a fake cert-manager for a cluster with the objects in yaml.
func site(t *testing.T, yaml string) *Player {
	t.Helper()
	objects, err := world.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, o)
	}
	d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}
	d.Name, d.Namespace = "cert-manager", Namespace
	kinds := map[schema.GroupVersionResource]string{
		certificates: "CertificateList", issuers: "IssuerList", clusterIssuers: "ClusterIssuerList",
	}
	return &Player{
		client:  fake.NewClientset(d),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...),
		expired: map[string]bool{},
	}
}

// lookTwice calls Look until no further change is possible.
func (p *Player) lookTwice(t *testing.T) {
	t.Helper()
	for range 3 {
		if err := p.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// ready returns the status and the message of a Certificate's Ready condition.
func (p *Player) ready(t *testing.T, namespace, name string) (status, message string) {
	t.Helper()
	o, err := p.dynamic.Resource(certificates).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		if fields := c.(map[string]any); fields["type"] == "Ready" {
			return fields["status"].(string), fields["message"].(string)
		}
	}
	return "", ""
}

// reasonOf returns the reason of an Issuer's Ready condition.
func (p *Player) reasonOf(t *testing.T, namespace, name string) string {
	t.Helper()
	o, err := p.dynamic.Resource(issuers).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	if len(all) == 0 {
		return ""
	}
	reason, _ := all[0].(map[string]any)["reason"].(string)
	return reason
}

const authority = `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: self}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: root, namespace: a}
spec:
  isCA: true
  commonName: root
  secretName: root-secret
  duration: 87600h
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Never}
  issuerRef: {name: self, kind: ClusterIssuer, group: cert-manager.io}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: ca, namespace: a}
spec: {ca: {secretName: root-secret}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: leaf, namespace: NAMESPACE}
spec:
  secretName: leaf-secret
  ipAddresses: ["192.0.2.7"]
  privateKey: {algorithm: ECDSA}
  issuerRef: {name: ca, kind: KIND, group: cert-manager.io}
`

func objects(namespace, kind string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "KIND", kind).Replace(authority)
}

func TestALeafIsSignedByItsAuthority(t *testing.T) {
	p := site(t, objects("a", "Issuer"))
	p.lookTwice(t)
	if status, message := p.ready(t, "a", "leaf"); status != "True" {
		t.Fatalf("%s: %s", status, message)
	}
	secret, err := p.client.CoreV1().Secrets("a").Get(t.Context(), "leaf-secret", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("no ca.crt")
	}
	held, err := parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "192.0.2.7"}); err != nil {
		t.Error(err)
	}
	if lived := held.cert.NotAfter.Sub(held.cert.NotBefore); lived != lifetime {
		t.Errorf("it lives for %s", lived)
	}
	// It stays until it is time, or until what is asked for is another one.
	p.lookTwice(t)
	again, _ := p.client.CoreV1().Secrets("a").Get(t.Context(), "leaf-secret", metav1.GetOptions{})
	if string(again.Data[corev1.TLSCertKey]) != string(secret.Data[corev1.TLSCertKey]) {
		t.Error("it was signed again for nothing")
	}
	c := &certificate{}
	c.Name, c.Spec.IPAddresses, c.Spec.IssuerRef.Name, c.Spec.PrivateKey.Algorithm = "leaf", []string{"192.0.2.7"}, "ca", "ECDSA"
	for situation, want := range map[string]struct {
		reason string
		at     time.Time
		change func(*certificate)
	}{
		"now":        {"", time.Now(), nil},
		"in 61 days": {"Renewing", time.Now().Add(61 * 24 * time.Hour), nil},
		"another address": {
			"RequestChanged", time.Now(), func(c *certificate) { c.Spec.IPAddresses = []string{"192.0.2.8"} },
		},
		"a longer life": {
			"RequestChanged", time.Now(), func(c *certificate) { c.Spec.Duration = &metav1.Duration{Duration: 2 * lifetime} },
		},
		"another issuer": {"IncorrectIssuer", time.Now(), func(c *certificate) { c.Spec.IssuerRef.Name = "other" }},
		"another group":  {"IncorrectIssuer", time.Now(), func(c *certificate) { c.Spec.IssuerRef.Group = "example.org" }},
		"another name":   {"IncorrectCertificate", time.Now(), func(c *certificate) { c.Name = "other" }},
		"another key":    {"SecretMismatch", time.Now(), func(c *certificate) { c.Spec.PrivateKey.Algorithm = "RSA" }},
		"a longer key":   {"SecretMismatch", time.Now(), func(c *certificate) { c.Spec.PrivateKey.Size = 384 }},
	} {
		other := *c
		if want.change != nil {
			want.change(&other)
		}
		if reason, why, _ := other.wants(again, want.at, false); reason != want.reason {
			t.Errorf("%s: %q (%s), want %q", situation, reason, why, want.reason)
		}
	}
	p.expired["a/leaf"] = true
	p.lookTwice(t)
	if status, message := p.ready(t, "a", "leaf"); status != "False" || !strings.Contains(message, "expired on") {
		t.Errorf("one that ran out: %s, %s", status, message)
	}
	// It is renewed when somebody asks for it, once.
	if err := p.client.CoreV1().Secrets("a").Delete(t.Context(), "leaf-secret", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.lookTwice(t)
	if status, message := p.ready(t, "a", "leaf"); status != "True" {
		t.Errorf("without its Secret: %s, %s", status, message)
	}
	crt := func() string {
		s, err := p.client.CoreV1().Secrets("a").Get(t.Context(), "leaf-secret", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Data[corev1.TLSCertKey])
	}
	before := crt()
	if err := p.Renew(t.Context(), "a", "leaf"); err != nil {
		t.Fatal(err)
	}
	after := crt()
	if before == after {
		t.Error("it was not renewed")
	}
	p.lookTwice(t)
	if crt() != after {
		t.Error("it was renewed twice")
	}
}

func TestASecretThatCertManagerHasNotFilled(t *testing.T) {
	made, err := request{
		name: "edge", dns: []string{"edge.example"}, from: time.Now(), until: time.Now().Add(24 * time.Hour),
		algorithm: "ECDSA",
	}.sign()
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		Data: map[string][]byte{corev1.TLSCertKey: made.certPEM, corev1.TLSPrivateKeyKey: made.keyPEM},
	}
	for situation, want := range map[string]struct {
		reason string
		change func(*certificate)
	}{
		"what is asked for": {"", func(*certificate) {}},
		"the common name elsewhere": {
			"", func(c *certificate) { c.Spec.CommonName, c.Spec.DNSNames = "edge.example", []string{"edge"} },
		},
		"another duration":         {"", func(c *certificate) { c.Spec.Duration = &metav1.Duration{Duration: lifetime} }},
		"an authority":             {"", func(c *certificate) { c.Spec.IsCA = true }},
		"an issuer of the cluster": {"IncorrectIssuer", func(c *certificate) { c.Spec.IssuerRef.Kind = "ClusterIssuer" }},
		"another name":             {"SecretMismatch", func(c *certificate) { c.Spec.DNSNames = []string{"other.example"} }},
		"another key":              {"SecretMismatch", func(c *certificate) { c.Spec.PrivateKey.Algorithm = "" }},
	} {
		c := &certificate{}
		c.Name, c.Spec.IssuerRef.Name, c.Spec.PrivateKey.Algorithm = "edge", "ca", "ECDSA"
		c.Spec.CommonName, c.Spec.DNSNames = "edge", []string{"edge.example"}
		want.change(c)
		if reason, why, _ := c.wants(secret, time.Now(), false); reason != want.reason {
			t.Errorf("%s: %q (%s), want %q", situation, reason, why, want.reason)
		}
	}
	for key, data := range secret.Data {
		empty := &corev1.Secret{
			Data: map[string][]byte{corev1.TLSCertKey: made.certPEM, corev1.TLSPrivateKeyKey: made.keyPEM},
		}
		empty.Data[key] = nil
		if reason, _, _ := (&certificate{}).wants(empty, time.Now(), false); reason != "MissingData" || len(data) == 0 {
			t.Errorf("without %s: %s", key, reason)
		}
	}
}

func TestTwoCertificatesOfOneSecret(t *testing.T) {
	p := site(t, objects("a", "Issuer")+`---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: second, namespace: a}
spec:
  secretName: leaf-secret
  ipAddresses: ["192.0.2.8"]
  privateKey: {algorithm: ECDSA}
  issuerRef: {name: ca}
`)
	p.lookTwice(t)
	held := func() []byte {
		s, err := p.client.CoreV1().Secrets("a").Get(t.Context(), "leaf-secret", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Data[corev1.TLSCertKey]
	}
	before := string(held())
	p.lookTwice(t)
	if string(held()) != before {
		t.Error("they take turns")
	}
	if status, _ := p.ready(t, "a", "leaf"); status != "True" {
		t.Errorf("the first is %s", status)
	}
	if status, message := p.ready(t, "a", "second"); status != "False" ||
		!strings.HasPrefix(message, `Secret was issued for "leaf".`) {
		t.Errorf("the second is %s: %s", status, message)
	}
}

func TestPrivateKeysAreEncodedAsAsked(t *testing.T) {
	for _, c := range []struct{ algorithm, encoding, want string }{
		{"", "", "RSA PRIVATE KEY"},
		{"ECDSA", "", "EC PRIVATE KEY"},
		{"ECDSA", "PKCS1", "EC PRIVATE KEY"},
		{"ECDSA", "PKCS8", "PRIVATE KEY"},
		{"Ed25519", "", "PRIVATE KEY"},
	} {
		made, err := request{
			from: time.Now(), until: time.Now().Add(time.Hour), algorithm: c.algorithm, encoding: c.encoding,
		}.sign()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(made.keyPEM), "-----BEGIN "+c.want+"-----") {
			t.Errorf("%s %s: %.40s", c.algorithm, c.encoding, made.keyPEM)
		}
		if _, err := parse(made.certPEM, made.keyPEM); err != nil {
			t.Errorf("%s %s: %v", c.algorithm, c.encoding, err)
		}
	}
}

func TestRenewalTime(t *testing.T) {
	now := time.Now()
	cert := &x509.Certificate{NotBefore: now, NotAfter: now.Add(90 * time.Hour)}
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	for _, c := range []struct {
		before  *metav1.Duration
		percent int
		want    int // hours after its start
	}{{nil, 0, 60}, {hours(10), 0, 80}, {hours(90), 0, 60}, {hours(90), 10, 81}, {nil, 50, 45}, {nil, 100, 60}} {
		asks := &certificate{}
		asks.Spec.RenewBefore, asks.Spec.Percentage = c.before, c.percent
		if got := asks.renewal(cert).Sub(now); got != time.Duration(c.want)*time.Hour {
			t.Errorf("%v, %d%%: %s", c.before, c.percent, got)
		}
	}
}

func TestWhatIsNotSigned(t *testing.T) {
	const nothing = "Issuing certificate as Secret does not exist" // upstream says no more in a Certificate
	for _, c := range []struct{ situation, yaml, want, issuer string }{
		{"an Issuer in another namespace", objects("b", "Issuer"), nothing, "KeyPairVerified"},
		{"an Issuer that is asked for as one of the cluster", objects("a", "ClusterIssuer"), nothing, "KeyPairVerified"},
		{"a kind that there is not", objects("a", "Signer"), nothing, "KeyPairVerified"},
		{
			"an authority that is none", strings.Replace(objects("a", "Issuer"), "isCA: true", "isCA: false", 1), nothing,
			"ErrInvalidKeyPair",
		},
		{
			"an authority of which nobody knows",
			strings.Replace(objects("a", "Issuer"), "{secretName: root-secret}", "{secretName: gone}", 1), nothing,
			"ErrGetKeyPair",
		},
		{
			"an address that is none", strings.Replace(objects("a", "Issuer"), "192.0.2.7", "edge.example", 1),
			nothing + `: stand-in: invalid IP address: "edge.example", which upstream's webhook rejects`, "KeyPairVerified",
		},
		{
			"an issuer of another kind",
			strings.Replace(objects("a", "Issuer"), "{ca: {secretName: root-secret}}", "{acme: {}}", 1),
			nothing + ": stand-in: only issuers of the kinds selfSigned and ca are supported", "StandIn",
		},
	} {
		t.Run(c.situation, func(t *testing.T) {
			p := site(t, c.yaml)
			p.lookTwice(t)
			namespace := "a"
			if strings.Contains(c.yaml, "namespace: b") {
				namespace = "b"
			}
			if status, message := p.ready(t, namespace, "leaf"); status != "False" || message != c.want {
				t.Errorf("%s: %s, want %q", status, message, c.want)
			}
			if got := p.reasonOf(t, "a", "ca"); got != c.issuer {
				t.Errorf("the Issuer says %s, want %s", got, c.issuer)
			}
			if _, err := p.client.CoreV1().Secrets(namespace).Get(
				t.Context(), "leaf-secret", metav1.GetOptions{},
			); !apierrors.IsNotFound(err) {
				t.Errorf("the Secret: %v", err)
			}
		})
	}
}

func TestNothingIsSignedWithoutAController(t *testing.T) {
	p := site(t, objects("a", "Issuer"))
	if err := p.client.AppsV1().Deployments(Namespace).Delete(
		context.Background(), "cert-manager", metav1.DeleteOptions{},
	); err != nil {
		t.Fatal(err)
	}
	if err := p.Look(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	if status, _ := p.ready(t, "a", "root"); status != "" {
		t.Errorf("it is %s", status)
	}
}
