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

// onFreePort starts a program on a free port, and on another one when another program was faster.
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
		// A server that is told to end serves its watches for a minute
		// more. Nothing here waits for it.
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

// configure gives the API server the flags that kubeadm does, where envtest
// has a default that is made for tests of controllers.
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
		// First the address of the sandbox's log server, which loopback alone has.
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

// StopAPIServer kills the API server, and what cannot work without it, and
// returns when nothing answers on its port any more. etcd and its data stay.
func (p *Plane) StopAPIServer(ctx context.Context) error {
	if p.stopped {
		return nil
	}
	p.killComponents()
	_ = p.api.Stop() // it did not end in time, as intended, and was killed
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

// StartAPIServer starts the API server again where it was, with the same
// certificates, and returns when it is ready. What
// works on it is started by then, and may not be ready.
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

// ready waits until the API server says so.
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

// freePort returns a port of the loopback interface that is free now. It is
// below the range from which systems take the ports of outgoing connections,
// so that a stopped server finds it free again.
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
