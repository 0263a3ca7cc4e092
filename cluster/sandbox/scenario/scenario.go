// Package scenario runs scenarios. It applies the objects in package world and starts the fakes in package standin. A
// scenario has one file in this package and one directory in package world.
package scenario

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"carrick/cluster/sandbox/podnet"
	"carrick/cluster/sandbox/standin/charts"
	"carrick/cluster/sandbox/standin/kubelet"
	"carrick/cluster/sandbox/world"
)

// Side is one of the two clusters of a scenario.
type Side struct {
	Config     *rest.Config // the cluster admin's credentials
	FrontProxy []byte       // PEM of the CA that signs the API server's client certificate for aggregated API servers
	// Authentication is the path of the API server's authentication configuration.
	Authentication string
	Kubelet        *kubelet.Server
	KubeletTLS     *tls.Config     // for fake kubelets in addition to Kubelet
	Network        *podnet.Network // route from the API server to pods
	World          *world.Cluster
}

// Programs contains the paths of programs that fakes run. A path is "" if this machine does not have the program.
type Programs struct{ Kubectl, Nginx, Carrick string }

// Sides maps the names of the sides to the sides.
type Sides map[string]*Side

// Names of the sides.
const (
	local  = "local"
	remote = "remote"
)

// kind contains the fakes, faults and answers of a scenario.
type kind struct {
	// start starts the fakes with the faults in wrong. They run until ctx is done or Play.Close is called.
	start func(ctx context.Context, sides Sides, wrong map[string]bool) (*Play, error)
	// onHost replaces start in scenarios that need programs, or a directory that represents a machine. The faults of
	// these scenarios are in Play.Acts.
	onHost func(ctx context.Context, s *Stage) (*Play, error)
	// behaviours returns descriptions of the faults that change how fakes behave and have no objects.
	behaviours func() map[string]string
	// acted returns descriptions of the faults in Play.Acts.
	acted func() map[string]string
	// under maps a fault to the fault that it requires. The required fault is applied first.
	under map[string]string
	// late lists the faults that break a finished set-up. carrick demo applies the guide before it seeds them. A fault in
	// behaviours cannot be late, because it restarts the fakes, which then know nothing of the set-up.
	late []string
	// answers contains answers by question key, in the form that a user types. They make the guide ask for everything
	// that it supports.
	answers map[string]string
}

// with returns the fault, preceded by the faults that it requires, in the order of application. It returns nil for "".
func (k kind) with(fault string) []string {
	var all []string
	for f := fault; f != ""; f = k.under[f] {
		all = slices.Insert(all, 0, f)
	}
	return all
}

// kinds contains the scenarios with fakes, by name. All other scenarios have only objects.
var kinds = map[string]kind{
	"argocd":    {start: argoCD, late: []string{"controller-down", "egress-denied", "project-restricted"}},
	"interlink": {onHost: interlink, acted: interlinkActs, under: interlinkUnder()},
	"liqo": {start: liqo, behaviours: liqoBehaviours, late: []string{
		"no-external-cidr", "old-liqo", "remote-controlplane-role-old", "replicator-down", "version-skew", "webhook-cert-expiring",
	}},
	"ondemand": {onHost: ondemand, acted: ondemandActs, under: ondemandUnder()},
	"renku": {
		start: renku, behaviours: behaviours, under: map[string]string{"page-frames": "page"}, late: []string{
			"cpu-quota", "crd-drift", "driver-missing-on-node", "login-by-hand", "operator-version", "restricted",
		},
		answers: map[string]string{"session.test": "true"},
	},
	"vsphere": {onHost: vsphere, acted: vsphereActs, under: vsphereUnder()},
}

// Play is a running scenario.
type Play struct {
	Values  world.Values                            // for ${…} in the YAML
	Charts  *charts.Repository                      // source of the Releases, or nil
	Objects map[string][]*unstructured.Unstructured // by side; in addition to the objects in YAML
	// Settle waits until the fakes have processed the applied objects.
	Settle func(context.Context) error
	// Acts contains idempotent functions for the faults that YAML cannot express, by fault.
	Acts  map[string]func(context.Context) error
	Close func()
	// Hosts contains the directories that represent machines, by side.
	Hosts map[string]string
	// Here contains the sides whose machine shares this machine's network.
	Here map[string]bool
	// Answers contains answers that are known only while the scenario runs, by question key.
	Answers map[string]string
	// Given lists the keys in Answers that a user cannot know. carrick's demo writes these answers to its link.
	Given []string

	began  time.Time
	faults []string // active faults in the order of the requests
}

// Stage runs scenarios on the two clusters.
type Stage struct {
	life  context.Context // the sandbox's context: the fakes stop when it is done
	dir   string          // the sandbox's directory
	sides Sides
	// programs contains the paths of this machine's programs that fakes run.
	programs Programs
	plays    map[string]*Play
	// issuer is the identity provider that the remote API server trusts. It survives resets, because the API server needs
	// ten seconds to load a new one.
	issuer *issuer
}

// NewStage returns a Stage. The fakes in its scenarios stop when ctx is done.
func NewStage(ctx context.Context, dir string, sides Sides, programs Programs) *Stage {
	return &Stage{life: ctx, dir: dir, sides: sides, programs: programs, plays: map[string]*Play{}}
}

// Faults returns the descriptions of a scenario's faults, by name.
func (*Stage) Faults(scenario string) (map[string]string, error) {
	faults, err := world.Faults(scenario)
	if err != nil {
		return nil, err
	}
	for _, more := range []func() map[string]string{kinds[scenario].behaviours, kinds[scenario].acted} {
		if more != nil {
			maps.Copy(faults, more())
		}
	}
	return faults, nil
}

// Late reports whether a fault breaks a finished set-up, so the guide must be applied before the fault.
func Late(scenario, fault string) bool { return slices.Contains(kinds[scenario].late, fault) }

// Told contains the information about a scenario that carrick's demo needs.
type Told struct {
	// Answers contains answers by question key, in the form that a user types. They make the guide ask for everything
	// that it supports.
	Answers map[string]string `json:"answers,omitempty"`
	// Given contains the answers that carrick's demo writes to its link.
	Given map[string]string `json:"given,omitempty"`
	// Hosts contains the directories that represent machines, by side.
	Hosts map[string]string `json:"hosts,omitempty"`
	// Here contains the sides whose machine shares this machine's network.
	Here map[string]bool `json:"here,omitempty"`
}

// Told describes a scenario. The description is complete only while the scenario runs.
func (s *Stage) Told(scenario string) Told {
	told := Told{Answers: kinds[scenario].answers}
	play := s.plays[scenario]
	if play == nil {
		return told
	}
	if len(play.Answers) > 0 {
		told.Answers = play.Answers
	}
	told.Hosts, told.Here, told.Given = play.Hosts, play.Here, map[string]string{}
	for _, key := range play.Given {
		told.Given[key] = play.Answers[key]
	}
	return told
}

// Seed applies a scenario to the clusters and waits until everything is ready. If fault is not "", it also applies that
// fault. Faults accumulate until Reset. Seed is idempotent.
func (s *Stage) Seed(ctx context.Context, scenario, fault string) error {
	play, err := s.play(scenario, fault)
	if err != nil {
		return err
	}
	group, within := errgroup.WithContext(ctx)
	for side := range s.sides {
		group.Go(func() error { return s.apply(within, scenario, side, play) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, fault := range play.faults {
		if act := play.Acts[fault]; act != nil {
			if err := act(ctx); err != nil {
				return fmt.Errorf("%s: %w", fault, err)
			}
		}
	}
	return play.Settle(ctx)
}

// play returns the running scenario, and starts it if necessary. Fakes read their faults only when they start, so play
// restarts them for a fault that changes how they behave.
func (s *Stage) play(scenario, fault string) (*Play, error) {
	faults, err := s.Faults(scenario)
	if err != nil {
		return nil, err
	}
	if _, known := faults[fault]; !known && fault != "" {
		return nil, fmt.Errorf(
			"scenario %s has no fault %q (faults: %s)", scenario, fault, strings.Join(slices.Sorted(maps.Keys(faults)), ", "),
		)
	}
	old := s.plays[scenario]
	var now []string
	if old != nil {
		now = old.faults
	}
	for _, f := range kinds[scenario].with(fault) {
		if !slices.Contains(now, f) {
			now = append(slices.Clone(now), f)
		}
	}
	wrong, asked := map[string]bool{}, false
	if k := kinds[scenario]; k.behaviours != nil {
		for name := range k.behaviours() {
			wrong[name] = slices.Contains(now, name)
			asked = asked || name == fault && !slices.Contains(old.has(), name)
		}
	}
	if old != nil && !asked {
		old.faults = now
		return old, nil
	}
	if old != nil {
		old.Close()
		delete(s.plays, scenario)
	}
	play, err := s.start(scenario, wrong)
	if err != nil {
		return nil, err
	}
	play.faults = now
	s.plays[scenario] = play
	return play, nil
}

func (s *Stage) start(scenario string, wrong map[string]bool) (*Play, error) {
	k, ok := kinds[scenario]
	if !ok {
		return &Play{Settle: func(context.Context) error { return nil }, Close: func() {}, began: time.Now()}, nil
	}
	start := k.start
	if k.onHost != nil {
		start = func(ctx context.Context, _ Sides, _ map[string]bool) (*Play, error) {
			return k.onHost(ctx, s)
		}
	}
	play, err := start(s.life, s.sides, wrong)
	if err != nil {
		return nil, fmt.Errorf("start the stand-ins of %s: %w", scenario, err)
	}
	play.began = time.Now()
	return play, nil
}

// has returns the active faults. p can be nil.
func (p *Play) has() []string {
	if p == nil {
		return nil
	}
	return p.faults
}

// apply applies the objects of one side and waits until they are ready.
func (s *Stage) apply(ctx context.Context, scenario, side string, play *Play) error {
	var yaml []string // only faults with objects: the others have no directory
	yaml = append(yaml, play.faults...)
	objects, err := world.Scenario(scenario, side, yaml, play.Values)
	if err != nil {
		return err
	}
	cluster := s.sides[side].World
	own := append([]*unstructured.Unstructured{}, play.Objects[side]...)
	var installed, awaited []*unstructured.Unstructured
	for _, o := range objects {
		if !isRelease(o) {
			own = append(own, o)
			if o.GetAnnotations()[fails] == "" {
				awaited = append(awaited, o)
			}
			continue
		}
		made, err := play.expand(o)
		if err != nil {
			return err
		}
		installed = append(installed, made...)
		if o.GetAnnotations()[fails] == "" {
			awaited = append(awaited, made...)
		}
	}
	// An object of a fault replaces the chart's object with the same name.
	installed = world.Without(installed, own)
	if err := cluster.Apply(ctx, "sandbox-"+scenario, own); err != nil {
		return err
	}
	if err := cluster.Apply(ctx, "helm", installed); err != nil {
		return err
	}
	return cluster.Await(ctx, append(awaited, play.Objects[side]...))
}

// Reset stops the fakes of all scenarios. Package world resets the objects in the clusters.
func (s *Stage) Reset() {
	for _, play := range s.plays {
		play.Close()
	}
	clear(s.plays)
}

// closers are cleanup functions in the order of their calls.
type closers []func()

func (c closers) close() {
	for _, f := range c {
		f()
	}
}

var errNoCharts = errors.New("the scenario has no chart repository")
