package scenario

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/sandbox/world"
)

// Names in the manual set-up (world/scenarios/interlink/faults/by-hand).
const (
	apiNamespace   = "interlink-api"
	apiProxy       = "k8s-api-proxy"
	apiCertificate = "web-ssl-kubernetes-api"
	kubeletSpace   = "interlink"
	kubeletDeploy  = "virtual-node-node"
	kubeletConfig  = "virtual-node-virtual-kubelet-config"
	kubeletKey     = "InterLinkConfig.yaml"
)

// pending is how long the Node stays NotReady after a start with the fault node-pending. Upstream's Node is NotReady
// for 30 seconds.
const pending = 15 * time.Second

// interlinkActs returns descriptions of the faults in joined.acts, by fault.
func interlinkActs() map[string]string {
	return map[string]string{
		"certificate-expired": "The endpoint's certificate expired an hour ago, and cert-manager backs off after a failure.",
		"certificate-renewed": "The endpoint's certificate was renewed, but the proxy still serves the old certificate.",
		"export-off":          "The plugin on the edge mounts nothing: ExportPodData is not true in its configuration.",
		"endpoint-closed":     "A firewall rejects connections to the endpoint.",
		"no-address":          "The cluster has no load balancer implementation, so Services get no address.",
		"node-pending":        "The virtual node is not ready for some seconds after each start of the virtual kubelet.",
		"serving-pending": "The virtual kubelet's certificate request is not approved, so the logs of jobs " +
			"cannot be read.",
	}
}

// interlinkUnder maps faults to the faults that they require. It contains only faults that require another fault.
func interlinkUnder() map[string]string {
	under := map[string]string{}
	for _, fault := range []string{
		"certificate-expired", "certificate-renewed", "upgraded", "export-off", "endpoint-closed", "watches-cut",
		"projected-off", "no-mint", "anonymous-open", "anonymous-closed", "verbose-token",
		"serving-pending",
	} {
		under[fault] = byHand
	}
	return under
}

// acts returns functions for the faults that YAML cannot express.
func (j *joined) acts() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		byHand: j.byHand,
		"certificate-expired": func(ctx context.Context) error {
			if err := j.signer.BackOff(ctx, apiNamespace, apiCertificate); err != nil {
				return err
			}
			return j.restart(ctx, apiNamespace, apiProxy, "expired")
		},
		"certificate-renewed": j.renew,
		"upgraded":            j.upgraded,
		"chart-ca":            j.startAgain,
		"watches-cut":         func(ctx context.Context) error { return j.restart(ctx, apiNamespace, apiProxy, "cut") },
		"export-off":          func(context.Context) error { return j.edge.Set("ExportPodData", "false") },
		"endpoint-closed":     j.gate.Shut,
		"no-address":          func(context.Context) error { j.gate.NoAddress(); return nil },
		"node-pending":        func(context.Context) error { j.kubelet.Pend(pending); return nil },
		"serving-pending": func(ctx context.Context) error {
			j.admin.away.Store(true)
			return j.restart(ctx, kubeletSpace, kubeletDeploy, "serving-pending")
		},
		"verbose-token": func(ctx context.Context) error {
			if err := j.configure(ctx, map[string]string{"VerboseLogging": "true"}); err != nil {
				return err
			}
			return j.logsToken(ctx)
		},
		"projected-off": func(ctx context.Context) error {
			return j.configure(ctx, map[string]string{"DisableProjectedVolumes": "true"})
		},
	}
}

// byHand does what YAML cannot express in the manual set-up. It writes the endpoint's address and CA to the virtual
// kubelet's configuration, because they are not known when the YAML is applied. It also configures the plugin to mount
// the files of jobs.
func (j *joined) byHand(ctx context.Context) error {
	var ca []byte
	err := world.Until(ctx, "the endpoint's certificate", func() (bool, error) {
		held, err := j.client.CoreV1().Secrets(apiNamespace).Get(ctx, apiCertificate, metav1.GetOptions{})
		if err == nil {
			ca = held.Data["ca.crt"]
		}
		return len(ca) > 0, err
	})
	if err != nil {
		return err
	}
	if err := j.edge.Set("ExportPodData", "true"); err != nil {
		return err
	}
	set := map[string]string{
		"KubernetesApiAddr": strconv.Quote(j.place.Address), "KubernetesApiPort": strconv.Quote(strconv.Itoa(j.place.Port)),
		"VerboseLogging":     "false",
		"KubernetesApiCaCrt": "|\n  " + strings.ReplaceAll(strings.TrimSpace(string(ca)), "\n", "\n  "),
	}
	maps.Copy(set, j.wrong)
	return j.configure(ctx, set)
}

// configure sets top-level keys in the virtual kubelet's configuration and restarts the virtual kubelet.
func (j *joined) configure(ctx context.Context, set map[string]string) error {
	texts := j.client.CoreV1().ConfigMaps(kubeletSpace)
	held, err := texts.Get(ctx, kubeletConfig, metav1.GetOptions{})
	if err != nil {
		return err
	}
	was := held.Data[kubeletKey]
	var lines []string
	dropped := false
	for _, line := range strings.Split(strings.TrimRight(was, "\n"), "\n") {
		key, _, _ := strings.Cut(line, ":")
		if inside := strings.HasPrefix(line, " "); !inside {
			_, dropped = set[key]
		}
		if !dropped {
			lines = append(lines, line)
		}
	}
	for _, key := range []string{
		"KubernetesApiAddr", "KubernetesApiPort", "KubernetesApiCaCrt", "DisableProjectedVolumes", "VerboseLogging",
	} {
		if value, ok := set[key]; ok {
			lines = append(lines, key+": "+value)
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if text != was {
		held.Data[kubeletKey] = text
		if _, err := texts.Update(ctx, held, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
			return err
		}
		written := time.Now().Truncate(time.Second) // Kubernetes timestamps have a resolution of one second
		if err := world.Until(
			ctx, "the next second", func() (bool, error) { return time.Since(written) > time.Second, nil },
		); err != nil {
			return err
		}
	}
	return j.restart(ctx, kubeletSpace, kubeletDeploy, fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
}

// renew reissues the endpoint's certificate once. It first waits until the proxy has read the first certificate.
func (j *joined) renew(ctx context.Context) error {
	if j.renewed {
		return nil
	}
	if err := world.Until(ctx, "the proxy to listen", func() (bool, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", j.place.String())
		if err != nil {
			return false, errors.Join(err, j.gate.Look(ctx))
		}
		return true, conn.Close()
	}); err != nil {
		return err
	}
	j.renewed = true
	return j.signer.Renew(ctx, apiNamespace, apiCertificate)
}

// upgraded writes the CA to the virtual kubelet's configuration the way the chart does. This makes the configuration
// invalid.
func (j *joined) upgraded(ctx context.Context) error {
	texts := j.client.CoreV1().ConfigMaps(kubeletSpace)
	held, err := texts.Get(ctx, kubeletConfig, metav1.GetOptions{})
	if err != nil {
		return err
	}
	const first = "-----BEGIN CERTIFICATE-----"
	held.Data[kubeletKey] = strings.Replace(held.Data[kubeletKey], "|\n  "+first, "|\n        "+first, 1)
	if _, err := texts.Update(ctx, held, metav1.UpdateOptions{FieldManager: "helm"}); err != nil {
		return err
	}
	return j.startAgain(ctx)
}

// startAgain deletes the virtual kubelet's pod, so that a new pod reads the invalid configuration. It waits until the
// new virtual kubelet has exited.
func (j *joined) startAgain(ctx context.Context) error {
	deleted := false
	return world.Until(ctx, "the virtual kubelet to exit at startup", func() (bool, error) {
		pods, err := j.client.CoreV1().Pods(kubeletSpace).List(ctx, metav1.ListOptions{LabelSelector: "app=virtual-node"})
		if err != nil {
			return false, err
		}
		crashes := false
		for _, pod := range pods.Items {
			for _, s := range pod.Status.ContainerStatuses {
				crashes = crashes || s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
			}
			if !crashes && !deleted {
				err = j.client.CoreV1().Pods(kubeletSpace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
			}
		}
		deleted = deleted || err == nil
		return crashes, err
	})
}

// restart restarts the pods of a Deployment, but only once per reason. It waits until only new pods exist and all of
// them run.
func (j *joined) restart(ctx context.Context, namespace, name, reason string) error {
	deployments := j.client.AppsV1().Deployments(namespace)
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, reason)
	if _, err := deployments.Patch(
		ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-rollout"},
	); err != nil {
		return err
	}
	return world.Until(ctx, "the restart of "+name, func() (bool, error) {
		d, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == 1 && s.Replicas == 1 &&
			s.AvailableReplicas == 1, errors.New("its pods are not ready yet")
	})
}

// logsToken waits until the virtual kubelet's log contains a token. The virtual kubelet logs the token that it requests
// for a running job.
func (j *joined) logsToken(ctx context.Context) error {
	logged, err := j.tokenLogged(ctx)
	if err != nil || logged {
		return err
	}
	job := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName:    "virtual-node",
		Tolerations: []corev1.Toleration{{Key: "virtual-node.interlink/no-schedule", Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{
			{Name: "work", Image: "docker.io/library/busybox:1.37", Command: []string{"sleep", "86400"}},
		},
	}}
	job.GenerateName = "running-job-"
	if _, err := j.client.CoreV1().Pods(
		metav1.NamespaceDefault,
	).Create(ctx, job, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		return err
	}
	return world.Until(ctx, "a token in the virtual kubelet's log", func() (bool, error) { return j.tokenLogged(ctx) })
}

func (j *joined) tokenLogged(ctx context.Context) (bool, error) {
	pods, err := j.client.CoreV1().Pods(kubeletSpace).List(ctx, metav1.ListOptions{LabelSelector: "app=virtual-node"})
	if err != nil {
		return false, err
	}
	for _, pod := range pods.Items {
		said, _ := j.kubelet.Log(pod.Namespace, pod.Name, "vk")
		if pod.DeletionTimestamp == nil && strings.Contains(said, "could get token") {
			return true, nil
		}
	}
	return false, nil
}
