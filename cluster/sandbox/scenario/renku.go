package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/standin/amalthea"
	"carrick/cluster/sandbox/standin/charts"
	"carrick/cluster/sandbox/standin/csi"
	"carrick/cluster/sandbox/standin/rawget"
	"carrick/cluster/sandbox/standin/renkuapi"
	"carrick/cluster/sandbox/world"
)

// Namespace and Helm release of Renku.
const (
	renkuNamespace = "renku"
	renkuRelease   = "renku"
)

// noticeWithin is the timeout for the fake Renku to detect its pods.
const noticeWithin = 2 * time.Minute

func behaviours() map[string]string { return renkuapi.Faults() }

// renku starts the fakes of the scenario renku. They are a chart repository, Renku's API with Keycloak and the ingress
// of sessions, the session operator and metrics-server on the remote cluster, and CSI drivers on both clusters. For
// local pods that run kubectl get --raw, package rawget sends the requests.
func renku(ctx context.Context, sides Sides, wrong map[string]bool) (_ *Play, err error) {
	var all closers
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	all = append(all, cancel)
	repository, err := charts.Start(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, repository.Close)
	api, err := renkuapi.Start(ctx, renkuapi.Options{
		Local: sides[local].Config, Remote: sides[remote].Config,
		Namespace: renkuNamespace, Release: renkuRelease, Faults: wrong,
	})
	if err != nil {
		return nil, err
	}
	all = append(all, sides[local].Kubelet.Add(api.Log), api.Close)
	asker, err := rawget.New(sides[local].Config)
	if err != nil {
		return nil, err
	}
	all = append(all, sides[local].Kubelet.Add(asker.Log))
	operator, err := amalthea.Start(ctx, sides[remote].Config)
	if err != nil {
		return nil, err
	}
	all = append(all, operator.Close)
	var drivers []*csi.Driver
	for _, side := range sides {
		driver, err := csi.Start(ctx, side.Config)
		if err != nil {
			return nil, err
		}
		drivers = append(drivers, driver)
		all = append(all, driver.Close)
	}
	measured, err := metrics(sides[remote], &all)
	if err != nil {
		return nil, err
	}
	host, port := api.SessionHost()
	page := &page{sides: sides, api: api}
	return &Play{
		Values: world.Values{
			"renku.domain": api.Domain(),
			"renku.ca":     string(api.CA()),
			"session.host": fmt.Sprintf("%s:%d", host, port),
		},
		Charts:  repository,
		Objects: map[string][]*unstructured.Unstructured{remote: measured},
		Settle:  func(ctx context.Context) error { return settle(ctx, sides, api, drivers) },
		Acts:    map[string]func(context.Context) error{"page": page.follow, "page-frames": page.frame},
		Close:   all.close,
	}, nil
}

// metrics starts a fake metrics-server and returns its objects. It returns no objects if this machine has only loopback
// addresses.
func metrics(side *Side, all *closers) ([]*unstructured.Unstructured, error) {
	m, err := standin.StartMetrics(side.FrontProxy)
	if errors.Is(err, standin.ErrNoAddress) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	*all = append(*all, m.Close)
	return m.Objects(), nil
}

// settle waits until the CSI drivers are registered and the fake Renku has detected all its pods.
func settle(ctx context.Context, sides Sides, api *renkuapi.Server, drivers []*csi.Driver) error {
	for _, d := range drivers {
		if err := d.Look(ctx); err != nil {
			return err
		}
	}
	client, err := kubernetes.NewForConfig(sides[local].Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, noticeWithin)
	defer cancel()
	return world.Until(ctx, "Renku's stand-in to list its pods", func() (bool, error) {
		pods, err := client.CoreV1().Pods(renkuNamespace).List(ctx, metav1.ListOptions{
			LabelSelector: "release=" + renkuRelease +
				",app in (renku-data-service,renku-k8s-watcher,renku-data-tasks,renku-secrets-storage)",
		})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if _, ok := api.Log(pod.Namespace, pod.Name, pod.Spec.Containers[0].Name); !ok && pod.DeletionTimestamp == nil {
				return false, fmt.Errorf("it writes no log for pod %s yet", pod.Name)
			}
		}
		return len(pods.Items) > 0, nil
	})
}
