// Package plane runs one real control plane on this machine. It consists of etcd and kube-apiserver, which envtest
// starts, kube-controller-manager, kube-scheduler, and kwok, which fakes the nodes and their pods.
//
// Package world creates the objects of the cluster. Package leash ensures that everything ends with the sandbox.
package plane

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"carrick/cluster/sandbox/podnet"
	"carrick/cluster/sandbox/roles"
)

const startWithin = 5 * time.Minute // for a cold disk and two busy cores

// Settings are the parameters in which the two control planes differ.
type Settings struct {
	Name        string // such as "local": used for its folder, logs and context
	PodCIDR     string
	ServiceCIDR string
	ServiceIP   string // the first of ServiceCIDR, where pods find the API server
	Advertise   string // the address of the API server in its own endpoints
}

// NoIssuers is an authentication configuration without external token issuers.
const NoIssuers = `{"apiVersion":"apiserver.config.k8s.io/v1beta1","kind":"AuthenticationConfiguration","jwt":[]}`

// Context returns the name of the kubeconfig's context.
func (s Settings) Context() string { return "sandbox-" + s.Name }

// Plane is a running control plane.
type Plane struct {
	Settings
	Config     *rest.Config // with a cluster admin's credentials
	Kubeconfig string       // path of a kubeconfig for the same admin
	FrontProxy []byte       // PEM, the CA of the API server's client certificate for aggregated API servers
	// Authentication is the path of the authentication configuration, which names external token issuers. It is empty
	// until a scenario writes one. The API server reloads it when it changes.
	Authentication string
	// Network routes the API server's requests to pods.
	Network *podnet.Network

	sandbox string // the sandbox's folder
	secrets secrets
	port    int
	etcd    *envtest.Etcd
	api     *envtest.APIServer
	running []*process // in addition to etcd and the API server
	died    chan<- error
	life    context.Context // context of the sandbox: after it is done, programs are not restarted
	stopped bool
}

// Start starts a control plane and waits until its API server is ready. The folders Binaries and Logs in the sandbox's
// folder must exist. A component that exits later is restarted until life is done. If a restart fails, the error is
// sent to died.
func Start(ctx, life context.Context, sandbox string, settings Settings, died chan<- error) (*Plane, error) {
	p := &Plane{Settings: settings, sandbox: sandbox, died: died, life: life}
	if err := os.Mkdir(p.folder(), 0o700); err != nil {
		return nil, err
	}
	if err := p.secrets.make(p); err != nil {
		return nil, fmt.Errorf("make the certificates of %s: %w", p.Name, err)
	}
	p.FrontProxy = p.secrets.frontProxy.Cert
	p.Authentication = p.file("authentication.yaml")
	if err := os.WriteFile(p.Authentication, []byte(NoIssuers), 0o600); err != nil {
		return nil, err
	}
	if err := p.startNetwork(); err != nil {
		return nil, err
	}
	if err := onFreePort(p.startEtcd); err != nil {
		return nil, err
	}
	if err := onFreePort(func(port int) error {
		p.port = port
		return p.startAPIServer()
	}); err != nil {
		return nil, err
	}
	if err := p.writeKubeconfigs(); err != nil {
		return nil, err
	}
	if err := p.ready(ctx); err != nil {
		return nil, err
	}
	return p, p.runComponents()
}

// startNetwork creates the API server's route to pods. The socket has a short name in the sandbox's own folder, because
// systems limit the length of socket paths.
func (p *Plane) startNetwork() error {
	var err error
	if p.Network, err = podnet.Start(filepath.Join(p.sandbox, "net-"+p.Name[:1]), p.PodCIDR); err != nil {
		return err
	}
	return os.WriteFile(p.file(egressFile), fmt.Appendf(nil, egress, p.Network.Socket), 0o600)
}

const (
	egressFile = "egress.yaml"
	egress     = `{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[` +
		`{"name":"cluster","connection":{"proxyProtocol":"HTTPConnect","transport":{"uds":{"udsName":%q}}}}]}`
)

// Stopped reports whether the API server is stopped.
func (p *Plane) Stopped() bool { return p.stopped }

func (p *Plane) folder() string            { return filepath.Join(p.sandbox, p.Name) }
func (p *Plane) file(name string) string   { return filepath.Join(p.folder(), name) }
func (p *Plane) binary(name string) string { return filepath.Join(Binaries(p.sandbox), name) }

// Binaries returns the folder in a sandbox's folder that contains the components' programs.
func Binaries(sandbox string) string { return filepath.Join(sandbox, "bin") }

// Logs returns the folder in a sandbox's folder that contains the components' logs.
func Logs(sandbox string) string { return filepath.Join(sandbox, "logs") }

func (p *Plane) logPath(component string) string {
	return filepath.Join(Logs(p.sandbox), p.Name+"-"+component+".log")
}

func (p *Plane) log(component string) (*os.File, error) {
	return os.OpenFile(p.logPath(component), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

func (p *Plane) startEtcd(port int) error {
	out, err := p.log(roles.Etcd)
	if err != nil {
		return err
	}
	defer out.Close()
	p.etcd = &envtest.Etcd{
		URL:          &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))},
		Path:         p.binary(roles.Etcd),
		DataDir:      p.file("etcd"),
		StartTimeout: startWithin,
		Out:          out,
		Err:          out,
	}
	p.etcd.Configure().Set("log-level", "warn")
	if err := p.etcd.Start(); err != nil {
		return p.failed(roles.Etcd, err)
	}
	return nil
}
