package virtualkubelet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/pki"
)

var signingRequests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")

// address is where the API server requests the logs of the node's pods. It is also the IP address in the serving
// certificate. Upstream uses the pod's address.
const address = "127.0.0.1"

// serving is the progress of the request for a serving certificate (interlink-hq/interLink f6321757 and 0.6.1,
// cmd/virtual-kubelet/main.go and pkg/virtualkubelet/cert-retriever.go). A virtual kubelet deletes old requests for its
// node, creates a new one and waits indefinitely for approval. If the request is denied, it creates another one. If the
// request is deleted, it keeps polling. Releases before 0.5.2 request no certificate. Releases 0.5.2 and 0.6.0 use
// client-go's certificate manager. DisableCSR is new in 0.6.1.
//
// Known differences: upstream polls every ten seconds, beginning ten seconds after startup. It requests a new
// certificate after four fifths of the certificate's lifetime.
type serving struct {
	began   bool
	request string // name of the request, or ""
	key     ed25519.PrivateKey
	fault   string // last logged error
	cert    *tls.Certificate
}

// serve performs the next step towards a serving certificate.
func (p *Player) serve(ctx context.Context, r *run, node string) error {
	s := &r.serving
	own, err := p.as(r)
	switch {
	case err != nil:
		return err
	case s.cert != nil:
		return nil
	case r.config.CertFile != "" && r.config.KeyFile != "": // these files are not mounted here
		r.once("error", "failed to load kubelet certificate: open %s: no such file or directory", r.config.CertFile)
		return nil
	case r.config.NoRequest:
		s.cert, err = selfSigned()
		return err
	}
	requests := own.CertificatesV1().CertificateSigningRequests()
	signer := r.config.Signer
	if signer == "" {
		signer = certificatesv1.KubeletServingSignerName
	}
	if !s.began {
		s.began = true
		r.say("info", "Using CSR signer: %s", signer)
		dropOld(ctx, own, r, signer, node)
	}
	if s.request == "" {
		made, key, err := request(ctx, own, signer, node)
		if err != nil {
			r.once("error", "Failed to create CSR: %v (will retry)", err)
			return nil
		}
		s.request, s.key = made.Name, key
		r.say("info", "Created CSR %s for node %s (will wait indefinitely for approval)", made.Name, node)
	}
	held, err := requests.Get(ctx, s.request, metav1.GetOptions{})
	if err != nil {
		r.once("warning", "Failed to get CSR %s: %v (will retry)", s.request, err)
		return nil
	}
	for _, c := range held.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied {
			r.say("error", "CSR %s was denied: %s (will create new CSR)", s.request, c.Message)
			err := requests.Delete(ctx, s.request, metav1.DeleteOptions{})
			s.request = ""
			return err
		}
	}
	if len(held.Status.Certificate) == 0 {
		return nil
	}
	key, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(held.Status.Certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	if err != nil {
		return err
	}
	s.cert = &pair
	r.say("info", "CSR %s approved, certificate received", s.request)
	return nil
}

// dropOld deletes the CertificateSigningRequests of previous virtual kubelets for the node.
func dropOld(ctx context.Context, own kubernetes.Interface, r *run, signer, node string) {
	requests := own.CertificatesV1().CertificateSigningRequests()
	all, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		r.say("warning", "Failed to list CSRs for cleanup: %v", err)
		return
	}
	for _, old := range all.Items {
		if old.Spec.SignerName != signer || commonName(old.Spec.Request) != "system:node:"+node {
			continue
		}
		if err := requests.Delete(ctx, old.Name, metav1.DeleteOptions{}); err != nil {
			r.say("warning", "Failed to delete CSR %s: %v", old.Name, err)
		}
	}
}

func commonName(request []byte) string {
	block, _ := pem.Decode(request)
	if block == nil {
		return ""
	}
	asks, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return asks.Subject.CommonName
}

// request creates a CertificateSigningRequest with a new key.
func request(
	ctx context.Context, own kubernetes.Interface, signer, node string,
) (*certificatesv1.CertificateSigningRequest, ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	asks, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		IPAddresses: []net.IP{net.ParseIP(address)},
	}, key)
	if err != nil {
		return nil, nil, err
	}
	made, err := own.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "vk-" + node + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: asks}),
			SignerName: signer,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth,
			},
		},
	}, metav1.CreateOptions{})
	return made, key, err
}

// selfSigned returns a certificate for a virtual kubelet that is configured not to request one.
func selfSigned() (*tls.Certificate, error) {
	own, err := pki.NewAuthority("virtual kubelet")
	if err != nil {
		return nil, err
	}
	pair, err := own.Server(address)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	return &cert, err
}

// identity returns a copy of config with the running virtual kubelet's certificate.
func (p *Player) identity(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.Certificates = nil
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if cert := p.cert.Load(); cert != nil {
			return cert, nil
		}
		return nil, errors.New("no certificate available yet - CSR pending approval")
	}
	return config
}

// once logs a message unless it is the same as the previous one.
func (r *run) once(level, format string, args ...any) {
	if now := fmt.Sprintf(format, args...); now != r.serving.fault {
		r.serving.fault = now
		r.say(level, format, args...)
	}
}
