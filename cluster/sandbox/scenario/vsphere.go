package scenario

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin/certmanager"
	"carrick/cluster/sandbox/standin/charts"
	"carrick/cluster/sandbox/standin/nfs"
	"carrick/cluster/sandbox/standin/profiles"
	"carrick/cluster/sandbox/standin/volumes"
	"carrick/cluster/sandbox/world"
)

// guest is what plays in the scenario vsphere: Kubeflow's profile controller,
// cert-manager, storage and NFS in a guest cluster (local), which the Supervisor
// (remote) declares.
type guest struct {
	side     *Side // local
	client   kubernetes.Interface
	signer   *certmanager.Player
	profiles *profiles.Player
	export   *nfs.Server
	volumes  *volumes.Player
}

// vsphere starts it.
func vsphere(ctx context.Context, s *Stage) (_ *Play, err error) {
	var all closers
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	all = append(all, cancel)
	repository, err := charts.StartOf(ctx, charts.VSphere)
	if err != nil {
		return nil, err
	}
	all = append(all, repository.Close)
	g := &guest{side: s.sides[local]}
	if g.client, err = kubernetes.NewForConfig(g.side.Config); err != nil {
		return nil, err
	}
	if g.signer, err = certmanager.Start(ctx, g.side.Config); err != nil {
		return nil, err
	}
	all = append(all, g.signer.Close)
	if g.profiles, err = profiles.Start(ctx, g.side.Config); err != nil {
		return nil, err
	}
	all = append(all, g.side.Kubelet.Add(g.profiles.Log), g.profiles.Close)
	if g.export, err = nfs.Start(ctx, filepath.Join(s.dir, "export")); err != nil {
		return nil, err
	}
	if g.volumes, err = volumes.Start(ctx, volumes.Options{
		Config: g.side.Config, Supervisor: s.sides[remote].Config, Export: g.export, Dir: filepath.Join(s.dir, "volumes"),
	}); err != nil {
		g.export.Close()
		return nil, err
	}
	all = append(all, g.side.Kubelet.Add(g.volumes.Log), g.volumes.Close, g.export.Close)
	values, err := g.values()
	if err != nil {
		return nil, err
	}
	return &Play{
		Values: values, Charts: repository, Settle: g.settle, Acts: g.acts(), Close: all.close,
		Answers: map[string]string{
			"supervisor.namespace": "data-science", "claim.pods": "true",
			"nfs.source": repository.URL, "nfs.server": g.export.Address, "nfs.path": nfs.Export,
		},
		Given: []string{"supervisor.namespace", "nfs.source", "nfs.server", "nfs.path"},
	}, nil
}

// values are what the YAML of the scenario names.
func (g *guest) values() (world.Values, error) {
	api, err := url.Parse(g.side.Config.Host)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseInt(api.Port(), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the guest's API server at %s: %w", g.side.Config.Host, err)
	}
	return world.Values{
		"guest.host": api.Hostname(), "guest.port": port, "nfs.server": g.export.Address, "nfs.path": nfs.Export,
	}, nil
}

// settle returns when all has been looked at, and Alice's notebook has its volume.
func (g *guest) settle(ctx context.Context) error {
	if err := g.profiles.Look(ctx); err != nil {
		return fmt.Errorf("the profile controller's stand-in: %w", err)
	}
	if err := g.signer.Look(ctx); err != nil {
		return fmt.Errorf("cert-manager's stand-in: %w", err)
	}
	if err := g.volumes.Look(ctx); err != nil {
		return fmt.Errorf("the storage's stand-in: %w", err)
	}
	return world.Until(ctx, "the claim of a notebook", func() (bool, error) {
		c, err := g.client.CoreV1().PersistentVolumeClaims("alice").Get(ctx, "notes-workspace", metav1.GetOptions{})
		return err == nil && c.Status.Phase == corev1.ClaimBound, err
	})
}
