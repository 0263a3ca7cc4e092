// Package endpoint plays what stands at an address by which a cluster is reached
// from outside: the load balancer, node ports and host ports, and behind them
//
//   - a proxy: a pod that mounts an nginx.conf. That text is run by this machine's
//     own nginx. Replaced in it are the paths of the container's mounts, the ports
//     to listen on (loopback, and free) and the address of the API server, which the
//     cluster's DNS would know; and what the image's nginx has compiled in is put
//     into it where it is missing (log and temporary files).
//     The files are those that the pod mounts, as they were when it started: a new
//     certificate reaches a running nginx no more than elsewhere. Where there is no
//     nginx, a small forwarder takes its place that calls itself "stand-in" in the
//     header Server, has the pod's certificate and the four paths, and reads nothing
//     else of the text;
//   - ingress-nginx's controller, for which no certificate fits: it serves the
//     certificate that it makes for itself, and nothing is behind it.
//
// A program that ends is a pod in CrashLoopBackOff, and what it said is its log.
// All ports are on 127.0.0.1, which is the load balancer's address, too. Sources
// that a Service or a policy allows are not enforced.
package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// confKey is the file that makes a pod one that is played here.
const confKey = "nginx.conf"

// Options are what Start needs.
type Options struct {
	Config *rest.Config // the cluster's admin
	Dir    string       // for the files of pods; made, and removed with Close
	Nginx  string       // the program; "": there is none
}

// Player plays for one cluster.
type Player struct {
	options Options
	client  kubernetes.Interface
	end     func()
	life    context.Context

	mu        sync.Mutex
	ticks     int
	closed    bool // nothing listens outside
	noAddress bool // load balancers get none
	pods      map[types.UID]*instance
	ports     map[string]*published // by the address outside
	taken     map[string]error      // addresses that somebody else has
}

// Start plays until Close, or until ctx ends.
func Start(ctx context.Context, o Options) (*Player, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return nil, err
	}
	p := &Player{
		options: o, client: client, life: ctx, pods: map[types.UID]*instance{}, ports: map[string]*published{}, taken: map[string]error{},
	}
	p.end = standin.Loop(ctx, p.tick)
	return p, nil
}

// Close ends it with all that listens, and removes its files.
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
}

// Shut makes nothing listen outside any more, as a firewall would that refuses.
func (p *Player) Shut(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Look(ctx)
}

// NoAddress gives load balancers none from now on.
func (p *Player) NoAddress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noAddress = true
}

func (p *Player) tick(ctx context.Context) error {
	if p.ticks++; p.ticks%2 == 0 {
		return nil
	}
	return p.Look(ctx)
}

// Look does once what is to be done.
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
	outside := map[string]string{} // the ports that lead to something now
	for i := range deployments.Items {
		d := &deployments.Items[i]
		begin := p.plays(d)
		if begin == nil {
			continue
		}
		pods, err := p.client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set(d.Spec.Selector.MatchLabels).String()})
		if err != nil {
			return err
		}
		// The newest pod that works is where ports lead.
		slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
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

// plays returns how a Deployment's pods are played; nil: not here.
func (p *Player) plays(d *appsv1.Deployment) func(context.Context, *corev1.Pod, *instance) error {
	for _, c := range d.Spec.Template.Spec.Containers {
		if strings.Contains(c.Image, "ingress-nginx/controller") {
			return controller
		}
		if strings.Contains(c.Image, "nginx") && len(c.VolumeMounts) > 0 {
			return p.proxy
		}
	}
	return nil
}

// controller is an ingress controller.
func controller(_ context.Context, pod *corev1.Pod, i *instance) error {
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "https" {
				return i.ingress(int(port.ContainerPort))
			}
		}
	}
	return errors.New("stand-in: no port https")
}

// errWaits means that a pod can't start yet, for what it mounts is not there.
var errWaits = errors.New("waits for what it mounts")

// runs returns what runs in a pod; nil: nothing does.
func (p *Player) runs(ctx context.Context, pod *corev1.Pod, begin func(context.Context, *corev1.Pod, *instance) error) (*instance, error) {
	if i := p.pods[pod.UID]; i != nil {
		if fault := i.failed(); fault != nil {
			return nil, p.waiting(ctx, pod, "CrashLoopBackOff", "back-off 10s restarting failed container: "+fault.Error())
		}
		return i, nil
	}
	i := &instance{dir: filepath.Join(p.options.Dir, string(pod.UID)), ports: map[int]string{}, stop: func() {}, ended: make(chan struct{})}
	if err := os.MkdirAll(filepath.Join(i.dir, "root"), 0o700); err != nil {
		return nil, err
	}
	err := begin(p.life, pod, i)
	if errors.Is(err, errWaits) {
		_ = os.RemoveAll(i.dir)
		return nil, p.waiting(ctx, pod, "ContainerCreating", err.Error())
	}
	p.pods[pod.UID] = i
	if err == nil {
		err = i.up(ctx)
	}
	if err != nil {
		_, _ = i.Write([]byte("stand-in: " + err.Error() + "\n"))
		i.stop()
		i.over(err)
		return nil, p.waiting(ctx, pod, "CrashLoopBackOff", "back-off 10s restarting failed container: "+err.Error())
	}
	return i, p.waiting(ctx, pod, "", "")
}

// waiting says in a pod's status that its containers wait, or that they run.
func (p *Player) waiting(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	now, ready, changed := pod.DeepCopy(), corev1.ConditionTrue, false
	for i := range now.Status.ContainerStatuses {
		s := &now.Status.ContainerStatuses[i]
		was := ""
		if s.State.Waiting != nil {
			was = s.State.Waiting.Reason
		}
		changed = changed || was != reason
		if reason == "" {
			s.State, s.Ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, true
			continue
		}
		ready = corev1.ConditionFalse
		s.Ready, s.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		if reason == "CrashLoopBackOff" {
			s.RestartCount++
		}
	}
	if !changed {
		return nil
	}
	for i := range now.Status.Conditions {
		if c := &now.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.LastTransitionTime = ready, metav1.Now()
		}
	}
	_, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: manager})
	return err
}

// lead adds the ports of this machine that lead to a pod.
func (p *Player) lead(outside map[string]string, pod *corev1.Pod, i *instance, services []corev1.Service) {
	add := func(port int32, to string) {
		if port > 0 && to != "" {
			outside[net.JoinHostPort(loopback, strconv.Itoa(int(port)))] = to
		}
	}
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			host := port.HostPort
			if host == 0 && pod.Spec.HostNetwork {
				host = port.ContainerPort
			}
			add(host, i.ports[int(port.ContainerPort)])
		}
	}
	for _, s := range services {
		if s.Namespace != pod.Namespace || len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			continue
		}
		for _, port := range s.Spec.Ports {
			to := i.ports[target(pod, port)]
			switch s.Spec.Type {
			case corev1.ServiceTypeLoadBalancer:
				if len(s.Status.LoadBalancer.Ingress) > 0 {
					add(port.Port, to)
				}
			case corev1.ServiceTypeNodePort:
				add(port.NodePort, to)
			}
		}
	}
}

// target is the container's port to which a Service's leads.
func target(pod *corev1.Pod, port corev1.ServicePort) int {
	if port.TargetPort.StrVal == "" {
		if n := port.TargetPort.IntValue(); n > 0 {
			return n
		}
		return int(port.Port)
	}
	for _, c := range pod.Spec.Containers {
		for _, own := range c.Ports {
			if own.Name == port.TargetPort.StrVal {
				return int(own.ContainerPort)
			}
		}
	}
	return 0
}

// publish makes this machine listen where something is behind it, and nowhere
// else.
func (p *Player) publish(outside map[string]string) {
	if p.closed {
		clear(outside)
	}
	for address, at := range p.ports {
		if outside[address] == "" {
			at.close()
			delete(p.ports, address)
		}
	}
	clear(p.taken)
	for address, to := range outside {
		at := p.ports[address]
		if at == nil {
			var err error
			if at, err = publish(p.life, address); err != nil {
				p.taken[address] = err
				continue
			}
			p.ports[address] = at
		}
		at.lead(to)
	}
}

// balance plays the provider of load balancers.
func (p *Player) balance(ctx context.Context, s *corev1.Service) error {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || p.noAddress || len(s.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	mode := corev1.LoadBalancerIPModeVIP
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: loopback, IPMode: &mode}}
	_, err := p.client.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{FieldManager: "cloud-provider"})
	return err
}

// Log is what runs in a pod has said.
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
		said += fmt.Sprintf("stand-in: another program has %s: %v\n", address, err)
	}
	return said, true
}

// Open tells at which addresses something listens now.
func (p *Player) Open() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for address := range p.ports {
		all = append(all, address)
	}
	return all
}

// proxy runs a pod's nginx.
func (p *Player) proxy(ctx context.Context, pod *corev1.Pod, i *instance) error {
	mounts, conf, blocks, err := p.mount(ctx, pod, i.dir)
	if err != nil {
		return err
	}
	upstream := strings.TrimPrefix(p.options.Config.Host, "https://")
	if p.options.Nginx == "" {
		return i.instead(pod, mounts, upstream, p.options.Config.CAData)
	}
	m := &machine{mounts: mounts, dir: i.dir, upstream: upstream, listen: i.port}
	text, err := m.adapt(conf)
	if err != nil {
		return err
	}
	for _, name := range blocks {
		if err := m.adaptFile(m.path(name)); err != nil {
			return err
		}
	}
	return i.nginx(p.options.Nginx, text)
}

// instead takes nginx's place.
func (i *instance) instead(pod *corev1.Pod, mounts map[string]string, upstream string, authority []byte) error {
	var port int
	for _, c := range pod.Spec.Containers {
		for _, own := range c.Ports {
			port = int(own.ContainerPort)
		}
	}
	for _, at := range mounts {
		certificate, err := tls.LoadX509KeyPair(filepath.Join(at, corev1.TLSCertKey), filepath.Join(at, corev1.TLSPrivateKeyKey))
		if err == nil {
			return i.forwarder(port, certificate, upstream, authority)
		}
	}
	return errors.New("stand-in: the pod mounts no certificate")
}
