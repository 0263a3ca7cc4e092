// Package plane runs a real control plane on this machine. envtest starts etcd and kube-apiserver. This package starts
// kube-controller-manager, kube-scheduler and kwok, which fakes nodes and their pods.
//
// Package world creates the cluster's objects. Package leash stops all processes when the sandbox exits.
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

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"carrick/cluster/sandbox/podnet"
	"carrick/cluster/sandbox/roles"
)

const startWithin = 5 * time.Minute // long enough for a slow disk and two busy cores

// Settings contains the parameters that differ between the two control planes.
type Settings struct {
	Name        string // for example "local"; part of the names of its directory, logs and context
	PodCIDR     string
	ServiceCIDR string
	ServiceIP   string // first address of ServiceCIDR; pods reach the API server there
	Advertise   string // API server's address in the endpoints of the Service kubernetes
}

// NoIssuers is an authentication configuration without external token issuers.
const NoIssuers = `{"apiVersion":"apiserver.config.k8s.io/v1beta1","kind":"AuthenticationConfiguration","jwt":[]}`

// Context returns the name of the kubeconfig context.
func (s Settings) Context() string { return "sandbox-" + s.Name }

// Plane is a running control plane.
type Plane struct {
	Settings
	Config     *rest.Config // cluster admin's credentials
	Kubeconfig string       // path of the cluster admin's kubeconfig
	FrontProxy []byte       // PEM of the CA that signs the API server's client certificate for aggregated API servers
	// Authentication is the path of the API server's authentication configuration. It contains no external token issuers
	// until a scenario adds one. The API server reloads the file automatically.
	Authentication string
	// Network routes requests from the API server to pods.
	Network *podnet.Network

	sandbox string // the sandbox's directory
	secrets secrets
	port    int
	etcd    *envtest.Etcd
	store   *clientv3.Client // of etcd, once Revisions has been called
	api     *envtest.APIServer
	running []*process // components other than etcd and the API server
	// stopNamespaces stops the namespace controller, which runs in this process.
	stopNamespaces func()
	died           chan<- error
	life           context.Context // the sandbox's context: programs are not restarted after it is done
	stopped        bool
}

// Start starts a control plane and waits until its API server is ready. The directories Binaries(sandbox) and
// Logs(sandbox) must exist. Components that exit are restarted until life is done. If a restart fails, the error is
// sent to died.
func Start(ctx, life context.Context, sandbox string, settings Settings, died chan<- error) (*Plane, error) {
	p := &Plane{Settings: settings, sandbox: sandbox, died: died, life: life}
	if err := os.Mkdir(p.folder(), 0o700); err != nil {
		return nil, err
	}
	if err := p.secrets.make(p); err != nil {
		return nil, fmt.Errorf("create the certificates of %s: %w", p.Name, err)
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

// startNetwork creates the API server's route to pods. The length of socket paths is limited, so the socket has a short
// name directly in the sandbox's directory.
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

// Stopped reports whether StopAPIServer has stopped the API server.
func (p *Plane) Stopped() bool { return p.stopped }

func (p *Plane) folder() string            { return filepath.Join(p.sandbox, p.Name) }
func (p *Plane) file(name string) string   { return filepath.Join(p.folder(), name) }
func (p *Plane) binary(name string) string { return filepath.Join(Binaries(p.sandbox), name) }

// Binaries returns the directory for control plane programs in the sandbox's directory.
func Binaries(sandbox string) string { return filepath.Join(sandbox, "bin") }

// Logs returns the directory for log files in the sandbox's directory.
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
