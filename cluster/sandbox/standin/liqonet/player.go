package liqonet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

// Namespace of Liqo and field manager of its controllers.
const (
	liqoNamespace = "liqo"
	manager       = "liqo-controller-manager"
)

// Labels of a peering's objects. remoteID is the ID of the other cluster. The value of gatewayL is "true".
const (
	remoteID = "liqo.io/remote-cluster-id"
	gatewayL = "networking.liqo.io/gateway-resource"
)

type resource = schema.GroupVersionResource

var (
	deployments    = resource{Group: "apps", Version: "v1", Resource: "deployments"}
	services       = resource{Version: "v1", Resource: "services"}
	pods           = resource{Version: "v1", Resource: "pods"}
	networks       = resource{Group: "ipam.liqo.io", Version: "v1alpha1", Resource: "networks"}
	configurations = network1("configurations")
	gatewayServers = network1("gatewayservers")
	gatewayClients = network1("gatewayclients")
	publicKeys     = network1("publickeies")
	connections    = network1("connections")
)

func network1(plural string) resource {
	return resource{Group: "networking.liqo.io", Version: "v1beta1", Resource: plural}
}

// Options configures Start.
type Options struct {
	Config *rest.Config // the cluster admin's credentials
	// If NoAddress is true, load balancers never get an address.
	NoAddress bool
}

// Player is the fake of Liqo's networking in one cluster.
type Player struct {
	options Options
	client  kubernetes.Interface
	dynamic dynamic.Interface
	seen    *standin.Seen
	end     func()

	mu       sync.Mutex
	gateways map[types.UID]*gateway // by UID of the gateway's pod
	owners   map[types.UID]bool     // UIDs of the Configurations and gateway resources in the previous pass
	made     map[types.UID]string   // result of end.state by UID of the gateway resource
	said     map[string]string      // reason and message of the last event by UID of the object
	log      journal                // log of the controller manager
}

// Start runs Liqo's networking until Close is called or ctx is done.
func Start(ctx context.Context, options Options) (*Player, error) {
	client, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(options.Config)
	if err != nil {
		return nil, err
	}
	p := &Player{
		options: options, client: client, dynamic: untyped, seen: standin.See(ctx, untyped),
		gateways: map[types.UID]*gateway{}, made: map[types.UID]string{}, said: map[string]string{},
	}
	p.end = standin.Loop(ctx, p.look)
	return p, nil
}

// Close stops Liqo's networking and closes the gateways' sockets. Its objects remain.
func (p *Player) Close() {
	p.end()
	p.seen.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, g := range p.gateways {
		g.close()
		delete(p.gateways, id)
	}
}

// look reconciles all objects once.
func (p *Player) look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	site, err := p.site(ctx)
	if err != nil {
		return err
	}
	all, err := p.read(ctx)
	if err != nil {
		return err
	}
	var faults []error
	if site.networking {
		faults = append(faults, p.sweep(ctx, all), p.configurations(ctx, site, all), p.ends(ctx, site, &all))
	}
	if site.networking && site.ipam {
		faults = append(faults, p.addresses(ctx, all.networks))
	}
	return errors.Join(append(faults, p.pods(ctx, all))...)
}

// site describes how Liqo is installed.
type site struct {
	networking bool   // the network controllers run
	ipam       bool   // the IPAM runs
	version    string // for example "v1.2.0"
}

// conditions reports whether this version of Liqo writes conditions. Older versions set a label instead.
func (s site) conditions() bool { return !older(s.version, 1, 2) }

func (p *Player) site(ctx context.Context) (site, error) {
	var s site
	all, err := standin.Listed[appsv1.Deployment](ctx, p.seen, deployments, liqoNamespace, "")
	if err != nil {
		return s, err
	}
	for _, d := range all {
		switch runs := d.Status.AvailableReplicas > 0; d.Name {
		case "liqo-controller-manager":
			s.networking = runs && slices.Contains(arguments(&d), "--networking-enabled=true")
			s.version = version(&d)
		case "liqo-ipam":
			s.ipam = runs
		}
	}
	return s, nil
}

func arguments(d *appsv1.Deployment) []string {
	var all []string
	for _, c := range d.Spec.Template.Spec.Containers {
		all = append(all, c.Args...)
	}
	return all
}

// version returns the image tag of the Deployment's first container.
func version(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		_, tag, _ := strings.Cut(c.Image, ":")
		return tag
	}
	return ""
}
