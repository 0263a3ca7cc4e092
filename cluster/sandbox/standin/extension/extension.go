// Package extension fakes the kubelet of pods that run carrick's own extension for vSphere. For a container whose
// arguments begin with vsphere-extension, it runs the real carrick program of this machine, one process per container.
//
// Sources: kubernetes/kubernetes v1.37.2, and its k8s.io/client-go v0.37.2.
//
//   - A token of the pod's ServiceAccount, valid for 3607 s, and a new token after four fifths of that time:
//     pkg/serviceaccount/claims.go, plugin/pkg/admission/serviceaccount/admission.go,
//     pkg/kubelet/token/token_manager.go.
//   - Secrets and ConfigMaps as files, kept up to date: package podfiles.
//   - The delay of CrashLoopBackOff grows from 10 s to 5 min. It starts at 10 s again after the program has run for 10
//     min: pkg/kubelet/kuberuntime/kuberuntime_manager.go (doBackOff), pkg/kubelet/kubelet.go,
//     util/flowcontrol/backoff.go.
//   - Readiness probes use TCP or HTTP, and status codes from 200 to 399 succeed. A pod becomes unready after three
//     failures: pkg/kubelet/prober/prober.go, pkg/kubelet/prober/worker.go, pkg/probe/http/http.go.
//   - Images that cannot be pulled: pkg/kubelet/images/image_manager.go. They are the images in
//     SoeldnerConsult/vSphere-extensions f16ec62, additional/resources.yaml, which carrick's extension replaces.
//
// carrick listens on its own loopback port, to which the pod's address is forwarded (package podnet). Flags with an
// address or a mount path therefore get values of this machine. The ServiceAccount token is carrick's only credential.
// When the pod is deleted, the program gets SIGTERM and is killed after 8 s. If carrick does not exist on this
// machine, the pod waits, and its status contains the reason.
//
// Known differences: the first restart waits for 10 s. A kubelet restarts immediately the first time, and waits from
// the second restart on. Only one container in a pod runs, and no init containers. Liveness and startup probes do not
// run. A probe's period, threshold, host and headers are ignored: it runs in every loop. exec and gRPC probes never
// succeed. A redirect counts as a success and is not followed. The exit code after any signal is 137. An image that
// cannot be pulled causes only one event, and the container's message contains no cause. subPath is ignored.
package extension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/podnet"
	"carrick/cluster/sandbox/standin"
)

// command is the first argument of every container that this package runs.
const command = "vsphere-extension"

// Options configures Start.
type Options struct {
	Config  *rest.Config    // the cluster admin's credentials
	Network *podnet.Network // the pod network
	Dir     string          // for the files of pods; Start creates it, Close removes it
	Program string          // path of carrick, or "" if it does not exist
}

// Player is the fake kubelet of one cluster.
type Player struct {
	options Options
	client  kubernetes.Interface
	end     func()
	life    context.Context
	ending  sync.WaitGroup // programs of deleted pods

	mu     sync.Mutex
	down   bool // do not restart programs that exit
	pods   map[types.UID]*instance
	events standin.Events
}

// Start runs the kubelet until Close is called or ctx is done.
func Start(ctx context.Context, o Options) (*Player, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Player{options: o, client: client, life: ctx, pods: map[types.UID]*instance{}}
	end, err := standin.LoopOnChange(ctx, o.Config, p.Look, corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("secrets"))
	if err != nil {
		cancel()
		return nil, err
	}
	p.end = func() { cancel(); end() }
	return p, nil
}

// Close stops the kubelet and all programs, and removes their files.
func (p *Player) Close() {
	p.end()
	p.mu.Lock()
	for uid, i := range p.pods {
		i.kill()
		p.forget(uid, i)
	}
	p.mu.Unlock()
	p.ending.Wait()
	_ = os.RemoveAll(p.options.Dir)
}

// Down kills all programs and prevents new ones from starting.
func (p *Player) Down(ctx context.Context) error {
	p.mu.Lock()
	p.down = true
	for _, i := range p.pods {
		i.kill()
	}
	p.mu.Unlock()
	return p.Look(ctx)
}

// Look reconciles every pod once.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pods, err := p.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	var faults []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" || pod.Status.PodIP == "" {
			continue
		}
		switch c := played(pod); {
		case imageOf(pod) != "":
			faults = append(faults, p.unpulled(ctx, pod))
		case c != nil:
			there[pod.UID] = true
			faults = append(faults, p.keep(ctx, pod, c))
		}
	}
	for uid, i := range p.pods {
		if !there[uid] {
			p.forget(uid, i)
		}
	}
	return errors.Join(faults...)
}

// played returns the pod's container that runs carrick's extension, or nil.
func played(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		own := len(c.Command) == 0 || len(c.Command) == 1 && filepath.Base(c.Command[0]) == "carrick"
		if own && len(c.Args) > 0 && c.Args[0] == command {
			return c
		}
	}
	return nil
}

// keep starts the pod's program if necessary, and updates the pod's status.
func (p *Player) keep(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error {
	i := p.pods[pod.UID]
	if i == nil {
		i = &instance{dir: filepath.Join(p.options.Dir, string(pod.UID)), container: c.Name, ports: map[int]string{}}
		i.pod = fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
		if err := os.MkdirAll(i.dir, 0o700); err != nil {
			return err
		}
		p.pods[pod.UID] = i
	}
	if err := i.addressed(p.options.Network, pod.Status.PodIP); err != nil {
		return err
	}
	if err := i.mount(ctx, p.client, pod, c); err != nil {
		return errors.Join(p.unmounted(ctx, pod, err), standin.Creating().Tell(ctx, p.client, pod))
	}
	if i.missing = p.options.Program == ""; i.missing {
		return i.without().Tell(ctx, p.client, pod)
	}
	if err := i.identify(ctx, p.client, p.options.Config, pod, c); err != nil {
		return err
	}
	if !i.running() && !p.down && i.due() {
		if err := p.start(i, pod, c); err != nil {
			return err
		}
	}
	return i.report(ctx, c).Tell(ctx, p.client, pod)
}

// start starts the pod's program and forwards the pod's ports to it.
func (p *Player) start(i *instance, pod *corev1.Pod, c *corev1.Container) error {
	args, err := i.arguments(c)
	if err != nil {
		return err
	}
	if err := i.lead(p.options.Network); err != nil {
		return err
	}
	return i.start(p.options.Program, args, standin.Environment(pod, *c))
}

// forget stops a program as a kubelet does. It sends SIGTERM, and SIGKILL after the grace period.
func (p *Player) forget(uid types.UID, i *instance) {
	delete(p.pods, uid)
	p.ending.Go(func() {
		i.stop(p.life)
		i.release()
		_ = os.RemoveAll(i.dir)
	})
}

// Log returns the output of the pod's program.
func (p *Player) Log(namespace, name, container string) (string, bool) {
	pod, err := p.client.CoreV1().Pods(namespace).Get(p.life, name, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.pods[pod.UID]
	if i == nil || i.container != container {
		return "", false
	}
	return i.log(), true
}
