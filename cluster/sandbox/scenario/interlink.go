package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/pki"
	"carrick/cluster/sandbox/standin/certmanager"
	"carrick/cluster/sandbox/standin/charts"
	"carrick/cluster/sandbox/standin/edge"
	"carrick/cluster/sandbox/standin/endpoint"
	"carrick/cluster/sandbox/standin/virtualkubelet"
	"carrick/cluster/sandbox/world"
)

// WatchVariable is the environment variable for the proxy's idle timeout with the fault watches-cut. Tests set it,
// because nginx's default is a minute.
const WatchVariable = "CARRICK_SANDBOX_WATCH_CUT"

// joined is the running scenario interlink. The local cluster has interLink's virtual kubelet, cert-manager and an
// external endpoint. A directory represents the edge node. The edge node shares this machine's network.
type joined struct {
	side    *Side // the local cluster
	client  kubernetes.Interface
	edge    *edge.Machine
	signer  *certmanager.Player
	gate    *endpoint.Player
	place   *endpoint.Place // external address of the cluster, for the edge node
	kubelet *virtualkubelet.Player
	admin   *approver
	wrong   map[string]string // configuration keys and values that faults set
	renewed bool              // a fault has renewed the endpoint's certificate
}

func interlink(ctx context.Context, s *Stage) (_ *Play, err error) {
	var all closers
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	all = append(all, cancel)
	repository, err := charts.StartOf(ctx, charts.InterLink)
	if err != nil {
		return nil, err
	}
	all = append(all, repository.Close)
	j := &joined{side: s.sides[local], wrong: map[string]string{}}
	if j.client, err = kubernetes.NewForConfig(j.side.Config); err != nil {
		return nil, err
	}
	if j.edge, err = edge.Start(s.dir); err != nil {
		return nil, err
	}
	all = append(all, j.edge.Close)
	if j.signer, err = certmanager.Start(ctx, j.side.Config); err != nil {
		return nil, err
	}
	all = append(all, j.signer.Close)
	if j.place, err = endpoint.Claim(ctx); err != nil {
		return nil, err
	}
	if j.gate, err = endpoint.Start(
		ctx,
		endpoint.Options{
			Config: j.side.Config, Dir: filepath.Join(s.dir, "endpoint"), Nginx: s.programs.Nginx, Place: j.place,
		},
	); err != nil {
		j.place.Close()
		return nil, err
	}
	all = append(all, j.side.Kubelet.Add(j.gate.Log), j.gate.Close, j.place.Close)
	if j.kubelet, err = virtualkubelet.Start(ctx, virtualkubelet.Options{
		Config: j.side.Config, Plugin: j.edge, Dir: filepath.Join(s.dir, "jobs"), Kubectl: s.programs.Kubectl,
		TLS: j.side.KubeletTLS,
	}); err != nil {
		return nil, err
	}
	all = append(all, j.side.Kubelet.Add(j.kubelet.Log), j.kubelet.Close)
	if j.admin, err = startApprover(ctx, j.side); err != nil {
		return nil, err
	}
	all = append(all, j.admin.end)
	values, err := j.values()
	if err != nil {
		return nil, err
	}
	return &Play{
		Values: values, Charts: repository, Settle: j.settle, Acts: j.acts(), Close: all.close,
		Hosts: map[string]string{remote: j.edge.Root}, Here: map[string]bool{remote: true},
		Answers: j.answers(),
	}, nil
}

// answers returns answers for the guide's questions. If this machine has only one loopback address, each sandbox uses
// a different port.
func (j *joined) answers() map[string]string {
	out := map[string]string{"exposure.address": j.place.Address, "exposure.sources": "172.30.0.0/16", "test.watch": "0"}
	if !j.place.Own() {
		out["exposure.port"] = strconv.Itoa(j.place.Port)
	}
	return out
}

// values returns the values for ${…} in the scenario's YAML.
func (j *joined) values() (world.Values, error) {
	cut := "" // nginx's default is a minute
	if given := os.Getenv(WatchVariable); given != "" {
		within, err := time.ParseDuration(given)
		if err != nil || within < time.Second {
			return nil, fmt.Errorf("%s=%s is not a duration of at least 1s", WatchVariable, given)
		}
		cut = fmt.Sprintf(" proxy_read_timeout %ds;", int(within.Seconds()))
	}
	other, err := pki.NewAuthority("stand-in of a private authority")
	if err != nil {
		return nil, err
	}
	api, err := url.Parse(j.side.Config.Host)
	if err != nil {
		return nil, err
	}
	return world.Values{
		"watch.cut": cut, "some.ca": string(other.Cert), "api.port": api.Port(),
		"endpoint.address": j.place.Address, "endpoint.port": int64(j.place.Port),
		"endpoint.text": strconv.Itoa(j.place.Port),
	}, nil
}

// settle waits until the virtual kubelet has read its configuration and each fake has reconciled once.
func (j *joined) settle(ctx context.Context) error {
	if err := world.Until(ctx, "the virtual kubelet's pod", func() (bool, error) {
		pods, err := j.client.CoreV1().Pods("interlink").List(ctx, metav1.ListOptions{LabelSelector: "app=virtual-node"})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if said, ok := j.kubelet.Log(pod.Namespace, pod.Name, "vk"); pod.DeletionTimestamp == nil &&
				pod.Status.Phase == corev1.PodRunning && ok && said != "" {
				return true, nil
			}
		}
		return false, errors.New("the virtual kubelet has not read its configuration yet")
	}); err != nil {
		return err
	}
	_, noSigner := j.client.AppsV1().Deployments(certmanager.Namespace).Get(ctx, "cert-manager", metav1.GetOptions{})
	if noSigner == nil {
		if err := j.signer.Look(ctx); err != nil {
			return fmt.Errorf("cert-manager's stand-in: %w", err)
		}
	}
	return errors.Join(j.gate.Look(ctx), j.kubelet.Look(ctx), j.admin.Look(ctx), j.kubelet.Look(ctx))
}
