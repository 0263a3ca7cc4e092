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

// What a stand-in calls itself in the header Server.
const (
	forwarderName = "stand-in"
	ingressName   = "stand-in of ingress-nginx"
)

// four are the paths that lead on.
var four = regexp.MustCompile(`^/(api|apis|version|openapi)(/|$)`)

// fake is the certificate that ingress-nginx makes for itself (internal/net/ssl).
func fake() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now(), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		Subject:  pkix.Name{Organization: []string{"Acme Co"}, CommonName: "Kubernetes Ingress Controller Fake Certificate"},
		KeyUsage: x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, DNSNames: []string{"ingress.local"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// forwarder takes the place of nginx where there is none: TLS with the pod's
// certificate, and the four paths. It reads nothing of nginx.conf but the port.
func (i *instance) forwarder(port int, certificate tls.Certificate, upstream string, authority []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	to := &url.URL{Scheme: "https", Host: upstream}
	onward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, ErrorLog: log.New(i, "", 0),
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "kubernetes.default.svc", MinVersion: tls.VersionTLS12}},
	}
	return i.serve(port, certificate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", forwarderName)
		if !four.MatchString(r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		onward.ServeHTTP(w, r)
	}))
}

// ingress is an ingress controller for which no certificate fits and behind which
// nothing runs.
func (i *instance) ingress(port int) error {
	certificate, err := fake()
	if err != nil {
		return err
	}
	return i.serve(port, certificate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", ingressName)
		if regexp.MustCompile(`^/apis?(/|$)`).MatchString(r.URL.Path) {
			http.Error(w, "503 Service Temporarily Unavailable", http.StatusServiceUnavailable)
			return
		}
		http.Error(w, "404 Not Found", http.StatusNotFound)
	}))
}

func (i *instance) serve(port int, certificate tls.Certificate, handler http.Handler) error {
	listener, err := net.Listen("tcp", i.at+":0")
	if err != nil {
		return err
	}
	i.ports[port] = listener.Addr().String()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	i.stop = func() { _ = server.Close() }
	go func() {
		i.over(server.ServeTLS(listener, "", ""))
	}()
	return nil
}
