// Package endpoint fakes the external address of a cluster, with a load balancer, node ports and host ports. It also
// fakes the programs behind them:
//
//   - a proxy: a pod that mounts an nginx.conf. This machine's own nginx runs that configuration, so nginx's behaviour
//     is real. The fake replaces mount paths, listen ports (with free loopback ports) and the API server's name (with
//     its address, because there is no cluster DNS). It adds settings for log and temporary files, because their
//     defaults are compiled into the image's nginx. The mounted files are updated with their Secret and ConfigMap,
//     except those mounted by subPath. nginx is not reloaded, so it keeps using the files that it read at startup. It
//     opens a file again at each handshake only if the file name contains a variable. If this machine has no nginx, a
//     small forwarder replaces it. It sends "stand-in" in the header Server, serves the pod's certificate, forwards
//     /api, /apis, /version and /openapi, and ignores the rest of nginx.conf.
//   - ingress-nginx's controller, with no backends. It serves the Secret that --default-ssl-certificate names, or else
//     the certificate that it creates for itself.
//
// Sources, in kubernetes/ingress-nginx dbb11b92:
//
//   - internal/net/ssl/ssl.go: the fake certificate (getFakeHostSSLCert).
//   - internal/ingress/controller/controller.go: a server without a host gets the default certificate, regardless of
//     the Ingress's spec.tls (createServers, extractTLSSecretName); the default is the Secret of the argument, or the
//     fake one (getDefaultSSLCertificate).
//   - rootfs/etc/nginx/lua/balancer.lua: 503 if a Service has no endpoints. rootfs/etc/nginx/template/nginx.tmpl: 404
//     for all other paths.
//
// In bitnami/charts 003c11f7, bitnami/nginx/templates/deployment.yaml: server blocks are mounted at
// /opt/bitnami/nginx/conf/server_blocks.
//
// A pod whose program exits is in CrashLoopBackOff. The program's output is the pod's log. All external ports are on
// one loopback address that no other sandbox uses. It is the address of the load balancer and of a node.
//
// Known differences: Ingresses are not read, so /api and /apis return 503 even without one, and hosts do not get their
// own certificates. Files change immediately, not within a minute. Source ranges in Services and policies are not
// enforced. ClusterIPs and the HTTP ports of ingress-nginx do not listen.
//
// Guesses, no source read: kubelets and load balancers behave as in Kubernetes' documentation. How bitnami's image
// includes server blocks is derived only from its chart.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/standin"
)

const manager = "kubelet"

// confKey is the name of a mounted file. A pod that mounts it is a proxy.
const confKey = "nginx.conf"

// Options configures Start.
type Options struct {
	Config *rest.Config // the cluster admin's credentials
	Dir    string       // for files of pods; Start creates it and Close removes it
	Nginx  string       // path of nginx, or "" if it is not installed
	Place  *Place       // external address of the cluster
}

// Player is the fake endpoint of one cluster.
type Player struct {
	options Options
	client  kubernetes.Interface
	end     func()
	life    context.Context

	mu        sync.Mutex
	closed    bool // all external ports are closed
	noAddress bool // load balancers get no address
	pods      map[types.UID]*instance
	ports     map[string]*published // by external address
	taken     map[string]error      // addresses that another process uses
}

// Start runs the endpoint until Close is called or ctx is done.
func Start(ctx context.Context, o Options) (*Player, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return nil, err
	}
	p := &Player{
		options: o, client: client, life: ctx, pods: map[types.UID]*instance{}, ports: map[string]*published{},
		taken: map[string]error{},
	}
	if err := p.reached(ctx, true); err != nil {
		return nil, err
	}
	p.end, err = standin.LoopOnChange(ctx, o.Config, p.Look,
		corev1.SchemeGroupVersion.WithResource("services"), corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("secrets"),
		appsv1.SchemeGroupVersion.WithResource("deployments"))
	return p, err
}

// Close stops all listeners and removes all files.
func (p *Player) Close() {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.ports {
		at.close()
	}
	for _, i := range p.pods {
		i.close()
	}
	_ = os.RemoveAll(p.options.Dir)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.life), withinShutdown)
	defer cancel()
	_ = p.reached(ctx, false) // the cluster might already be stopped
}

// Shut closes all external ports, like a firewall that rejects connections.
func (p *Player) Shut(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Look(ctx)
}

// NoAddress makes the fake stop assigning addresses to load balancers.
func (p *Player) NoAddress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noAddress = true
}

// Look reconciles every pod and Service once.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	services, err := p.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	deployments, err := p.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var faults []error
	there := map[types.UID]bool{}
	outside := map[string]string{} // external ports that currently have a target
	for i := range deployments.Items {
		d := &deployments.Items[i]
		begin := p.plays(d)
		if begin == nil {
			continue
		}
		pods, err := p.client.CoreV1().Pods(d.Namespace).List(
			ctx, metav1.ListOptions{LabelSelector: labels.Set(d.Spec.Selector.MatchLabels).String()},
		)
		if err != nil {
			return err
		}
		// External ports route to the newest working pod.
		slices.SortFunc(
			pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) },
		)
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
				continue
			}
			there[pod.UID] = true
			runs, err := p.runs(ctx, pod, begin)
			faults = append(faults, err)
			if runs != nil {
				p.lead(outside, pod, runs, services.Items)
			}
		}
	}
	for uid, i := range p.pods {
		if !there[uid] {
			i.close()
			delete(p.pods, uid)
		}
	}
	p.publish(outside)
	for i := range services.Items {
		faults = append(faults, p.balance(ctx, &services.Items[i]))
	}
	return errors.Join(faults...)
}

// Log returns the output of the program in a pod.
func (p *Player) Log(namespace, name, _ string) (string, bool) {
	pod, err := p.client.CoreV1().Pods(namespace).Get(p.life, name, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.pods[pod.UID]
	if i == nil {
		return "", false
	}
	said := i.log()
	for address, err := range p.taken {
		said += fmt.Sprintf("stand-in: another process already listens on %s: %v\n", address, err)
	}
	return said, true
}
