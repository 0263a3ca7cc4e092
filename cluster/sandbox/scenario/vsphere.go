package scenario

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"carrick/cluster/sandbox/standin/certmanager"
	"carrick/cluster/sandbox/standin/charts"
	"carrick/cluster/sandbox/standin/extension"
	"carrick/cluster/sandbox/standin/nfs"
	"carrick/cluster/sandbox/standin/profiles"
	"carrick/cluster/sandbox/standin/volumes"
	"carrick/cluster/sandbox/world"
)

// guest is the running scenario vsphere. The local cluster is a guest cluster, and the Supervisor (remote) declares it.
// In the local cluster, the scenario fakes Kubeflow's profile controller, cert-manager, storage and NFS.
type guest struct {
	side      *Side // the local cluster
	client    kubernetes.Interface
	signer    *certmanager.Player
	profiles  *profiles.Player
	export    *nfs.Server
	volumes   *volumes.Player
	extension *extension.Player
	program   bool // this machine has carrick, for the extension's pods
	noVolumes bool // claims stay pending because of a fault
	answered  bool // the extension has responded at least once
}

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
	g := &guest{side: s.sides[local], program: s.programs.Carrick != ""}
	ends, err := g.start(ctx, s)
	all = append(all, ends...)
	if err != nil {
		return nil, err
	}
	values, err := g.values()
	if err != nil {
		return nil, err
	}
	return &Play{
		Values: values, Charts: repository, Settle: g.settle, Acts: g.acts(), Close: all.close,
		Answers: map[string]string{
			"supervisor.namespace": "data-science", "storage.source": "nfs", "claim.pods": "true",
			"nfs.source": repository.URL, "nfs.server": g.export.Address, "nfs.path": nfs.Export,
			"extension.image": "registry.example.com/carrick:1.0",
		},
		Given: []string{"supervisor.namespace", "nfs.source", "nfs.server", "nfs.path", "extension.image"},
	}, nil
}

// start starts the fakes. The functions in ends stop all fakes that were started, even if start returns an error.
func (g *guest) start(ctx context.Context, s *Stage) (ends closers, err error) {
	api := g.side.Config
	if g.client, err = kubernetes.NewForConfig(api); err != nil {
		return nil, err
	}
	if g.signer, err = certmanager.Start(ctx, api); err != nil {
		return nil, err
	}
	ends = append(ends, g.signer.Close)
	if g.profiles, err = profiles.Start(ctx, api); err != nil {
		return ends, err
	}
	ends = append(ends, g.side.Kubelet.Add(g.profiles.Log), g.profiles.Close)
	if g.export, err = nfs.Start(ctx, filepath.Join(s.dir, "export")); err != nil {
		return ends, err
	}
	if g.volumes, err = volumes.Start(ctx, volumes.Options{
		Config: api, Supervisor: s.sides[remote].Config, Export: g.export, Dir: filepath.Join(s.dir, "volumes"),
	}); err != nil {
		return append(ends, g.export.Close), err
	}
	ends = append(ends, g.side.Kubelet.Add(g.volumes.Log), g.volumes.Close, g.export.Close)
	if g.extension, err = extension.Start(ctx, extension.Options{
		Config: api, Network: g.side.Network, Dir: filepath.Join(s.dir, "extension"), Program: s.programs.Carrick,
	}); err != nil {
		return ends, err
	}
	return append(ends, g.side.Kubelet.Add(g.extension.Log), g.extension.Close), nil
}

// values returns the values for ${…} in the scenario's YAML.
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
		"cluster.ca": base64.StdEncoding.EncodeToString(g.side.Config.CAData),
	}, nil
}

// settle waits until each fake has reconciled once and all pending claims have volumes.
func (g *guest) settle(ctx context.Context) error {
	if err := g.profiles.Look(ctx); err != nil {
		return fmt.Errorf("the profile controller's stand-in: %w", err)
	}
	if err := g.signer.Look(ctx); err != nil {
		return fmt.Errorf("cert-manager's stand-in: %w", err)
	}
	if err := errors.Join(g.volumes.Look(ctx), g.extension.Look(ctx)); err != nil {
		return fmt.Errorf("the stand-ins of kubelets: %w", err)
	}
	if err := g.bound(ctx, "alice", "notes-workspace"); err != nil || g.noVolumes {
		return err
	}
	_, err := g.client.CoreV1().PersistentVolumeClaims("bob").Get(ctx, pipelineClaim, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return g.bound(ctx, "bob", pipelineClaim)
}
