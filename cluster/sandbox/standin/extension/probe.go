package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"carrick/cluster/sandbox/standin"
)

const probeWithin = time.Second

// probe reports whether the pod is ready. A pod without a readiness probe is ready when its program runs.
func (i *instance) probe(ctx context.Context, c *corev1.Container) bool {
	ok := c.ReadinessProbe == nil || i.asked(ctx, c, c.ReadinessProbe)
	i.mu.Lock()
	defer i.mu.Unlock()
	if ok {
		i.misses, i.ready = 0, i.cmd != nil
		return i.ready
	}
	if i.misses++; i.misses >= manyMisses {
		i.ready = false
	}
	return i.ready
}

// asked reports whether a probe succeeds. It follows a kubelet's rules.
func (i *instance) asked(ctx context.Context, c *corev1.Container, probe *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	switch {
	case probe.TCPSocket != nil:
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", i.ports[number(c, probe.TCPSocket.Port)])
		return err == nil && conn.Close() == nil
	case probe.HTTPGet != nil:
		get := probe.HTTPGet
		at := i.ports[number(c, get.Port)]
		if at == "" {
			return false
		}
		scheme := strings.ToLower(string(get.Scheme))
		if scheme == "" {
			scheme = "http"
		}
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+at+get.Path, nil)
		if err != nil {
			return false
		}
		//nolint:gosec // as a kubelet
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		said, err := transport.RoundTrip(ask)
		if err != nil {
			return false
		}
		_ = said.Body.Close()
		return said.StatusCode >= 200 && said.StatusCode < 400
	}
	return false
}

// number resolves a container port, which can be a name or a number.
func number(c *corev1.Container, port intstr.IntOrString) int {
	if port.Type == intstr.Int {
		return port.IntValue()
	}
	for _, own := range c.Ports {
		if own.Name == port.StrVal {
			return int(own.ContainerPort)
		}
	}
	return 0
}

// dead matches images that no longer exist in their registry.
var dead = regexp.MustCompile(`redhat-sso-7/sso71-openshift|/?vsphere-extensions-jvm`)

// imageOf returns the first image in the pod that cannot be pulled, or "".
func imageOf(pod *corev1.Pod) string {
	for _, c := range append(append([]corev1.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...) {
		if dead.MatchString(c.Image) {
			return c.Image
		}
	}
	return ""
}

// unpulled sets the pod's status to ImagePullBackOff.
func (p *Player) unpulled(ctx context.Context, pod *corev1.Pod) error {
	name := imageOf(pod)
	back := corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{
			Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", name),
		},
	}
	r := standin.Creating()
	r.State = back
	for _, c := range pod.Spec.InitContainers {
		r.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
		state := r.State
		if dead.MatchString(c.Image) {
			state = back
		}
		r.Init = append(r.Init, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state})
	}
	return errors.Join(r.Tell(ctx, p.client, pod), p.events.Say(ctx, p.client, standin.Event{
		Of: podRef(pod), Component: "kubelet", Host: pod.Spec.NodeName, Type: corev1.EventTypeWarning, Reason: "Failed",
		Message: fmt.Sprintf("Failed to pull image %q: not found (stand-in: the sandbox does not have this image)", name),
	}))
}
