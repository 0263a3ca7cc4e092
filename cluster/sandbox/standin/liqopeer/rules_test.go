package liqopeer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSubjectIsTheSliceOfTheConsumer(t *testing.T) {
	got := subject("rome", "milan")
	// printf milan | sha256sum | head -c 12
	if got.CommonName != "rome-efee614420c5" || len(got.Organization) != 1 || got.Organization[0] != "milan" {
		t.Errorf("%v", got)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	key := newKey(t)
	good, err := request(key, "rome", "milan")
	if err != nil {
		t.Fatal(err)
	}
	if err := examine(good, "rome", "milan"); err != nil {
		t.Errorf("a good one: %v", err)
	}
	block, _ := pem.Decode(good)
	spoiled := append([]byte(nil), block.Bytes...)
	spoiled[len(spoiled)-1] ^= 1
	for name, c := range map[string]struct {
		data            []byte
		slice, consumer string
		want            string
	}{
		"not PEM":        {[]byte("x"), "rome", "milan", "not PEM"},
		"not a request":  {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{1}}), "rome", "milan", "spec.csr"},
		"other slice":    {good, "test", "milan", "common name"},
		"other consumer": {good, "rome", "paris", "common name"},
		"spoiled":        {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: spoiled}), "rome", "milan", "spec.csr"},
	} {
		if err := examine(c.data, c.slice, c.consumer); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	masters := subject("rome", "milan")
	masters.Organization = []string{"system:masters"}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: masters}, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := examine(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), "rome", "milan"); err == nil || !strings.Contains(err.Error(), "organization") {
		t.Errorf("another organization: %v", err)
	}
}

func TestPrivateKeysInTheirForms(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err1 := x509.MarshalPKCS8PrivateKey(newKey(t))
	sec1, err2 := x509.MarshalECPrivateKey(curve)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for name, der := range map[string][]byte{"ed25519": pkcs8, "ecdsa": sec1} {
		if _, err := privateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range [][]byte{nil, []byte("key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})} {
		if _, err := privateKey(bad); err == nil {
			t.Errorf("%q is no key", bad)
		}
	}
}

func TestKubeconfigsThatNeedMoreThanThemselves(t *testing.T) {
	good := func() *api.Config {
		c := api.NewConfig()
		c.Clusters["c"] = &api.Cluster{Server: "https://192.0.2.1:6443"}
		c.AuthInfos["u"] = &api.AuthInfo{Token: "t"}
		c.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
		c.CurrentContext = "x"
		return c
	}
	for name, spoil := range map[string]func(*api.Config){
		"authority file":   func(c *api.Config) { c.Clusters["c"].CertificateAuthority = "/ca" },
		"certificate file": func(c *api.Config) { c.AuthInfos["u"].ClientCertificate = "/crt" },
		"key file":         func(c *api.Config) { c.AuthInfos["u"].ClientKey = "/key" },
		"token file":       func(c *api.Config) { c.AuthInfos["u"].TokenFile = "/token" },
		"program":          func(c *api.Config) { c.AuthInfos["u"].Exec = &api.ExecConfig{APIVersion: "v1", Command: "x"} },
		"provider":         func(c *api.Config) { c.AuthInfos["u"].AuthProvider = &api.AuthProviderConfig{Name: "x"} },
		"no context":       func(c *api.Config) { c.CurrentContext = "y" },
	} {
		c := good()
		spoil(c)
		data, err := clientcmd.Write(*c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := connect(data); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	data, err := clientcmd.Write(*good())
	if err != nil {
		t.Fatal(err)
	}
	if config, err := connect(data); err != nil || config.Host != "https://192.0.2.1:6443" || config.BearerToken != "t" {
		t.Errorf("%v %v", config, err)
	}
	if _, err := connect([]byte("{")); err == nil {
		t.Error("it is no kubeconfig")
	}
}

func TestGrantFillsInWhatIsNotAskedFor(t *testing.T) {
	got := grant((&look{}).granted(), corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), "nvidia.com/gpu": resource.MustParse("1")})
	for name, want := range map[corev1.ResourceName]string{"cpu": "20", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1"} {
		if quantity := got[name]; quantity.String() != want {
			t.Errorf("%s: %s, want %s", name, quantity.String(), want)
		}
	}
	few := (&look{flags: map[string]string{"default-node-resources": "cpu=4,memory=8Gi"}}).granted()
	if _, pods := few[corev1.ResourcePods]; pods || len(few) != 2 {
		t.Errorf("with defaults of an admin's own: %v", few)
	}
}

func TestHeededSecrets(t *testing.T) {
	namespaces := []corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "rome", Labels: map[string]string{remoteClusterID: "rome", tenantNamespace: yes}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "paris", Labels: map[string]string{remoteClusterID: "paris", tenantNamespace: yes}}},
	}
	secret := func(name string, finalizers ...string) corev1.Secret {
		return corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "rome", Finalizers: finalizers,
				Labels: map[string]string{remoteClusterID: "rome"}, Annotations: map[string]string{remoteTenant: "there"},
			},
			Data: map[string][]byte{"kubeconfig": []byte("x")},
		}
	}
	one := []corev1.Secret{secret("a")}
	if !heeded(&one[0], one, namespaces) {
		t.Error("a whole one is not heeded")
	}
	two := []corev1.Secret{secret("a"), secret("b")}
	if heeded(&two[0], two, namespaces) || heeded(&two[1], two, namespaces) {
		t.Error("one of two that were never heeded is")
	}
	older := []corev1.Secret{secret("a", operatorFinalizer), secret("b")}
	if !heeded(&older[0], older, namespaces) || heeded(&older[1], older, namespaces) {
		t.Error("the one that was there first is what counts")
	}
	elsewhere := []corev1.Secret{secret("a")}
	elsewhere[0].Namespace = "paris"
	if heeded(&elsewhere[0], elsewhere, namespaces) {
		t.Error("it stands in the namespace of another cluster")
	}
}
