package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"carrick/cluster/sandbox/pki"
	"carrick/cluster/sandbox/standin/podfiles"
)

const conf = `# a proxy
pid /tmp/nginx.pid;
events {}
http {
  proxy_temp_path "/tmp/p";
  access_log /dev/stdout;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen 60443 ssl; # not 443
    ssl_certificate /tls/tls.crt; ssl_certificate_key /tls/tls.key;
    location ~ ^/(api|apis|version|openapi)(/|$) {
      proxy_pass https://kubernetes.default.svc:443;
      proxy_set_header Host kubernetes.default.svc; proxy_set_header Connection $connection_upgrade;
      proxy_ssl_verify on; proxy_ssl_trusted_certificate /kube/ca.crt; proxy_ssl_name kubernetes.default.svc;
    }
    location / { return 404; }
  }
}
`

func testMachine(dir, upstream string) (*machine, *instance) {
	i := &instance{dir: dir, at: loopback, ports: map[int]string{}, stop: func() {}, ended: make(chan struct{})}
	mounts := map[string]string{}
	for _, at := range []string{"/tmp", "/tls", "/kube"} {
		mounts[at] = filepath.Join(dir, "root", at)
	}
	return &machine{mounts: mounts, dir: dir, upstream: upstream, listen: i.port}, i
}

func TestAConfigurationIsChangedNoMoreThanItMust(t *testing.T) {
	m, i := testMachine("/D", "127.0.0.1:6443")
	got, err := m.adapt(conf)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"/tmp/nginx.pid", "/D/root/tmp/nginx.pid", `"/tmp/p"`, "/D/root/tmp/p", "listen 60443", "listen "+i.ports[60443],
		"/tls/", "/D/root/tls/", "/kube/ca.crt", "/D/root/kube/ca.crt", "https://kubernetes.default.svc:443",
		"https://127.0.0.1:6443",
		"http {", "http { client_body_temp_path /D/client_body_temp_path; fastcgi_temp_path /D/fastcgi_temp_path;"+
			" uwsgi_temp_path /D/uwsgi_temp_path; scgi_temp_path /D/scgi_temp_path;",
	).Replace(conf)
	if got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
	if !strings.HasPrefix(i.ports[60443], "127.0.0.1:") {
		t.Errorf("it listens at %s", i.ports[60443])
	}
	for text, want := range map[string]string{
		"/etc/ssl/own.pem": "/D/none/etc/ssl/own.pem", "/tlsx/a": "/D/none/tlsx/a", "/dev/stderr": "/dev/stderr",
		"relative": "relative", "/tls/../etc": "/D/root/tls/../etc",
	} {
		if got := m.path(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"http { server { listen unix:/run/x; } }", "http { server { listen ssl; } }"} {
		if text, err := m.adapt(bad); err == nil {
			t.Errorf("%s is %s", bad, text)
		}
	}
}

// api starts a fake API server whose responses contain the request.
func api(t *testing.T) (upstream string, authority []byte) {
	t.Helper()
	a, err := pki.NewAuthority("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Server("kubernetes.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("Authorization"))
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), a.Cert
}

// ask sends a request to address. The client trusts only authority.
func ask(t *testing.T, address, path string, authority []byte) (*http.Response, string, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}, DisableKeepAlives: true,
		},
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer x")
	answer, err := client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), err
}

// files writes the files that a proxy's pod mounts, and returns the CA of its certificate.
func files(t *testing.T, dir string, kube []byte) (authority []byte) {
	t.Helper()
	a, err := pki.NewAuthority("endpoint")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"tls/tls.crt": pair.Cert, "tls/tls.key": pair.Key, "kube/ca.crt": kube, "tmp/none": nil,
	} {
		if err := podfiles.Write(filepath.Join(dir, "root", name), data); err != nil {
			t.Fatal(err)
		}
	}
	return a.Cert
}

func TestNginxRunsAPodsOwnConfiguration(t *testing.T) {
	program, ok := FindNginx()
	if !ok {
		t.Skip("there is no nginx on this machine: install the package nginx-light")
	}
	upstream, kube := api(t)
	other, err := pki.NewAuthority("somebody else")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		situation, old, with string
		kube                 []byte
		status               int // of /version; 0: it does not start
		says                 string
	}{
		{"as it should be", "", "", kube, http.StatusOK, ""},
		{
			"an API server of another authority", "", "", other.Cert, http.StatusBadGateway,
			"upstream SSL certificate verify error",
		},
		{
			"an upstream that the shell ate", "proxy_pass https://kubernetes.default.svc:443;", "proxy_pass ;", kube, 0,
			`invalid number of arguments in "proxy_pass" directive`,
		},
		{"a certificate that is not mounted", "/tls/tls.crt", "/else/tls.crt", kube, 0, "cannot load certificate"},
	} {
		t.Run(c.situation, func(t *testing.T) {
			dir := t.TempDir()
			own := files(t, dir, c.kube)
			m, i := testMachine(dir, upstream)
			text, err := m.adapt(strings.Replace(conf, c.old, c.with, 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := i.nginx(program, text); err != nil {
				t.Fatal(err)
			}
			defer i.close()
			if err := i.up(t.Context()); (err == nil) != (c.status != 0) {
				t.Fatalf("%v\n%s", err, i.log())
			}
			if c.status != 0 {
				for path, status := range map[string]int{
					"/version": c.status, "/healthz": http.StatusNotFound, "/apisx": http.StatusNotFound,
				} {
					r, body, err := ask(t, i.ports[60443], path, own)
					if err != nil || r.StatusCode != status || status == http.StatusOK && body != "/version Bearer x" {
						t.Errorf("%s: %v, %q, %v", path, r, body, err)
					}
				}
				if _, _, err := ask(t, i.ports[60443], "/version", kube); err == nil {
					t.Error("it is trusted by who trusts another authority")
				}
			}
			if !strings.Contains(i.log(), c.says) || strings.Contains(i.log(), filepath.Join(dir, "root")) {
				t.Errorf("it says %s", i.log())
			}
		})
	}
}

func TestWhatTakesNginxsPlaceSaysSo(t *testing.T) {
	upstream, kube := api(t)
	dir := t.TempDir()
	own := files(t, dir, kube)
	_, i := testMachine(dir, upstream)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "root/tls/tls.crt"), filepath.Join(dir, "root/tls/tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := i.forwarder(60443, certificate, upstream, kube); err != nil {
		t.Fatal(err)
	}
	defer i.close()
	for path, status := range map[string]int{
		"/version": 200, "/api/v1": 200, "/apis": 200, "/openapi/v2": 200, "/": 404, "/healthz": 404, "/apisx": 404,
	} {
		r, _, err := ask(t, i.ports[60443], path, own)
		if err != nil || r.StatusCode != status || r.Header.Get("Server") != "stand-in" {
			t.Errorf("%s: %v, %v", path, r, err)
		}
	}
	if _, _, err := ask(t, i.ports[60443], "/version", kube); err == nil {
		t.Error("it is trusted by who trusts another authority")
	}
}

func TestAnIngressControllerHasACertificateOfItsOwn(t *testing.T) {
	_, i := testMachine(t.TempDir(), "")
	if err := i.ingress(443, nil); err != nil {
		t.Fatal(err)
	}
	defer i.close()
	made, err := fakeCertificate()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(
		t, i.ports[443], "/api", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}),
	); err == nil {
		t.Error("it is trusted")
	}
	//nolint:gosec // it is what is looked at
	conn, err := tls.Dial("tcp", i.ports[443], &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != "Kubernetes Ingress Controller Fake "+
		"Certificate" {
		t.Errorf("it is %s", got)
	}
}

func TestAnIngressControllerServesTheSecretThatItIsGiven(t *testing.T) {
	authority, err := pki.NewAuthority("endpoint")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p := &Player{client: fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "served", Namespace: "a"},
		Data:       map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key},
	}), life: t.Context()}
	for arg, trusted := range map[string]bool{
		defaultCertificate + "a/served": true, defaultCertificate + "a/none": false, defaultCertificate + "served": false,
		"--v=2": false,
	} {
		_, i := testMachine(t.TempDir(), "")
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Args: []string{"/nginx-ingress-controller", arg}, Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 443}},
		}}}}
		if err := p.controller(t.Context(), pod, i); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(t, i.ports[443], "/api", authority.Cert); (err == nil) != trusted {
			t.Errorf("%s: %v", arg, err)
		}
		i.close()
	}
}
