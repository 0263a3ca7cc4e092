package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster/sandbox/standin/podfiles"
)

// plays returns the function that runs the Deployment's pods, or nil if this package does not run them.
func (p *Player) plays(d *appsv1.Deployment) func(context.Context, *corev1.Pod, *instance) error {
	for _, c := range d.Spec.Template.Spec.Containers {
		if strings.Contains(c.Image, "ingress-nginx/controller") {
			return p.controller
		}
		if strings.Contains(c.Image, "nginx") && len(c.VolumeMounts) > 0 {
			return p.proxy
		}
	}
	return nil
}

// defaultCertificate is the flag of ingress-nginx for the default certificate. Its value is NAMESPACE/NAME of a Secret.
const defaultCertificate = "--default-ssl-certificate="

// controller runs an ingress controller. It reads the Secret of the default certificate at each handshake.
func (p *Player) controller(_ context.Context, pod *corev1.Pod, i *instance) error {
	for _, c := range pod.Spec.Containers {
		var named func() (tls.Certificate, error)
		for _, arg := range c.Args {
			if ref, ok := strings.CutPrefix(arg, defaultCertificate); ok {
				named = func() (tls.Certificate, error) { return p.certificate(ref) }
			}
		}
		for _, port := range c.Ports {
			if port.Name == "https" {
				return i.ingress(int(port.ContainerPort), named)
			}
		}
	}
	return errors.New("stand-in: no port https")
}

// certificate reads the Secret ref (NAMESPACE/NAME).
func (p *Player) certificate(ref string) (tls.Certificate, error) {
	namespace, name, _ := strings.Cut(ref, "/")
	held, err := p.client.CoreV1().Secrets(namespace).Get(p.life, name, metav1.GetOptions{})
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(held.Data[corev1.TLSCertKey], held.Data[corev1.TLSPrivateKeyKey])
}

// runs returns the pod's program, and starts the program if it is not running. It returns nil if the program cannot
// run.
func (p *Player) runs(
	ctx context.Context, pod *corev1.Pod, begin func(context.Context, *corev1.Pod, *instance) error,
) (*instance, error) {
	if i := p.pods[pod.UID]; i != nil {
		if fault := i.failed(); fault != nil {
			return nil, p.waiting(ctx, pod, "CrashLoopBackOff", "back-off 10s restarting failed container: "+fault.Error())
		}
		return i, p.refresh(ctx, pod, i.dir)
	}
	i := &instance{
		dir: filepath.Join(p.options.Dir, string(pod.UID)), at: p.options.Place.Address, ports: map[int]string{},
		stop: func() {}, ended: make(chan struct{}),
	}
	if err := os.MkdirAll(filepath.Join(i.dir, "root"), 0o700); err != nil {
		return nil, err
	}
	err := begin(p.life, pod, i)
	if errors.Is(err, podfiles.ErrWaits) {
		_ = os.RemoveAll(i.dir)
		return nil, p.waiting(ctx, pod, creating, err.Error())
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

// creating is the only reason to wait for which a kubelet has started no container yet.
const creating = "ContainerCreating"

// waiting sets the state of the pod's containers to waiting. If reason is empty, it sets the state to running.
func (p *Player) waiting(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	now, ready, changed := pod.DeepCopy(), corev1.ConditionTrue, false
	for i := range now.Status.ContainerStatuses {
		s := &now.Status.ContainerStatuses[i]
		var was, why string
		if s.State.Waiting != nil {
			was, why = s.State.Waiting.Reason, s.State.Waiting.Message
		}
		changed = changed || was != reason || why != message
		if reason == "" {
			s.State, s.Ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}, true
			continue
		}
		ready = corev1.ConditionFalse
		s.Ready, s.State = false, corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}
		if reason == "CrashLoopBackOff" {
			s.RestartCount++
		}
	}
	if !changed {
		return nil
	}
	started := corev1.ConditionFalse
	if reason != creating {
		started, now.Status.Phase = corev1.ConditionTrue, corev1.PodRunning
	}
	conditions := map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodReadyToStartContainers: started, corev1.PodInitialized: started,
		corev1.ContainersReady: ready, corev1.PodReady: ready,
	}
	for i := range now.Status.Conditions {
		c := &now.Status.Conditions[i]
		if is, ok := conditions[c.Type]; ok && c.Status != is {
			c.Status, c.LastTransitionTime = is, metav1.Now()
		}
	}
	_, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: manager})
	return err
}

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

// instead runs the forwarder on machines without nginx.
func (i *instance) instead(pod *corev1.Pod, mounts map[string]string, upstream string, authority []byte) error {
	var port int
	for _, c := range pod.Spec.Containers {
		for _, own := range c.Ports {
			port = int(own.ContainerPort)
		}
	}
	for _, at := range mounts {
		certificate, err := tls.LoadX509KeyPair(
			filepath.Join(at, corev1.TLSCertKey), filepath.Join(at, corev1.TLSPrivateKeyKey),
		)
		if err == nil {
			return i.forwarder(port, certificate, upstream, authority)
		}
	}
	return errors.New("stand-in: the pod mounts no certificate")
}
