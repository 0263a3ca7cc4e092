package plane

import (
	"crypto/tls"
	"errors"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"carrick/cluster/sandbox/pki"
)

const (
	masters          = "system:masters"
	frontProxyClient = "front-proxy-client"
	kubeletClient    = "kube-apiserver-kubelet-client" // user name of the API server in requests to kubelets
)

type secrets struct {
	authority      *pki.Authority // CA for servers, clients and CertificateSigningRequests
	authorityFile  string
	authorityKey   string
	frontProxy     *pki.Authority
	frontProxyFile string
	proxyCert      string
	proxyKey       string
	kubeletCert    string
	kubeletKey     string
	accountPrivate string
	accountPublic  string
}

func (s *secrets) make(p *Plane) error {
	var err error
	if s.authority, err = pki.NewAuthority("kubernetes"); err != nil {
		return err
	}
	if s.authorityFile, s.authorityKey, err = s.authority.Write(p.folder(), "ca"); err != nil {
		return err
	}
	if s.frontProxy, err = pki.NewAuthority("front-proxy-ca"); err != nil {
		return err
	}
	if s.frontProxyFile, _, err = s.frontProxy.Write(p.folder(), "front-proxy-ca"); err != nil {
		return err
	}
	proxy, err := s.frontProxy.Client(frontProxyClient)
	if err != nil {
		return err
	}
	if s.proxyCert, s.proxyKey, err = proxy.Write(p.folder(), frontProxyClient); err != nil {
		return err
	}
	kubelet, err := s.authority.Client(kubeletClient)
	if err != nil {
		return err
	}
	if s.kubeletCert, s.kubeletKey, err = kubelet.Write(p.folder(), kubeletClient); err != nil {
		return err
	}
	// If apiserver.crt and apiserver.key exist, envtest uses them.
	serving, err := s.authority.Server("kube-apiserver", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost",
		"127.0.0.1", p.ServiceIP, p.Advertise)
	if err != nil {
		return err
	}
	if _, _, err := serving.Write(p.folder(), "apiserver"); err != nil {
		return err
	}
	return s.makeAccountKey(p)
}

// KubeletTLS returns the TLS configuration for a fake kubelet on localhost. The cluster's CA signs its certificate, and
// only the API server is accepted as a client.
func (p *Plane) KubeletTLS() (*tls.Config, error) {
	return p.secrets.authority.Mutual(kubeletClient, "localhost")
}

func (s *secrets) makeAccountKey(p *Plane) error {
	private, public, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	s.accountPrivate, s.accountPublic = p.file("sa.key"), p.file("sa.pub")
	return errors.Join(
		os.WriteFile(s.accountPrivate, private, 0o600),
		os.WriteFile(s.accountPublic, public, 0o600),
	)
}

// certificates makes envtest use the sandbox's client CA for the API server. envtest does not expose the key of its
// own CA.
type certificates struct {
	file      string
	authority *pki.Authority
}

var _ envtest.Authn = certificates{}

func (c certificates) Configure(_ string, flags *envtest.Arguments) error {
	flags.Set("client-ca-file", c.file)
	return nil
}

func (c certificates) Start() error { return nil }
func (c certificates) Stop() error  { return nil }

func (c certificates) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	pair, err := c.authority.Client(user.Name, user.Groups...)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = pair.Cert, pair.Key
	return config, nil
}
