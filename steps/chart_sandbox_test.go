package steps_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/stepstest"
)

const tinyChart = "../cluster/chart/testdata/tiny"

// charting opens a link of a guide that makes a namespace and installs the
// small chart in it.
func charting(t *testing.T, link, space string, own bool, values map[string]any, timeout time.Duration) (*steps.Session, *clustertest.Sandbox) {
	t.Helper()
	box := clustertest.Start(t)
	role := func(name string) steps.Role { return steps.Role{Name: name, Kind: steps.Cluster} }
	install := steps.Action{Name: "install", Title: "Install", On: steps.Remote, Doer: steps.Chart{
		Release: "tiny", Namespace: "${answers.space}", Chart: "tiny", Timeout: timeout,
		Source:  func(context.Context, steps.Env) (chart.Source, error) { return tinyChart, nil },
		Version: func(context.Context, steps.Env) (string, error) { return "0.1.0", nil },
		Values:  func(context.Context, steps.Env) (map[string]any, error) { return values, nil },
	}}
	actions := []steps.Action{install}
	assets := fstest.MapFS{}
	if own {
		actions = []steps.Action{{Name: "space", Title: "Make", On: steps.Remote, Doer: steps.Manifest{File: "a.yaml"}}, install}
		assets["a.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: '${answers.space}'}\n")}
	}
	g := guide("charting", role("here"), role("there"), steps.Step{
		Ask:     []steps.Question{{Key: "space", Title: "Namespace", Help: "h", Kind: steps.Namespace}},
		Actions: actions,
		Checks:  []steps.Check{{Name: "holds", Title: "it holds", Why: "w", On: steps.Remote, NotChecked: "nothing"}},
	})
	return stepstest.Open(t, box, g, assets, link, map[string]any{"space": space}), box
}

// around is what is in a namespace, and what is in none, once the garbage
// collector has done its work. Namespaces of other tests may be on their way out.
func around(t *testing.T, box *clustertest.Sandbox, ns string) map[string]string {
	t.Helper()
	box.Run(t, clustertest.Remote, "", "-n", ns, "wait", "--for=delete", "pod,replicaset", "--all", "--timeout=60s")
	all := stepstest.Snapshot(t, box)
	maps.DeleteFunc(all, func(key, _ string) bool {
		return !strings.Contains(key, " "+ns+"/") && (!strings.Contains(key, " /") || strings.Contains(key, " namespaces "))
	})
	return all
}

func theirThings(t *testing.T, box *clustertest.Sandbox, ns string) string {
	t.Helper()
	return box.Run(t, clustertest.Remote, "", "-n", ns, "get", "secret,configmap,deployment,crd", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.labels} {.metadata.annotations}{end}")
}

func items(p *steps.Plan) string {
	var out []string
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			out = append(out, string(it.Verb)+" "+it.What)
		}
	}
	return strings.Join(out, "\n")
}

func TestAChartComesAndGoes(t *testing.T) {
	const ns = "chart-cycle"
	s, box := charting(t, "cycle", ns, true, map[string]any{"message": "hi", "widget": "w", "hook": map[string]any{"enabled": true}}, 0)
	before := around(t, box, ns)
	p := stepstest.Apply(t, s)
	want := `create Namespace chart-cycle
create Release chart-cycle/tiny
create CustomResourceDefinition tinywidgets.tiny.example.org
create Secret chart-cycle/tiny
create ConfigMap chart-cycle/tiny
create Deployment chart-cycle/tiny
create TinyWidget chart-cycle/w
run ConfigMap chart-cycle/tiny-hook`
	if d := cmp.Diff(want, items(p)); d != "" {
		t.Error(d)
	}
	again, err := s.Plan(t.Context(), steps.Scope{})
	if err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	// Drift is seen and mended, and nothing random is made anew.
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "tiny")
	drifted, err := s.Plan(t.Context(), steps.Scope{})
	if err != nil || drifted.Tally("")[steps.Create] != 1 || drifted.Has(steps.Update) {
		t.Errorf("after a loss apply would do\n%s\n%v", items(drifted), err)
	}
	stepstest.Apply(t, s)
	undone := stepstest.Undo(t, s)
	if n := undone.Tally(""); n[steps.Leave] != 0 || n[steps.Release] != 0 {
		t.Errorf("undo was\n%s", items(undone))
	}
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not leave things as they were (-before +after):\n%s", d)
	}
}

func TestTwoLinksShareARelease(t *testing.T) {
	const ns = "chart-shared"
	space(t, ns)
	a, box := charting(t, "first", ns, false, map[string]any{"widget": "w"}, 0)
	b, _ := charting(t, "second", ns, false, map[string]any{"widget": "w"}, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, a)
	p := stepstest.Apply(t, b)
	if p.Empty() || p.Has(steps.Create) || !strings.Contains(p.Actions[0].Change.Items[0].Note, "link first made it") {
		t.Errorf("the second link would do\n%s", items(p))
	}
	if again, err := b.Plan(t.Context(), steps.Scope{}); err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	undone := stepstest.Undo(t, a)
	if undone.Has(steps.Delete) || !undone.Has(steps.Release) {
		t.Errorf("the first link's undo was\n%s", items(undone))
	}
	if again, err := b.Plan(t.Context(), steps.Scope{}); err != nil || !again.Empty() {
		t.Errorf("after the first link has gone the second would do\n%s\n%v", items(again), err)
	}
	got := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "configmap/tiny", "crd/tinywidgets.tiny.example.org", "secret/sh.helm.release.v1.tiny.v1", "-o",
		`jsonpath={range .items[*]}{.metadata.labels.carrick/link\.first}{.metadata.labels.carrick/link\.second}{.metadata.annotations.carrick/created-by} {end}`)
	if got != "installsecond installsecond installsecond " {
		t.Errorf("marks are %q", got)
	}
	stepstest.Undo(t, b)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not leave things as they were (-before +after):\n%s", d)
	}
}

func TestAReleaseOfSomebodyElse(t *testing.T) {
	const ns = "chart-theirs"
	space(t, ns)
	s, box := charting(t, "guest", ns, false, map[string]any{"message": "ours"}, 0)
	theirs := chart.Request{Name: "tiny", Namespace: ns, Source: tinyChart, Chart: "tiny", Version: "0.1.0", Manager: "helm", Values: map[string]any{"message": "theirs"}}
	c := box.Open(t, clustertest.Remote, cluster.Options{})
	if err := chart.Install(t.Context(), c, theirs, nil); err != nil {
		t.Fatal(err)
	}
	box.Cleanup(t, clustertest.Remote, "delete", "crd", "tinywidgets.tiny.example.org")
	before := theirThings(t, box, ns)
	p := stepstest.Apply(t, s)
	if !p.Empty() || !strings.Contains(p.Actions[0].Change.Items[0].Note, "somebody else made it") {
		t.Errorf("it would do\n%s", items(p))
	}
	if u := stepstest.Undo(t, s); !u.Empty() {
		t.Errorf("undo was\n%s", items(u))
	}
	if d := cmp.Diff(before, theirThings(t, box, ns)); d != "" {
		t.Errorf("something was touched:\n%s", d)
	}

	// Another version of theirs is changed only when it is taken over.
	older := theirs
	older.Source = chart.Source(older0(t))
	older.Version, older.Manager = "0.0.9", "helm"
	older.TakeOver = true
	if err := chart.Install(t.Context(), c, older, nil); err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(t.Context(), steps.Scope{})
	if err != nil || len(p.Conflicts()) == 0 {
		t.Fatalf("%s\n%v", items(p), err)
	}
	var conflict *steps.ConflictError
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); !errors.As(err, &conflict) {
		t.Errorf("it says %v", err)
	}
	if r, err := chart.Find(t.Context(), c, ns, "tiny"); err != nil || r.Version != "0.0.9" {
		t.Errorf("%+v, %v", r, err)
	}
}

// older0 is the small chart, in an older version.
func older0(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyTree(t, tinyChart, dir, func(text string) string { return strings.Replace(text, "version: 0.1.0", "version: 0.0.9", 1) })
	return dir
}

func TestAFailedChartSaysWhyAndIsTakenBack(t *testing.T) {
	const ns = "chart-failed"
	space(t, ns)
	values := map[string]any{"nodeSelector": map[string]any{"example.org/none": "here"}, "password": cluster.Mask("correct-horse")}
	s, box := charting(t, "failing", ns, false, values, 3*time.Second)
	before := around(t, box, ns)
	p, err := s.Plan(t.Context(), steps.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%+v", p)
	if strings.Contains(shown, "correct-horse") || !strings.Contains(shown, "password: (hidden)") {
		t.Errorf("the plan shows %s", shown)
	}
	err = s.Apply(t.Context(), p, steps.ApplyOptions{}, nil)
	if err == nil || !strings.Contains(err.Error(), "0 of 1 ready: pod tiny-") || !strings.Contains(err.Error(), "can't be scheduled: 0/") {
		t.Errorf("it says %v", err)
	}
	t.Log(err)
	p, err = s.Plan(t.Context(), steps.Scope{})
	if err != nil || !strings.Contains(p.Actions[0].Change.Items[0].Note, "it stands at failed") {
		t.Errorf("after that: %s %v", items(p), err)
	}
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not leave things as they were (-before +after):\n%s", d)
	}
}
