// Package virtualkubelet fakes interLink's virtual kubelet, together with the remote plugin and its jobs. It covers
// only how a job uses its ServiceAccount. It runs while a Deployment with a container vk has a running pod, and has the
// permissions of that pod's ServiceAccount.
//
// Sources, in interlink-hq/interLink f6321757. The Node reports version 0.6.1, in which a projected ConfigMap without
// items is empty:
//
//   - pkg/virtualkubelet/virtualkubelet.go: the configuration is read once, when the container starts, with yaml.v2 in
//     non-strict mode, and an error ends the process (LoadConfig); labels, taint, addresses and conditions of the Node
//     (NewProviderConfig, NodeConditionWithInterlink); a pod that cannot be submitted fails with the reason
//     ProviderFailed (handleRemoteExecutionFailure).
//   - pkg/virtualkubelet/execute.go: environment (addKubernetesServicesEnvVars), token for a hundred years bound to the
//     pod, an empty file if the API server refuses the token, ca.crt and namespace
//     (remoteExecutionHandleProjectedSource), reasons of ended containers (handleContainersUpdate, checkPodsStatus).
//   - cmd/virtual-kubelet/main.go: the log level, for which VerboseLogging overrides ErrorsOnlyLogging, and the serving
//     certificate (serving.go). No exec is served: createHTTPServer and main attach only logs.
//   - superfly/virtual-kubelet 339b787d, which replaces virtual-kubelet/virtual-kubelet in upstream's go.mod:
//     internal/podutils/env.go would add the Service kubernetes to the environment, but nothing starts the informer of
//     Services that main.go passes to it. A job therefore gets no API server address unless the configuration contains
//     one.
//
// The plugin's configuration determines whether the files are mounted (package edge). If a pod's command is kubectl,
// its requests are real. The sandbox runs its own kubectl with KUBERNETES_SERVICE_HOST and _PORT and the job's CA and
// token. The output of kubectl is the pod's log. Other commands are not run.
//
// Known differences: upstream's Node is NotReady for 30 seconds after each start, until the first ping of interLink's
// API server, and while pings fail. This Node is Ready immediately unless Pend was called, and pings never fail. Its
// capacity is fixed. NodeLabels, NodeTaints and Resources are not read, so an invalid quantity in them is not fatal.
// Of downward API volumes only metadata.namespace is resolved, and only volumes that are mounted where clients read a
// ServiceAccount are read. A pod skips the Pending phase and has no IP. If NODENAME is missing, upstream panics. This
// fake uses the name of the Deployment without the suffix -node. Init containers are not run.
//
// Guesses without a source: apptainer's message for an image that cannot be pulled (execute), and kubectl's message
// without a configuration (refused).
package virtualkubelet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/standin/kubelet"
)

const (
	container = "vk"                   // container name in the Deployment
	configKey = "InterLinkConfig.yaml" // data key in the ConfigMap
	manager   = "virtual-kubelet"
)

// Plugin is the remote plugin that runs jobs.
type Plugin interface {
	// Exports reports whether the plugin mounts a job's files.
	Exports() (bool, error)
	Say(level, format string, args ...any)
}

// Options configures Start.
type Options struct {
	Config  *rest.Config // the cluster admin's credentials
	Plugin  Plugin
	Dir     string      // for files of jobs; Start creates it and Close removes it
	Kubectl string      // path of kubectl
	TLS     *tls.Config // for its log server; includes the client CA
}

// Player is the fake virtual kubelet of one cluster.
type Player struct {
	options Options
	client  kubernetes.Interface
	end     func()
	life    context.Context
	server  *kubelet.Server
	cert    atomic.Pointer[tls.Certificate] // serving certificate, or nil
	all     sync.WaitGroup                  // jobs
	pending atomic.Int64                    // see Pend

	mu   sync.Mutex
	runs map[types.UID]*run // by UID of the Deployment's pod
	jobs map[types.UID]*job
}

// run is a virtual kubelet that has started. It has a configuration, or the error that it exited with.
type run struct {
	config  config
	began   time.Time
	text    string // content of the configuration file
	fault   error
	account string // user name of its ServiceAccount
	space   string // namespace of its ServiceAccount
	serving serving

	log strings.Builder
}

// Start runs the virtual kubelet until Close is called or ctx is done.
func Start(ctx context.Context, o Options) (*Player, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	p := &Player{options: o, client: client, life: ctx, runs: map[types.UID]*run{}, jobs: map[types.UID]*job{}}
	if err := makeDir(o.Dir); err != nil {
		return nil, err
	}
	if p.server, err = kubelet.Start(p.identity(o.TLS)); err != nil {
		return nil, err
	}
	p.server.Add(p.Log)
	p.end, err = standin.LoopOnChange(ctx, o.Config, p.Look, signingRequests,
		corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("nodes"),
		corev1.SchemeGroupVersion.WithResource("configmaps"), appsv1.SchemeGroupVersion.WithResource("deployments"))
	return p, err
}

// Close stops the virtual kubelet and its jobs, and removes their files.
func (p *Player) Close() {
	p.end()
	p.mu.Lock()
	for _, j := range p.jobs {
		j.cancel()
	}
	p.mu.Unlock()
	p.all.Wait()
	p.server.Close()
	removeDir(p.options.Dir)
}

// Pend makes the Node NotReady for within after each future start. Upstream's Node is NotReady until the first ping.
func (p *Player) Pend(within time.Duration) { p.pending.Store(int64(within)) }

// Look reconciles the Node and its pods once.
func (p *Player) Look(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	deployments, err := p.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	d, err := p.kubelet(ctx, deployments.Items)
	if d == nil || err != nil {
		return err
	}
	pods, err := p.client.CoreV1().Pods(d.Namespace).List(
		ctx, metav1.ListOptions{LabelSelector: labels.Set(d.Spec.Selector.MatchLabels).String()},
	)
	if err != nil {
		return err
	}
	var faults []error
	var now *run
	for i := range pods.Items {
		r, err := p.started(ctx, &pods.Items[i])
		faults = append(faults, err)
		if r != nil && r.fault == nil {
			now = r
		}
	}
	node := nodeName(d)
	pinged := now != nil && time.Since(now.began) >= time.Duration(p.pending.Load())
	faults = append(faults, p.keepNode(ctx, node, now != nil, pinged))
	var cert *tls.Certificate
	if now != nil {
		faults = append(faults, p.play(ctx, node, now), p.serve(ctx, now, node))
		cert = now.serving.cert
	}
	p.cert.Store(cert)
	return errors.Join(faults...)
}

// kubelet returns the Deployment whose pods can update the Node, or nil. Every user with a namespace could create
// another such Deployment. Its pods have no effect, because the API server forbids them to update the Node's status.
func (p *Player) kubelet(ctx context.Context, all []appsv1.Deployment) (*appsv1.Deployment, error) {
	var found []*appsv1.Deployment
	for i := range all {
		if isKubelet(all[i]) {
			found = append(found, &all[i])
		}
	}
	if len(found) < 2 {
		return append(found, nil)[0], nil
	}
	for _, d := range found {
		asked, err := p.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + d.Namespace + ":" + d.Spec.Template.Spec.ServiceAccountName,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Resource: "nodes", Subresource: "status"},
			},
		}, metav1.CreateOptions{})
		if err != nil || asked.Status.Allowed {
			return d, err
		}
	}
	return nil, nil
}

func isKubelet(d appsv1.Deployment) bool {
	return slices.ContainsFunc(
		d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == container },
	)
}

func nodeName(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			if c.Name == container && e.Name == "NODENAME" {
				return e.Value
			}
		}
	}
	return strings.TrimSuffix(d.Name, "-node")
}

// started returns the virtual kubelet in a pod, or nil if the pod is not running. A virtual kubelet reads its
// configuration at startup and after each restart.
func (p *Player) started(ctx context.Context, pod *corev1.Pod) (*run, error) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return nil, nil
	}
	r := p.runs[pod.UID]
	if r != nil && r.fault == nil {
		return r, nil
	}
	text, err := p.configuration(ctx, pod)
	if err != nil {
		return nil, err
	}
	if r != nil && r.text == text {
		return r, nil
	}
	if r == nil {
		r = &run{}
		p.runs[pod.UID] = r
	}
	r.text, r.space, r.account = text, pod.Namespace, "system:serviceaccount:"+pod.Namespace+":"+
		pod.Spec.ServiceAccountName
	r.config, r.fault = parse(text)
	r.began = time.Now()
	if r.fault != nil {
		r.say("fatal", "%v", r.fault)
	} else {
		r.say("info", "Starting the virtual kubelet (stand-in), configuration %x", sha256.Sum256([]byte(text)))
	}
	return r, p.crash(ctx, pod, r.fault)
}

// as returns a client with the permissions of the virtual kubelet's ServiceAccount.
func (p *Player) as(r *run) (kubernetes.Interface, error) {
	config := rest.CopyConfig(p.options.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: r.account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + r.space, "system:authenticated"},
	}
	return kubernetes.NewForConfig(config)
}

// configuration returns the content of the mounted configuration file.
func (p *Player) configuration(ctx context.Context, pod *corev1.Pod) (string, error) {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		held, err := p.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if text, ok := held.Data[configKey]; ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("pod %s mounts no %s", pod.Name, configKey)
}

// crash updates the pod's status after the container exited with fault. If fault is nil, the container is running.
func (p *Player) crash(ctx context.Context, pod *corev1.Pod, fault error) error {
	now := pod.DeepCopy()
	i := slices.IndexFunc(now.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return fmt.Errorf("pod %s has no status of %s yet", pod.Name, container)
	}
	s, ready := &now.Status.ContainerStatuses[i], corev1.ConditionTrue
	crashed := s.State.Waiting != nil
	switch {
	case fault == nil && !crashed:
		return nil
	case fault == nil:
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		s.Ready = true
	default:
		ready = corev1.ConditionFalse
		s.Ready, s.RestartCount = false, s.RestartCount+1
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff",
			Message: "back-off 10s restarting failed container=" + container + " pod=" + pod.Name + "_" + pod.Namespace + "(" +
				string(pod.UID) + ")",
		}}
		s.LastTerminationState = corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error", Message: fault.Error(), FinishedAt: metav1.Now(),
			},
		}
	}
	for i := range now.Status.Conditions {
		if c := &now.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.LastTransitionTime = ready, metav1.Now()
		}
	}
	_, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: "kubelet"})
	if err != nil {
		delete(p.runs, pod.UID) // retry in the next pass
	}
	return err
}

// say appends a line to the virtual kubelet's log, if the log level permits it.
func (r *run) say(level, format string, args ...any) {
	switch {
	case r.config.VerboseLogging:
	case level == "debug", r.config.ErrorsOnly && level != "error" && level != "fatal":
		return
	}
	fmt.Fprintf(
		&r.log, "time=%q level=%s msg=%q\n", time.Now().UTC().Format(time.RFC3339), level, fmt.Sprintf(format, args...),
	)
}

// Log returns the log of the virtual kubelet or of a job on its node.
func (p *Player) Log(namespace, name, of string) (string, bool) {
	pod, err := p.client.CoreV1().Pods(namespace).Get(p.life, name, metav1.GetOptions{})
	if err != nil {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[pod.UID]; r != nil && of == container {
		return r.log.String(), true
	}
	if j := p.jobs[pod.UID]; j != nil {
		return j.said[of], true
	}
	return "", false
}

// keepNode creates the virtual Node and updates its status. It sends no heartbeats, because the sandbox's controller
// manager waits a year for them. The controller manager also updates nodes, so there can be conflicts.
func (p *Player) keepNode(ctx context.Context, name string, up, pinged bool) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return p.keepNodeOnce(ctx, name, up, pinged) })
}

func (p *Player) keepNodeOnce(ctx context.Context, name string, up, pinged bool) error {
	nodes := p.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if !up {
			return nil
		}
		node, err = nodes.Create(ctx, newNode(name), metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		return err
	}
	conditions := nodeConditions(pinged || !up)
	ready := &conditions[0]
	if !up {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting "+
			"node status."
	}
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i >= 0 && node.Status.Conditions[i].Status == ready.Status && len(node.Status.Allocatable) > 0 {
		return nil
	}
	fresh := nodeStatus(int32(p.server.Port()))
	fresh.Conditions = conditions
	node.Status = fresh
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{FieldManager: manager})
	return err
}
