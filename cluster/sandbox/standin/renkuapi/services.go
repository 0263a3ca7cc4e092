// The four services of Renku that use remote clusters, and how they load kubeconfigs (k8s/config.py get_clusters,
// k8s/clients.py K8sClusterClientsPool; renku:
// helm-chart/renku/templates/{data-service,secrets-storage}/deployment*.yaml). A process represents a pod. When it
// starts, it loads its clusters from the mounted Secret and the clusters table. It never reloads them.
//
// A pod whose Secret does not exist never starts, although kwok reports the pod as Ready.

package renkuapi

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	dataService  = "renku-data-service"
	dataTasks    = "renku-data-tasks"
	appSelector  = "app in (renku-data-service, renku-k8s-watcher, renku-data-tasks, renku-secrets-storage)"
	configVolume = "remote-cluster-kubeconfigs"
	configRoot   = "/secrets/kube_configs"
	podsEvery    = time.Second      // polling interval
	lookLimit    = 10 * time.Second // timeout for one call of look
)

// process is the service in a running pod.
type process struct {
	pod, app, container string
	since               time.Time
	log                 string
	clusters            map[string]*connection // by cluster ID
}

// services contains the processes in the four Deployments' pods.
type services struct {
	local *connection // local cluster and Renku's namespace in it
	rows  func() []*cluster
	clock
	looking   sync.Mutex // serializes look
	mu        sync.Mutex
	processes map[types.UID]*process
}

// watch polls the pods until ctx is done. It ignores errors, because the next poll retries.
func (s *services) watch(ctx context.Context) {
	for {
		s.refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-s.after(podsEvery):
		}
	}
}

// refresh updates the processes before a request that depends on them. After a rollout, a client therefore sees the
// clusters that the new pods have loaded. refresh takes at most lookLimit. If it fails, it changes nothing.
func (s *services) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_ = s.look(ctx)
}

// look creates a process for each new Ready pod, and removes the processes of deleted pods.
func (s *services) look(ctx context.Context) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	client, err := s.local.client()
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(s.local.namespace).List(ctx, metav1.ListOptions{LabelSelector: appSelector})
	if err != nil {
		return err
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	next := map[types.UID]*process{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if p := s.process(pod.UID); p != nil {
			next[pod.UID] = p
		} else if ready(pod) {
			p, err := s.start(ctx, client, pod)
			if err != nil {
				return err
			}
			if p != nil {
				next[pod.UID] = p
			}
		}
	}
	s.mu.Lock()
	s.processes = next
	s.mu.Unlock()
	return nil
}

func (s *services) process(uid types.UID) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[uid]
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// start returns the process for a pod, or nil if the pod cannot start.
func (s *services) start(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (*process, error) {
	app := pod.Labels["app"]
	p := &process{pod: pod.Name, app: app, since: pod.CreationTimestamp.Time, clusters: map[string]*connection{}}
	if len(pod.Spec.Containers) > 0 {
		p.container = pod.Spec.Containers[0].Name
	}
	log := newJournal(app, s.now)
	volume := configsOf(pod)
	if volume == nil {
		log.warn("Cannot open directory '%s', ignoring kube configs...", configRoot)
		p.log = log.String()
		return p, nil
	}
	secret, err := client.CoreV1().Secrets(pod.Namespace).Get(ctx, volume.SecretName, metav1.GetOptions{})
	optional := volume.Optional != nil && *volume.Optional
	switch {
	case apierrors.IsNotFound(err) && !optional:
		return nil, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	}
	files := map[string][]byte{}
	if err == nil {
		files = secret.Data
	}
	for _, row := range s.rows() {
		if c := load(log, app, files, row.ConfigName); c != nil {
			p.clusters[row.ID] = c
		}
	}
	p.log = log.String()
	return p, nil
}

// configsOf returns the volume with the kubeconfigs, or nil.
func configsOf(pod *corev1.Pod) *corev1.SecretVolumeSource {
	for _, v := range pod.Spec.Volumes {
		if v.Name == configVolume {
			return v.Secret
		}
	}
	return nil
}

// load loads a kubeconfig and logs the result. It returns nil if the service ignores the kubeconfig.
func load(log *journal, app string, files map[string][]byte, name string) *connection {
	path := configRoot + "/" + name
	ignore := func(err error) *connection {
		log.warn("Failed while loading '%s', ignoring kube config. Error: %s", path, err)
		return nil
	}
	log.info("Trying to load Kubernetes config: '%s'", path)
	log.info("Reading: '%s'", path)
	data, ok := files[name]
	if !ok {
		return ignore(noFile(path))
	}
	config, err := readKubeconfig(data)
	if err != nil {
		return ignore(err)
	}
	log.info("Creating API for '%s'", path)
	c, err := config.connect()
	if err != nil {
		return ignore(err)
	}
	log.info("Creating cluster connection for '%s'", path)
	if app == dataService || app == dataTasks {
		log.info("Creating cached k8s client for '%s'", path)
	} else {
		log.info("Creating k8s client for '%s'", path)
	}
	log.info("Successfully loaded Kubernetes config: '%s'", path)
	return c
}

// reach returns the connection to cluster id from the newest data-service pod. It returns nil if that pod has not
// loaded the cluster. The local cluster has the ID "" and is always loaded.
func (s *services) reach(id string) *connection {
	if id == "" {
		return s.local
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := (*process)(nil)
	for _, p := range s.processes {
		if p.app != dataService {
			continue
		}
		if newest == nil || p.since.After(newest.since) || p.since.Equal(newest.since) && p.pod > newest.pod {
			newest = p
		}
	}
	if newest == nil {
		return nil
	}
	return newest.clusters[id]
}

// log returns the log of a container. Only the first container of a pod has a log. An empty container name also
// selects the first container.
func (s *services) log(ctx context.Context, namespace, pod, container string) (string, bool) {
	if namespace != s.local.namespace {
		return "", false
	}
	s.refresh(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		if p.pod == pod && (container == "" || container == p.container) {
			return p.log, true
		}
	}
	return "", false
}
