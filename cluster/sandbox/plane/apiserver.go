package plane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"carrick/cluster/sandbox/roles"
)

const lookEvery = 50 * time.Millisecond

// onFreePort starts a program on a free port, and retries with another port if a different program has taken it
// meanwhile.
func onFreePort(start func(port int) error) error {
	for tries := 3; ; tries-- {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err = start(port); err == nil || tries == 1 {
			return err
		}
	}
}

func (p *Plane) startAPIServer() error {
	out, err := p.log(roles.APIServer)
	if err != nil {
		return err
	}
	defer out.Close()
	p.api = &envtest.APIServer{
		Path:         p.binary(roles.APIServer),
		CertDir:      p.folder(),
		EtcdURL:      p.etcd.URL,
		StartTimeout: startWithin,
		// On shutdown, an API server continues to serve its watches for a minute. Do not wait for that.
		StopTimeout: time.Millisecond,
		Out:         out,
		Err:         out,
		SecureServing: envtest.SecureServing{
			ListenAddr: envtest.ListenAddr{Address: "127.0.0.1", Port: strconv.Itoa(p.port)},
			CA:         p.secrets.authority.Cert,
			Authn:      certificates{p.secrets.authorityFile, p.secrets.authority},
		},
	}
	p.configure(p.api.Configure())
	if err := p.api.Start(); err != nil {
		return p.failed(roles.APIServer, err)
	}
	return nil
}

// configure sets the flags that kubeadm sets for the API server. They replace envtest's defaults, which are meant for
// tests of controllers.
func (p *Plane) configure(flags *envtest.Arguments) {
	s := p.secrets
	flags.
		Set("advertise-address", p.Advertise).
		Set("authorization-mode", "Node,RBAC").
		Disable("disable-admission-plugins").
		Set("enable-admission-plugins", "NodeRestriction").
		Set("enable-bootstrap-token-auth", "true").
		Set("authentication-config", p.Authentication).
		Set("service-cluster-ip-range", p.ServiceCIDR).
		Set("service-account-issuer", "https://kubernetes.default.svc.cluster.local").
		Set("service-account-key-file", s.accountPublic).
		Set("service-account-signing-key-file", s.accountPrivate).
		Set("enable-aggregator-routing", "true").
		Set("egress-selector-config-file", p.file(egressFile)).
		Set("kubelet-client-certificate", s.kubeletCert).
		Set("kubelet-client-key", s.kubeletKey).
		Set("kubelet-certificate-authority", s.authorityFile).
		// InternalDNS comes first, because it is the loopback address of the sandbox's log server.
		Set("kubelet-preferred-address-types", "InternalDNS,InternalIP,ExternalIP,Hostname").
		Set("proxy-client-cert-file", s.proxyCert).
		Set("proxy-client-key-file", s.proxyKey).
		Set("requestheader-client-ca-file", s.frontProxyFile).
		Set("requestheader-allowed-names", frontProxyClient).
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("profiling", "false")
}

// StopAPIServer kills the API server and the components that depend on it, and waits until its port no longer answers.
// etcd and its data are kept.
func (p *Plane) StopAPIServer(ctx context.Context) error {
	if p.stopped {
		return nil
	}
	p.killComponents()
	_ = p.api.Stop() // the error is expected: the stop timed out and the server was killed
	p.stopped = true
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return nil
		}
		conn.Close()
		if err := pause(ctx); err != nil {
			return fmt.Errorf("the API server of %s still answers: %w", p.Name, err)
		}
	}
}

// StartAPIServer restarts the API server on the same port with the same certificates, and waits until it is ready. It
// also starts the components that depend on it, but does not wait until they are ready.
func (p *Plane) StartAPIServer(ctx context.Context) error {
	if !p.stopped {
		return nil
	}
	if err := p.startAPIServer(); err != nil {
		return err
	}
	p.stopped = false
	if err := p.ready(ctx); err != nil {
		return err
	}
	return p.runComponents()
}

// ready waits until the API server reports that it is ready.
func (p *Plane) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for {
		answer, err := client.Get(p.Config.Host + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(answer.Status)
		}
		if pause(ctx) != nil {
			return p.failed(roles.APIServer, fmt.Errorf("not ready in time: %w", err))
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookEvery):
		return nil
	}
}

// freePort returns a free port of the loopback interface. The port is below the ephemeral range, so that it is still
// free when a stopped server restarts.
func freePort() (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(10000)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no free port between 20000 and 30000 on 127.0.0.1")
}
