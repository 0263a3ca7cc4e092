// Package scenario runs scenarios: it applies the objects of package world, and starts the fakes of package standin. A
// scenario consists of one file in this package, with a function that starts its fakes, and a folder in package world.
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
	Config     *rest.Config // of the cluster's admin
	FrontProxy []byte       // PEM, the CA of the API server's client certificate for aggregated API servers
	// Authentication is the path of the API server's authentication configuration.
	Authentication string
	Kubelet        *kubelet.Server
	KubeletTLS     *tls.Config     // for another log server of nodes, like Kubelet
	Network        *podnet.Network // the route from the API server to pods
	World          *world.Cluster
}

// Programs are the paths of programs that fakes run. "" means that the program does not exist on this machine.
type Programs struct{ Kubectl, Nginx, Carrick string }

// Sides are the two clusters, by name.
type Sides map[string]*Side

// Names of the sides.
const (
	local  = "local"
	remote = "remote"
)

// kind describes a scenario.
type kind struct {
	// start starts the fakes with the given behaviours. They run until ctx is done or the play's Close is called.
	start func(ctx context.Context, sides Sides, wrong map[string]bool) (*Play, error)
	// onHost replaces start in a scenario that also needs a folder that represents a machine, or programs. Its faults
	// are in Play.Acts.
	onHost func(ctx context.Context, s *Stage) (*Play, error)
	// behaviours returns the faults that change the behaviour of fakes and have no objects, each with a description.
	behaviours func() map[string]string
	// acted returns the faults that only an act causes, each with a description.
	acted func() map[string]string
	// under maps a fault to the fault on which it builds. The latter is applied first.
	under map[string]string
	// answers are answers to the guide's questions, as a user types them. With them, a walk shows the whole guide.
	answers map[string]string
}

// with returns a fault, preceded by the faults on which it builds. It returns none for "".
func (k kind) with(fault string) []string {
	var all []string
	for f := fault; f != ""; f = k.under[f] {
		all = slices.Insert(all, 0, f)
	}
	return all
}

// kinds are the scenarios that start fakes. All other scenarios consist only of objects.
var kinds = map[string]kind{
	"argocd":    {start: argoCD},
	"interlink": {onHost: interlink, acted: interlinkActs, under: interlinkUnder()},
	"liqo":      {start: liqo, behaviours: liqoBehaviours},
	"ondemand":  {onHost: ondemand, acted: ondemandActs, under: ondemandUnder()},
	"renku": {
		start: renku, behaviours: behaviours, under: map[string]string{"page-frames": "page"},
		answers: map[string]string{"session.test": "true"},
	},
	"vsphere": {onHost: vsphere, acted: vsphereActs, under: vsphereUnder()},
}

// Play is a running scenario.
type Play struct {
	Values  world.Values                            // for ${…} in its YAML
	Charts  *charts.Repository                      // the source of its Releases; nil: none
	Objects map[string][]*unstructured.Unstructured // by side, in addition to the objects in YAML
	// Settle waits until the fakes have processed the applied objects.
	Settle func(context.Context) error
	// Acts are the actions of faults that YAML objects cannot express. They are idempotent.
	Acts  map[string]func(context.Context) error
	Close func()
	// Hosts are the folders that represent machines, by side.
	Hosts map[string]string
	// Here contains the sides in Hosts that share this machine's network.
	Here map[string]bool
	// Answers are answers to the guide's questions that are known only while the scenario runs.
	Answers map[string]string
	// Given are the keys of the Answers with which carrick's demo prefills its link, because a user cannot know them.
	Given []string

	began  time.Time
	faults []string // active faults in the order of the requests
}

// Stage runs scenarios.
type Stage struct {
	life  context.Context // context of the sandbox: the fakes stop when it is done
	dir   string          // the sandbox's folder
	sides Sides
	// programs are the programs of this machine that fakes run.
	programs Programs
	plays    map[string]*Play
	// issuer is the identity provider that the remote API server trusts. It is kept across resets, because the API
	// server needs ten seconds to load a new issuer.
	issuer *issuer
}

// NewStage returns a stage on which no scenario runs. Its fakes stop when ctx is done.
func NewStage(ctx context.Context, dir string, sides Sides, programs Programs) *Stage {
	return &Stage{life: ctx, dir: dir, sides: sides, programs: programs, plays: map[string]*Play{}}
}

// Faults returns the faults of a scenario, each with a description.
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

// Told is the information that a walk through a scenario needs. An empty field means none.
type Told struct {
	// Answers are answers to the guide's questions, as a user types them, by the question's key. With them, a walk
	// shows the whole guide.
	Answers map[string]string `json:"answers,omitempty"`
	// Given are the answers with which carrick's demo prefills its link.
	Given map[string]string `json:"given,omitempty"`
	// Hosts are the folders that represent machines, by side.
	Hosts map[string]string `json:"hosts,omitempty"`
	// Here contains the sides in Hosts that share this machine's network.
	Here map[string]bool `json:"here,omitempty"`
}

// Told returns the information about a scenario. It is complete only while the scenario runs.
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

// Seed applies a scenario to the clusters, with a fault unless fault is "", and waits until both are ready. Faults
// accumulate until Reset. Seed is idempotent.
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

// play returns the play of a scenario with a fault, and starts it if necessary. A fault that changes the behaviour of
// fakes restarts them, because they get their behaviours when they start.
func (s *Stage) play(scenario, fault string) (*Play, error) {
	faults, err := s.Faults(scenario)
	if err != nil {
		return nil, err
	}
	if _, known := faults[fault]; !known && fault != "" {
		return nil, fmt.Errorf(
			"%s has no fault %q; it has %s", scenario, fault, strings.Join(slices.Sorted(maps.Keys(faults)), ", "),
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

// has returns the active faults. A nil play has none.
func (p *Play) has() []string {
	if p == nil {
		return nil
	}
	return p.faults
}

// apply applies a side's objects to its cluster and waits until they are ready.
func (s *Stage) apply(ctx context.Context, scenario, side string, play *Play) error {
	var yaml []string // faults with objects; behaviours have no folder
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
	// Objects of a fault replace those of the chart.
	installed = world.Without(installed, own)
	if err := cluster.Apply(ctx, "sandbox-"+scenario, own); err != nil {
		return err
	}
	if err := cluster.Apply(ctx, "helm", installed); err != nil {
		return err
	}
	return cluster.Await(ctx, append(awaited, play.Objects[side]...))
}

// Reset stops and forgets every play. Objects in the clusters are left to package world.
func (s *Stage) Reset() {
	for _, play := range s.plays {
		play.Close()
	}
	clear(s.plays)
}

// closers are cleanup functions, called in the order in which they were added.
type closers []func()

func (c closers) close() {
	for _, f := range c {
		f()
	}
}

var errNoCharts = errors.New("the scenario has no chart repository")
