package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"

	"carrick/cluster/sandbox/leash"
	"carrick/cluster/sandbox/plane"
	"carrick/cluster/sandbox/roles"
	"carrick/cluster/sandbox/scenario"
	"carrick/cluster/sandbox/standin/endpoint"
	"carrick/cluster/sandbox/standin/extension"
	"carrick/cluster/sandbox/standin/kubelet"
	"carrick/cluster/sandbox/world"
)

const startWithin = 15 * time.Minute

// settings configures the two control planes. Their networks must not overlap. They resemble the networks of two
// Kubernetes distributions. Nothing listens on the addresses in Advertise.
var settings = []plane.Settings{
	{
		Name: "local", PodCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/16",
		ServiceIP: "10.96.0.1", Advertise: "192.0.2.1",
	},
	{
		Name: "remote", PodCIDR: "10.42.0.0/16", ServiceCIDR: "10.43.0.0/16",
		ServiceIP: "10.43.0.1", Advertise: "192.0.2.2",
	},
}

type side struct {
	*plane.Plane
	world      *world.Cluster
	kubelet    *kubelet.Server // serves the logs of the cluster's pods
	kubeletTLS *tls.Config     // accepts only the API server as a client
}

// ready is the line that the sandbox prints when both clusters are ready.
type ready struct {
	Ready       bool              `json:"ready"`
	Dir         string            `json:"dir"`
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	Contexts    map[string]string `json:"contexts"`
	Kubectl     string            `json:"kubectl"`
	Version     string            `json:"version"`
	// KubectlSocket runs kubectl in this process. It is "" if this build embeds no kubectl.
	KubectlSocket string `json:"kubectlSocket,omitempty"`
}

// serve starts both clusters, prints the ready line, and executes commands until a component fails or ctx is done.
func serve(ctx context.Context, o options, lines <-chan string, out, progress io.Writer) error {
	died := make(chan error, 2*len(roles.All()))
	sides, err := start(ctx, o, died, progress)
	if err != nil {
		return err
	}
	answer, err := describe(o.dir, sides)
	if err != nil {
		return err
	}
	if answer.KubectlSocket, err = serveKubectl(ctx, o.dir); err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(answer); err != nil {
		return err
	}
	desk := desk{sides: sides, stage: stage(ctx, o.dir, sides)}
	for {
		select {
		case line := <-lines:
			if err := encoder.Encode(desk.answer(ctx, line)); err != nil {
				return err
			}
		case err := <-died:
			return err
		case <-ctx.Done():
			return ending(ctx)
		}
	}
}

// stage returns a scenario.Stage for both clusters.
func stage(ctx context.Context, dir string, sides map[string]*side) *scenario.Stage {
	all := scenario.Sides{}
	for name, s := range sides {
		all[name] = &scenario.Side{
			Config: s.Config, FrontProxy: s.FrontProxy, Authentication: s.Authentication,
			Kubelet: s.kubelet, KubeletTLS: s.kubeletTLS, Network: s.Network, World: s.world,
		}
	}
	programs := scenario.Programs{Kubectl: filepath.Join(plane.Binaries(dir), roles.Kubectl)}
	if _, ok := endpoint.FindNginx(); ok {
		programs.Nginx = filepath.Join(plane.Binaries(dir), roles.Nginx) // started through the leash
	}
	if _, ok := extension.Find(); ok {
		programs.Carrick = filepath.Join(plane.Binaries(dir), roles.Carrick)
	}
	return scenario.NewStage(ctx, dir, all, programs)
}

// start prepares the sandbox's directory and the environment, and starts both control planes concurrently.
func start(ctx context.Context, o options, died chan error, progress io.Writer) (map[string]*side, error) {
	life := ctx
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := roles.Check(); err != nil {
		return nil, err
	}
	// Mkdir fails if the sandbox's directory was removed in the meantime. MkdirAll would recreate it.
	err := errors.Join(
		os.Mkdir(plane.Logs(o.dir), 0o700),
		os.Mkdir(filepath.Join(o.dir, "tmp"), 0o700),
		roles.Link(plane.Binaries(o.dir)),
		environment(o.dir),
	)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(progress, "starting the API servers …")
	if err := plane.LackingWatches(plane.Watches * len(settings)); err != nil {
		fmt.Fprintln(progress, err)
	}
	sides := map[string]*side{}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range settings {
		this := &side{}
		sides[s.Name] = this
		group.Go(func() error { return this.start(ctx, life, o, s, died, progress) })
	}
	up := make(chan error, 1)
	go func() { up <- group.Wait() }()
	select {
	case err := <-up:
		return sides, err
	case err := <-died:
		return nil, err
	}
}

// environment sets the environment that the components inherit. It removes the user's settings. HOME and TMPDIR are in
// the sandbox's directory, so that components cannot leave files elsewhere while the sandbox is being removed.
func environment(dir string) error {
	foreign := func(name string) bool {
		return strings.HasPrefix(name, "ETCD_") || strings.HasPrefix(name, "KWOK_") || strings.HasPrefix(name, "XDG_") ||
			strings.HasSuffix(strings.ToUpper(name), "_PROXY") || name == "KUBECONFIG"
	}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); foreign(name) {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		os.Setenv(leash.Variable, dir),
		os.Setenv("HOME", filepath.Join(dir, "home")),
		os.Setenv("TMPDIR", filepath.Join(dir, "tmp")),
	)
}

func (s *side) start(
	ctx, life context.Context, o options, settings plane.Settings, died chan<- error, progress io.Writer,
) error {
	var err error
	if s.Plane, err = plane.Start(ctx, life, o.dir, settings, died); err != nil {
		return err
	}
	fmt.Fprintf(progress, "the API server of %s is ready, filling its cluster …\n", s.Name)
	if s.kubeletTLS, err = s.KubeletTLS(); err != nil {
		return err
	}
	if s.kubelet, err = kubelet.Start(s.kubeletTLS); err != nil {
		return err
	}
	values := world.Values{"kubelet.port": int64(s.kubelet.Port())}
	if s.world, err = world.New(s.Name, s.Config, s.Revisions, values); err != nil {
		return err
	}
	if !o.empty {
		if err := s.world.Base(ctx); err != nil {
			return err
		}
	}
	if err := s.world.Settle(ctx); err != nil {
		return err
	}
	return s.world.Remember(ctx)
}

func describe(dir string, sides map[string]*side) (ready, error) {
	r := ready{
		Ready:       true,
		Dir:         dir,
		Kubeconfigs: map[string]string{},
		Contexts:    map[string]string{},
		Kubectl:     filepath.Join(plane.Binaries(dir), roles.Kubectl),
	}
	for name, s := range sides {
		r.Kubeconfigs[name], r.Contexts[name] = s.Kubeconfig, s.Context()
		client, err := discovery.NewDiscoveryClientForConfig(s.Config)
		if err != nil {
			return r, err
		}
		version, err := client.ServerVersion()
		if err != nil {
			return r, fmt.Errorf("get the version of %s: %w", name, err)
		}
		r.Version = version.GitVersion
	}
	return r, nil
}
