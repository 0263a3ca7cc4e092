package virtualkubelet

import (
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.yaml.in/yaml/v2"
)

// config contains the fields of InterLinkConfig.yaml that this fake reads (interlink-hq/interLink f6321757,
// pkg/virtualkubelet/config.go).
type config struct {
	Addr           string `yaml:"KubernetesApiAddr"`
	Port           string `yaml:"KubernetesApiPort"`
	CA             string `yaml:"KubernetesApiCaCrt"`
	NoProjected    bool   `yaml:"DisableProjectedVolumes"`
	VerboseLogging bool   `yaml:"VerboseLogging"`
	ErrorsOnly     bool   `yaml:"ErrorsOnlyLogging"`
	// Settings for the virtual kubelet's serving certificate.
	NoRequest bool   `yaml:"DisableCSR"`
	Signer    string `yaml:"KubeletCSRSignerName"`
	CertFile  string `yaml:"KubeletCertFile"`
	KeyFile   string `yaml:"KubeletKeyFile"`
}

// parse parses a configuration with yaml.v2 in non-strict mode, as upstream does. Upstream exits with the same error.
func parse(text string) (config, error) {
	var c config
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return config{}, err
	}
	return c, nil
}

// environment returns the environment variables that upstream adds to a job's containers. There are none if the address
// or the port is missing.
func (c config) environment() []corev1.EnvVar {
	if c.Addr == "" || c.Port == "" {
		return nil
	}
	url := "tcp://" + c.Addr + ":" + c.Port
	return []corev1.EnvVar{
		{Name: "KUBERNETES_PORT", Value: url},
		{Name: "KUBERNETES_SERVICE_PORT", Value: c.Port},
		{Name: "KUBERNETES_PORT_443_TCP_ADDR", Value: c.Addr},
		{Name: "KUBERNETES_PORT_443_TCP_PORT", Value: c.Port},
		{Name: "KUBERNETES_PORT_443_TCP_PROTO", Value: "tcp"},
		{Name: "KUBERNETES_PORT_443_TCP", Value: url},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: c.Port},
		{Name: "KUBERNETES_SERVICE_HOST", Value: c.Addr},
	}
}

// server returns the API server URL in a client's environment variables, or "".
func server(environment []corev1.EnvVar) string {
	var host, port string
	for _, e := range environment {
		switch e.Name {
		case "KUBERNETES_SERVICE_HOST":
			host = e.Value
		case "KUBERNETES_SERVICE_PORT":
			port = e.Value
		}
	}
	if host == "" || port == "" {
		return ""
	}
	return "https://" + net.JoinHostPort(host, port)
}

// newNode returns the virtual Node with upstream's labels and taint (pkg/virtualkubelet/virtualkubelet.go).
func newNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "virtual-kubelet", "kubernetes.io/role": "agent",
				"virtual-node.interlink/type":                             "virtual-kubelet",
				"alpha.service-controller.kubernetes.io/exclude-balancer": "true",
				corev1.LabelNodeExcludeBalancers:                          "true",
			},
			Annotations: map[string]string{
				"carrick/stand-in": "created by the sandbox instead of a virtual kubelet: it runs no jobs",
			},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "external:///" + name,
			Taints: []corev1.Taint{
				{Key: "virtual-node.interlink/no-schedule", Value: "true", Effect: corev1.TaintEffectNoSchedule},
			},
		},
	}
}

// nodeConditions returns a Node's conditions, starting with Ready. pinged is false until the first successful ping. As
// in upstream, the reason and message of Ready do not depend on pinged.
func nodeConditions(pinged bool) []corev1.NodeCondition {
	now := metav1.Now()
	condition := func(
		kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string,
	) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	ready, noNetwork := corev1.ConditionTrue, corev1.ConditionFalse
	if !pinged {
		ready, noNetwork = corev1.ConditionFalse, corev1.ConditionTrue
	}
	all := []corev1.NodeCondition{
		condition(corev1.NodeReady, ready, "KubeletPending", "kubelet is pending."),
		condition("OutOfDisk", corev1.ConditionFalse, "KubeletHasSufficientDisk", ""),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", ""),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", ""),
		condition(corev1.NodeNetworkUnavailable, noNetwork, "RouteCreated", ""),
	}
	if !pinged {
		return all
	}
	return append(all,
		condition("InterlinkConnectivity", corev1.ConditionTrue, "InterlinkPingSuccessful", "stand-in: no ping was sent"))
}

func nodeStatus(port int32) corev1.NodeStatus {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("1600Gi"),
		corev1.ResourcePods: resource.MustParse("100"),
	}
	return corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		NodeInfo: corev1.NodeSystemInfo{
			Architecture: "virtual-kubelet", OperatingSystem: "linux", KubeletVersion: "0.6.1",
			ContainerRuntimeVersion: "stand-in://0", KernelVersion: "6.12.0", OSImage: "stand-in",
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
	}
}

// fault formats an error like upstream's log.
func fault(what string, err error) string { return fmt.Sprintf("%s: %v", what, err) }
