package interlink

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"carrick/cluster/certificate"
	"carrick/cluster/masked"
)

// proxyRun is a real nginx in front of an upstream. It runs with the shipped configuration, except for the paths of its
// files.
type proxyRun struct {
	address string // host:port
	ca      []byte
	dir     string // of tls.crt and tls.key
	said    *output
}

// output collects nginx's output. The test can read it while nginx is running.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// runProxy starts nginx. It opens the listening socket first and passes it to nginx, so callers do not have to wait.
func runProxy(t *testing.T, upstream, name string, upstreamCA []byte, change func(*nginxConf)) proxyRun {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("no nginx on this machine: the shipped configuration is not tested")
		}
	}
	dir, err := os.MkdirTemp("", "carrick-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ca, err := certificate.NewAuthority("the endpoint's CA", 10)
	if err != nil {
		t.Fatal(err)
	}
	p := proxyRun{ca: ca.Cert, dir: dir, said: &output{}}
	leaf, err := certificate.Issue(ca, []string{"127.0.0.1"}, 90)
	if err != nil {
		t.Fatal(err)
	}
	p.shows(t, leaf.Cert, leaf.Key)
	write(t, filepath.Join(dir, "ca.crt"), upstreamCA)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	p.address = fmt.Sprintf("127.0.0.1:%d", port)
	c := proxyConf
	c.listen, c.tls, c.kubeCA, c.upstream, c.name, c.temp = port, dir, filepath.Join(dir, "ca.crt"), upstream, name, dir
	if change != nil {
		change(&c)
	}
	text, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nginx.conf"), []byte(text))
	p.start(t, program, l.(*net.TCPListener))
	return p
}

func (p proxyRun) start(t *testing.T, program string, l *net.TCPListener) {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	more := "daemon off;"
	if os.Getuid() == 0 { // otherwise its workers run as a user who cannot read the folder
		more += " user root;"
	}
	cmd := exec.Command(program, "-p", p.dir, "-c", filepath.Join(p.dir, "nginx.conf"), "-e", "stderr", "-g", more)
	cmd.Env = append(os.Environ(), "NGINX=3;")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr, cmd.Stdout = p.said, p.said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx said:\n%s", p.said)
		}
	})
}

// shows replaces the proxy's certificate. nginx serves the new certificate from the next handshake on.
func (p proxyRun) shows(t *testing.T, cert []byte, key masked.Value) {
	t.Helper()
	write(t, filepath.Join(p.dir, "tls.crt"), cert)
	write(t, filepath.Join(p.dir, "tls.key"), []byte(key.Reveal()))
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// client returns an HTTP client that trusts only ca. least is the minimum TLS version.
func (p proxyRun) client(ca []byte, name string, least uint16) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: least},
	}}
}

// ask sends a request and returns the status, the body and the error of the response.
func ask(t *testing.T, c *http.Client, method, url, token string, body io.Reader) (int, []byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, got, err
}

// expired returns a self-signed certificate that expired yesterday.
func expired(t *testing.T) certificate.Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ended"}, NotBefore: time.Now().AddDate(0, 0, -9),
		NotAfter:    time.Now().AddDate(0, 0, -1),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  masked.New(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))),
	}
}
