package endpoint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"time"
)

// Values of the Server header.
const (
	forwarderName = "stand-in"
	ingressName   = "stand-in of ingress-nginx"
)

// four matches the paths that the forwarder forwards.
var four = regexp.MustCompile(`^/(api|apis|version|openapi)(/|$)`)

// fakeCertificate returns a certificate like ingress-nginx's self-signed one (kubernetes/ingress-nginx dbb11b92,
// internal/net/ssl/ssl.go, getFakeHostSSLCert). It has an ECDSA key instead of an RSA key.
func fakeCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now(),
		NotAfter: time.Now().Add(365 * 24 * time.Hour),
		Subject: pkix.Name{
			Organization: []string{"Acme Co"}, CommonName: "Kubernetes Ingress Controller Fake Certificate",
		},
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: []string{"ingress.local"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// forwarder replaces nginx if this machine has none. It serves TLS with the pod's certificate and forwards only the
// paths that match four. It reads only the port from nginx.conf.
func (i *instance) forwarder(port int, certificate tls.Certificate, upstream string, authority []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	to := &url.URL{Scheme: "https", Host: upstream}
	onward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, ErrorLog: log.New(i, "", 0),
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "kubernetes.default.svc", MinVersion: tls.VersionTLS12},
		},
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	return i.serve(port, config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", forwarderName)
		if !four.MatchString(r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		onward.ServeHTTP(w, r)
	}))
}

// ingress runs an ingress controller without backends. It serves the certificate from named. If named is nil or fails,
// it serves its own fake certificate (internal/ingress/controller/controller.go, getDefaultSSLCertificate).
func (i *instance) ingress(port int, named func() (tls.Certificate, error)) error {
	own, err := fakeCertificate()
	if err != nil {
		return err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if named == nil {
				return &own, nil
			}
			if given, err := named(); err == nil {
				return &given, nil
			}
			return &own, nil
		},
	}
	return i.serve(port, config, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", ingressName)
		if regexp.MustCompile(`^/apis?(/|$)`).MatchString(r.URL.Path) {
			http.Error(w, "503 Service Temporarily Unavailable", http.StatusServiceUnavailable)
			return
		}
		http.Error(w, "404 Not Found", http.StatusNotFound)
	}))
}

func (i *instance) serve(port int, config *tls.Config, handler http.Handler) error {
	listener, err := net.Listen("tcp", i.at+":0")
	if err != nil {
		return err
	}
	i.ports[port] = listener.Addr().String()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: config,
	}
	i.stop = func() { _ = server.Close() }
	go func() {
		i.over(server.ServeTLS(listener, "", ""))
	}()
	return nil
}
