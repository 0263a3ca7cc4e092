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
	"k8s.io/apimachinery/pkg/types"
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
		"not PEM": {[]byte("x"), "rome", "milan", "not PEM"},
		"not a request": {
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{1}}), "rome", "milan", "spec.csr",
		},
		"other slice":    {good, "test", "milan", "common name"},
		"other consumer": {good, "rome", "paris", "common name"},
		"spoiled": {
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: spoiled}), "rome", "milan", "spec.csr",
		},
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
	if err := examine(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), "rome", "milan",
	); err == nil || !strings.Contains(err.Error(), "organization") {
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
	for _, bad := range [][]byte{
		nil, []byte("key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}}),
	} {
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
	got := grant(
		(&look{}).granted(),
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), "nvidia.com/gpu": resource.MustParse("1")},
	)
	for name, want := range map[corev1.ResourceName]string{
		"cpu": "20", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1",
	} {
		if quantity := got[name]; quantity.String() != want {
			t.Errorf("%s: %s, want %s", name, quantity.String(), want)
		}
	}
	few := (&look{flags: map[string]string{"default-node-resources": "cpu=4,memory=8Gi"}}).granted()
	if _, pods := few[corev1.ResourcePods]; pods || len(few) != 2 {
		t.Errorf("with defaults of an admin's own: %v", few)
	}
}

func TestSecretsOfTheReplicator(t *testing.T) {
	secret := func(name, host, version string) corev1.Secret {
		config := api.NewConfig()
		config.Clusters["x"], config.AuthInfos["x"] = &api.Cluster{Server: host}, &api.AuthInfo{Token: "x"}
		config.Contexts["x"], config.CurrentContext = &api.Context{Cluster: "x", AuthInfo: "x"}, "x"
		data, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		return corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "anywhere", UID: types.UID(name), ResourceVersion: version,
				Labels: map[string]string{remoteClusterID: "rome"}, Annotations: map[string]string{remoteTenant: "there"},
			},
			Data: map[string][]byte{"kubeconfig": data},
		}
	}
	var r remotes
	read := func(all ...corev1.Secret) *remote {
		for i := range all {
			r.read(&all[i], all)
		}
		return r.known["rome"]
	}
	first := secret("a", "https://127.0.0.1:1", "1")
	was := read(first)
	if was == nil || was.local != "anywhere" || was.namespace != "there" {
		t.Fatalf("the only one: %+v", was)
	}
	if got := read(first, secret("b", "https://127.0.0.1:1", "2")); got != was {
		t.Error("a second one that is the same ended the replication")
	}
	if got := read(first, secret("b", "https://127.0.0.1:2", "3")); got != nil {
		t.Error("a second one that leads elsewhere ended nothing")
	}
	if got := read(first); got != nil {
		t.Error("without it the replication began again, although nothing changed")
	}
	first.ResourceVersion = "4"
	if got := read(first); got == nil {
		t.Error("a change began nothing")
	}
	first.ResourceVersion, first.Data = "5", nil
	if got := read(first); got != nil {
		t.Error("without a kubeconfig it goes on")
	}
}

func TestSecretsThatGetTheFinalizer(t *testing.T) {
	for name, c := range map[string]struct {
		labels, notes map[string]string
		want          bool
	}{
		"whole":         {map[string]string{remoteClusterID: "rome"}, map[string]string{remoteTenant: "there"}, true},
		"no label":      {nil, map[string]string{remoteTenant: "there"}, false},
		"no annotation": {map[string]string{remoteClusterID: "rome"}, nil, false},
	} {
		if got := valid(
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: c.labels, Annotations: c.notes}},
		); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
