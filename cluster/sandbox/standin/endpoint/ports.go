package endpoint

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// lead adds the external addresses that route to the pod.
func (p *Player) lead(outside map[string]string, pod *corev1.Pod, i *instance, services []corev1.Service) {
	add := func(port int32, to string) {
		if port > 0 && to != "" {
			outside[net.JoinHostPort(p.options.Place.Address, strconv.Itoa(int(port)))] = to
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
		if s.Namespace != pod.Namespace || len(s.Spec.Selector) == 0 ||
			!labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
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

// target returns the container port for a Service port.
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

// publish opens a listener for each external address with a target. It closes all other listeners.
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

// balance assigns an address to a Service of type LoadBalancer.
func (p *Player) balance(ctx context.Context, s *corev1.Service) error {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || p.noAddress || len(s.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	mode := corev1.LoadBalancerIPModeVIP
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: p.options.Place.Address, IPMode: &mode}}
	_, err := p.client.CoreV1().Services(s.Namespace).UpdateStatus(
		ctx, s, metav1.UpdateOptions{FieldManager: "cloud-provider"},
	)
	return err
}
