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

// onFreePort calls start with a free port. If another process takes the port first, it retries with another port.
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
		// On shutdown, an API server keeps serving its watches for a minute. Kill it instead.
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

// configure replaces envtest's default flags, which are meant for controller tests, with kubeadm's flags.
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
		// InternalDNS is first, because it resolves to the loopback address of the sandbox's log server.
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

// StopAPIServer kills the API server and the components that depend on it. It waits until the port is closed. etcd
// keeps running with its data.
func (p *Plane) StopAPIServer(ctx context.Context) error {
	if p.stopped {
		return nil
	}
	p.killComponents()
	_ = p.api.Stop() // always an error, because the server is killed
	p.stopped = true
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return nil
		}
		conn.Close()
		if err := pause(ctx); err != nil {
			return fmt.Errorf("the API server of %s still responds: %w", p.Name, err)
		}
	}
}

// StartAPIServer restarts the API server with the same port and certificates, and waits until it is ready. It also
// starts the components that depend on the API server, but does not wait for them.
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

// ready waits until the API server is ready.
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

// freePort returns a free loopback port. The port is below the ephemeral range, so that it is still free when a stopped
// server restarts.
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
