// Package scenario plays scenarios: the objects of package world, and the
// stand-ins of package standin that give them life. A scenario is one file
// here, with one function that starts its stand-ins, and a folder there.
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

// Side is one cluster, as scenarios need it.
type Side struct {
	Config     *rest.Config // its admin
	FrontProxy []byte       // PEM: who signs its API server when that calls aggregated ones
	// Authentication is the file in which its API server looks for issuers.
	Authentication string
	Kubelet        *kubelet.Server
	KubeletTLS     *tls.Config     // of another log server of nodes: as Kubelet's
	Network        *podnet.Network // from its API server to its pods
	World          *world.Cluster
}

// Programs are the paths of programs that stand-ins run; "" is one that is not
// there.
type Programs struct{ Kubectl, Nginx, Carrick string }

// Sides are the two clusters, by their names.
type Sides map[string]*Side

// The names of the sides.
const (
	local  = "local"
	remote = "remote"
)

// kind is what a scenario can do.
type kind struct {
	// start starts the stand-ins, with the behaviours that are to be wrong.
	// They end with ctx or with the play's Close.
	start func(ctx context.Context, sides Sides, wrong map[string]bool) (*Play, error)
	// onHost is start for a scenario that takes more of the stage: a folder that
	// stands for a machine, or programs. What is wrong comes with acts.
	onHost func(ctx context.Context, s *Stage) (*Play, error)
	// behaviours are the faults that stand-ins are started with, and no objects:
	// name to one sentence.
	behaviours func() map[string]string
	// acted are those that are acts of the play alone.
	acted func() map[string]string
	// under are the faults on which another one builds: they come first.
	under map[string]string
	// answers are what a guide has to be told so that a walk shows all of it:
	// answers to its questions, as they are typed.
	answers map[string]string
}

// with is a fault behind those on which it builds; "" is none.
func (k kind) with(fault string) []string {
	var all []string
	for f := fault; f != ""; f = k.under[f] {
		all = slices.Insert(all, 0, f)
	}
	return all
}

// kinds are the scenarios that have stand-ins. The others are only objects.
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

// Play is a scenario whose stand-ins run.
type Play struct {
	Values  world.Values                            // what ${…} in its YAML stands for
	Charts  *charts.Repository                      // where its Releases come from; nil: it has none
	Objects map[string][]*unstructured.Unstructured // by side, besides those in YAML
	// Settle returns when the stand-ins have seen what was applied.
	Settle func(context.Context) error
	// Acts are what a fault does besides its objects. Doing it twice changes
	// nothing.
	Acts  map[string]func(context.Context) error
	Close func()
	// Hosts are the folders of the sides that are machines.
	Hosts map[string]string
	// Here are those of them on which a program of this machine has the network of
	// the machine that the folder stands for.
	Here map[string]bool
	// Answers are those that are known only when it plays.
	Answers map[string]string
	// Given are those of them that a link of the demo begins with: nobody could know them.
	Given []string

	began  time.Time
	faults []string // that hold, in the order in which they were asked for
}

// Stage is where scenarios are played.
type Stage struct {
	life  context.Context // of the sandbox: the stand-ins end with it
	dir   string          // the sandbox's folder
	sides Sides
	// programs are those of this machine that stand-ins run.
	programs Programs
	plays    map[string]*Play
	// issuer is known to the remote API server, which takes ten seconds to take
	// one in: it outlives a reset.
	issuer *issuer
}

// NewStage returns a stage on which nothing is played yet. What plays there
// ends with ctx.
func NewStage(ctx context.Context, dir string, sides Sides, programs Programs) *Stage {
	return &Stage{life: ctx, dir: dir, sides: sides, programs: programs, plays: map[string]*Play{}}
}

// Faults returns what can be wrong in a scenario: name to one sentence.
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

// Told is what a walk through a scenario is told of it. An empty field is nothing.
type Told struct {
	// Answers are what a guide has to be told so that a walk shows all of it: by the
	// question's key, as they are typed.
	Answers map[string]string `json:"answers,omitempty"`
	// Given are those of them that a link of the demo begins with.
	Given map[string]string `json:"given,omitempty"`
	// Hosts are the folders of the sides that are machines, by side.
	Hosts map[string]string `json:"hosts,omitempty"`
	// Here are those of them whose network is this machine's.
	Here map[string]bool `json:"here,omitempty"`
}

// Told is what is known of a scenario: all of it only while it plays.
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

// Seed puts a scenario into the clusters, with a fault ("" is none) on top,
// and returns when it stands. Faults stay until Reset, so a second Seed changes
// nothing.
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

// play returns the play of a scenario with a fault, and starts it where it
// does not run. A behaviour is what stand-ins are started with, so another one
// starts them anew.
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

// has returns the faults that hold; a play that is not there has none.
func (p *Play) has() []string {
	if p == nil {
		return nil
	}
	return p.faults
}

// apply puts a side's objects into its cluster and waits until they stand.
func (s *Stage) apply(ctx context.Context, scenario, side string, play *Play) error {
	var yaml []string // the faults that have objects; those of behaviour have no folder
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
	// What a fault has of a chart stands for the chart's own.
	installed = world.Without(installed, own)
	if err := cluster.Apply(ctx, "sandbox-"+scenario, own); err != nil {
		return err
	}
	if err := cluster.Apply(ctx, "helm", installed); err != nil {
		return err
	}
	return cluster.Await(ctx, append(awaited, play.Objects[side]...))
}

// Reset ends every play and forgets it. What it put into the clusters is
// package world's to remove.
func (s *Stage) Reset() {
	for _, play := range s.plays {
		play.Close()
	}
	clear(s.plays)
}

// closers are closed in the order in which they were added.
type closers []func()

func (c closers) close() {
	for _, f := range c {
		f()
	}
}

var errNoCharts = errors.New("the scenario has no chart repository")
