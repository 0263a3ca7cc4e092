package engine_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

const tinyChart = "../../cluster/chart/testdata/tiny"

// charting opens a link of a guide that creates a namespace and installs the small chart in it.
func charting(
	t *testing.T, link, space string, own bool, values map[string]any, timeout time.Duration,
) (*engine.Session, *clustertest.Sandbox) {
	t.Helper()
	box := clustertest.Start(t)
	box.Cleanup(t, clustertest.Remote, "delete", "crd", "tinywidgets.tiny.example.org")
	role := func(name string) steps.Role { return steps.Role{Name: name, Kind: steps.Cluster} }
	install := steps.Action{Name: "install", Title: "Install", On: steps.Remote, Doer: action.Chart{
		Release: "tiny", Namespace: "${answers.space}", Chart: "tiny", Timeout: timeout,
		Source:  func(context.Context, steps.Env) (chart.Source, error) { return tinyChart, nil },
		Version: func(context.Context, steps.Env) (string, error) { return "0.1.0", nil },
		Values:  func(context.Context, steps.Env) (map[string]any, error) { return values, nil },
	}}
	actions := []steps.Action{install}
	assets := fstest.MapFS{}
	if own {
		actions = []steps.Action{
			{Name: "space", Title: "Make", On: steps.Remote, Doer: action.Manifest{File: "a.yaml"}}, install,
		}
		assets["a.yaml"] = &fstest.MapFile{
			Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: '${answers.space}'}\n"),
		}
	}
	g := guide("charting", role("here"), role("there"), steps.Step{
		Ask:     []steps.Question{{Key: "space", Title: "Namespace", Help: "h", Kind: steps.Namespace}},
		Actions: actions,
		Checks:  []steps.Check{{Name: "holds", Title: "it holds", Why: "w", On: steps.Remote, NotChecked: "nothing"}},
	})
	return stepstest.Open(t, box, action.WithDrift(g), assets, link, map[string]any{"space": space}), box
}

// around returns the objects in a namespace and the cluster-wide objects, once garbage collection is done. It ignores
// namespaces of other tests, which may be terminating.
func around(t *testing.T, box *clustertest.Sandbox, ns string) map[string]string {
	t.Helper()
	box.Run(t, clustertest.Remote, "", "-n", ns, "wait", "--for=delete", "pod,replicaset", "--all", "--timeout=300s")
	all := stepstest.Snapshot(t, box)
	maps.DeleteFunc(all, func(key, _ string) bool {
		return !strings.Contains(key, " "+ns+"/") && (!strings.Contains(key, " /") || strings.Contains(key, " namespaces "))
	})
	return all
}

func theirThings(t *testing.T, box *clustertest.Sandbox, ns string) string {
	t.Helper()
	return box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "secret,configmap,deployment,crd", "-o",
		"jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.labels} {.metadata.annotations}{end}",
	)
}

func items(p *engine.Plan) string {
	var out []string
	for _, a := range p.Actions {
		for _, it := range a.Change.Items {
			out = append(out, string(it.Verb)+" "+it.What)
		}
	}
	return strings.Join(out, "\n")
}

func TestAChartComesAndGoes(t *testing.T) {
	t.Parallel()
	const ns = "chart-cycle"
	s, box := charting(
		t, "cycle", ns, true, map[string]any{"message": "hi", "widget": "w", "hook": map[string]any{"enabled": true}}, 0,
	)
	before := around(t, box, ns)
	p := stepstest.Apply(t, s)
	want := `create Namespace chart-cycle
create ClusterRole carrick:cycle
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
	again, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	// Drift is found and fixed, and random values are not generated again.
	d := drifting{t, s, box, ns}
	d.becomes(steps.Pass, "all 7")
	box.Run(t, clustertest.Remote, "", "-n", ns, "scale", "deployment", "tiny", "--replicas=2")
	d.becomes(steps.Warn, "Deployment chart-cycle/tiny: spec.replicas is 2 instead of 1")
	stepstest.Apply(t, s, steps.ApplyOptions{TakeOver: true})
	d.becomes(steps.Pass, "all 7")
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "tiny")
	d.becomes(steps.Fail, "ConfigMap chart-cycle/tiny is gone")
	drifted, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || drifted.Tally("")[steps.Create] != 1 || drifted.Has(steps.Update) {
		t.Errorf("after a loss apply would do\n%s\n%v", items(drifted), err)
	}
	stepstest.Apply(t, s)
	undone := stepstest.Undo(t, s)
	if n := undone.Tally(""); n[steps.Leave] != 0 || n[steps.Release] != 0 {
		t.Errorf("undo was\n%s", items(undone))
	}
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

func TestTwoLinksShareARelease(t *testing.T) {
	t.Parallel()
	const ns = "chart-shared"
	space(t, ns)
	a, box := charting(t, "first", ns, false, map[string]any{"widget": "w"}, 0)
	b, _ := charting(t, "second", ns, false, map[string]any{"widget": "w"}, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, a)
	p := stepstest.Apply(t, b)
	if p.Empty() || p.Tally("")[steps.Create] != 1 /* its inventory */ ||
		!strings.Contains(p.Actions[0].Change.Items[0].Note, "link first created the release") {
		t.Errorf("the second link would do\n%s", items(p))
	}
	if again, err := b.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	undone := stepstest.Undo(t, a)
	if undone.Tally("")[steps.Delete] != 1 /* its inventory */ || !undone.Has(steps.Release) {
		t.Errorf("the first link's undo was\n%s", items(undone))
	}
	if again, err := b.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
		t.Errorf("after the first link has gone the second would do\n%s\n%v", items(again), err)
	}
	got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap/tiny", "crd/tinywidgets.tiny.example.org",
		"secret/sh.helm.release.v1.tiny.v1", "-o",
		`jsonpath={range .items[*]}{.metadata.labels.carrick/link\.first}{.metadata.labels.carrick/link\.second}{.metadata.annotations.carrick/created-by} {end}`,
	)
	if got != "installsecond installsecond installsecond " {
		t.Errorf("marks are %q", got)
	}
	stepstest.Undo(t, b)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

func TestAReleaseOfSomebodyElse(t *testing.T) {
	t.Parallel()
	const ns = "chart-theirs"
	space(t, ns)
	s, box := charting(t, "guest", ns, false, map[string]any{"message": "ours"}, 0)
	theirs := chart.Request{
		Name: "tiny", Namespace: ns, Source: tinyChart, Chart: "tiny", Version: "0.1.0", Manager: "helm",
		Values: map[string]any{"message": "theirs"},
	}
	c := box.Open(t, clustertest.Remote, cluster.Options{})
	if err := chart.Install(t.Context(), c, theirs, nil); err != nil {
		t.Fatal(err)
	}
	before := theirThings(t, box, ns)
	p := stepstest.Apply(t, s)
	if !p.Empty() || !strings.Contains(p.Actions[0].Change.Items[0].Note, "another user installed it") {
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
	older.Source, older.Version, older.TakeOver = chart.Source(older0(t)), "0.0.9", true
	if err := chart.Install(t.Context(), c, older, nil); err != nil {
		t.Fatal(err)
	}
	// Helm 3 writes without server-side apply.
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "patch", "configmap", "tiny", "--field-manager=helm", "--type=merge", "-p",
		`{"data":{"helm3":"old"}}`,
	)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || len(p.Conflicts()) != 1 {
		t.Fatalf("%s\n%v", items(p), err)
	}
	var conflict *action.ConflictError
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); !errors.As(err, &conflict) {
		t.Errorf("it says %v", err)
	}
	if r, err := chart.Find(t.Context(), c, ns, "tiny"); err != nil || r.Version != "0.0.9" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	r, err := chart.Current(t.Context(), c, ns, "tiny")
	if err != nil || r.Version != "0.1.0" || r.Status != chart.Deployed || r.Revision != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap/tiny", "-o", "jsonpath={.data} {.metadata.labels}",
	); got != `{"message":"ours","revision":"3"} {"app.kubernetes.io/managed-by":"Helm"}` {
		t.Errorf("after the take-over: %s", got)
	}
	if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() {
		t.Errorf("it would do\n%s\n%v", items(p), err)
	}
	if u := stepstest.Undo(t, s); !u.Empty() {
		t.Errorf("undo was\n%s", items(u))
	}
}

// Two links want different values. The second link must take the release over, and both share it afterwards.
func TestALinkChangesASharedRelease(t *testing.T) {
	t.Parallel()
	const ns = "chart-moved"
	space(t, ns)
	a, box := charting(t, "early", ns, false, map[string]any{"extra": map[string]any{"enabled": true}}, 0)
	b, _ := charting(t, "late", ns, false, map[string]any{"widget": "w"}, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, a)
	if err := takeOver(t, b); err != nil {
		t.Fatal(err)
	}
	get := func(what ...string) string {
		return box.Run(
			t, clustertest.Remote, "", append(append([]string{"-n", ns, "get", "--ignore-not-found"}, what...), "-o",
				`jsonpath={.metadata.labels.carrick/link\.early}{.metadata.labels.carrick/link\.late}`)...,
		)
	}
	if got := get("configmap/tiny-extra"); got != "" {
		t.Errorf("what the new values leave out is still there: %s", got)
	}
	for _, what := range []string{"tinywidget/w", "configmap/tiny", "secret/sh.helm.release.v1.tiny.v2"} {
		if got := get(what); got != "installinstall" {
			t.Errorf("%s has the marks %q", what, got)
		}
	}
	stepstest.Undo(t, b)
	for _, what := range []string{"tinywidget/w", "configmap/tiny", "secret/sh.helm.release.v1.tiny.v2"} {
		if got := get(what); got != "install" {
			t.Errorf("%s has the marks %q", what, got)
		}
	}
	stepstest.Undo(t, a)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// Other users' objects keep the CRD, and the namespace that contains them.
func TestUndoOfAChartLeavesWhatIsInUse(t *testing.T) {
	t.Parallel()
	const ns, other = "chart-used", "chart-user"
	space(t, other)
	s, box := charting(t, "used", ns, true, nil, 0)
	stepstest.Apply(t, s)
	box.Run(
		t, clustertest.Remote, "apiVersion: tiny.example.org/v1\nkind: TinyWidget\nmetadata: {name: precious}\n", "-n", other,
		"apply", "-f", "-",
	)
	p := stepstest.Undo(t, s)
	var note string
	for _, it := range p.Of(steps.Leave) {
		note += it.What + ": " + it.Note
	}
	if !strings.Contains(
		note,
		"CustomResourceDefinition tinywidgets.tiny.example.org: it contains objects that are not this link's: TinyWidget "+
			"chart-user/precious",
	) {
		t.Errorf("undo was\n%s\n%s", items(p), note)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "-n", other, "get", "tinywidget", "-o", "name",
	); !strings.Contains(got, "precious") {
		t.Errorf("left: %q", got)
	}
	box.Run(t, clustertest.Remote, "", "-n", other, "delete", "tinywidget", "precious")
	stepstest.Undo(t, s)
	if got := box.Run(
		t, clustertest.Remote, "", "get", "crd", "tinywidgets.tiny.example.org", "--ignore-not-found", "-o", "name",
	); got != "" {
		t.Errorf("left: %q", got)
	}
}

// A tenant can create Secrets that look like releases of this link. Undo names them and continues.
func TestVerifyUndoOfAChartPassesOverWhatIsNoRelease(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns, tenant = "chart-real", "chart-tenant"
	s, box := charting(t, "planted", ns, true, nil, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	planted := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + tenant +
		"}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + tenant + "-2}\n"
	for name, labels := range map[string]string{
		"sh.helm.release.v1.garbage.v1": `name: garbage, version: "1"`,
		"misnamed":                      `name: tiny, version: "1"`,
		"unnamed":                       `version: "1"`,
		"odd":                           `name: Odd_Name, version: "1"`,
	} {
		planted += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + tenant +
			", labels: {owner: helm, carrick/link.planted: install, " + labels + "}}\nstringData: {release: nonsense}\n"
	}
	box.Run(t, clustertest.Remote, planted, "apply", "--server-side", "--field-manager=carrick.planted.install", "-f", "-")
	var copied unstructured.Unstructured
	if err := json.Unmarshal(
		[]byte(box.Run(t, clustertest.Remote, "", "-n", ns, "get", "secret", "sh.helm.release.v1.tiny.v1", "-o", "json")),
		&copied.Object,
	); err != nil {
		t.Fatal(err)
	}
	copied.Object["metadata"] = map[string]any{
		"name": copied.GetName(), "namespace": tenant + "-2", "labels": copied.Object["metadata"].(map[string]any)["labels"],
	}
	text, err := copied.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, string(text), "create", "-f", "-")
	p := stepstest.Undo(t, s)
	if strings.Contains(items(p), "helm uninstall") {
		t.Errorf("undo prints a command that runs a tenant's hooks:\n%s", items(p))
	}
	if left := p.Of(steps.Leave); len(left) != 5 || !slices.ContainsFunc(left, func(it steps.Item) bool {
		return it.What == "Release chart-tenant/garbage" && strings.Contains(it.Note, "cannot be read")
	}) {
		t.Errorf("left are %+v", left)
	}
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// A user who can write Secrets in the namespace of a release can break its record. Undo keeps the record and does the
// rest.
func TestVerifyUndoOfAChartWithABrokenRecord(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns = "chart-broken"
	s, box := charting(t, "broken", ns, true, nil, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	withStored(t, box, ns, func(release map[string]any) { release["manifest"] = "---\nkind: [}\n" })
	s.Forget()
	p := stepstest.Undo(t, s)
	if left := p.Of(steps.Leave); len(left) != 1 || left[0].What != "Release chart-broken/tiny" ||
		!strings.Contains(left[0].Note, "cannot be read") {
		t.Errorf("left are %+v", left)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "secret", "sh.helm.release.v1.tiny.v1", "--ignore-not-found")
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// withHooks adds hooks to the stored release of the small chart.
func withHooks(t *testing.T, box *clustertest.Sandbox, ns string, hooks ...map[string]any) {
	t.Helper()
	withStored(t, box, ns, func(release map[string]any) { release["hooks"] = hooks })
}

// withStored changes the stored release of the small chart, as any user who can write Secrets there can.
func withStored(t *testing.T, box *clustertest.Sandbox, ns string, change func(release map[string]any)) {
	t.Helper()
	const secret = "sh.helm.release.v1.tiny.v1"
	packed, err := base64.StdEncoding.DecodeString(box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "secret", secret, "-o", `go-template={{.data.release | base64decode}}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	release := map[string]any{}
	if err := json.NewDecoder(unpacked).Decode(&release); err != nil {
		t.Fatal(err)
	}
	change(release)
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(w).Encode(release), w.Close()); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(
		map[string]any{"stringData": map[string]any{"release": base64.StdEncoding.EncodeToString(out.Bytes())}},
	)
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "patch", "secret", secret, "--type=merge", "-p", string(patch))
}

// A user who can write Secrets in the namespace of a release can add hooks to its record. Undo runs none of them.
func TestVerifyUndoRunsNoStoredHooks(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns, production = "chart-hooked", "chart-production"
	s, box := charting(t, "hooked", ns, true, nil, 0)
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrolebinding", "planted")
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "create", "namespace", production)
	withHooks(t, box, ns, map[string]any{
		"name": "planted", "kind": "ClusterRoleBinding", "path": "tiny/templates/a.yaml", "events": []string{"pre-delete"},
		"weight": 0,
		"manifest": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: planted}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{apiGroup: " +
			"rbac.authorization.k8s.io, kind: User, name: mallory}]\n",
	}, map[string]any{
		"name": production, "kind": "Namespace", "path": "tiny/templates/b.yaml", "events": []string{"post-delete"},
		"weight": 0, "delete_policies": []string{"before-hook-creation", "hook-succeeded"},
		"manifest": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + production + "}\n",
	})
	s.Forget()
	p := stepstest.Undo(t, s)
	for _, what := range []string{
		"pre-delete hook ClusterRoleBinding planted of Release " + ns + "/tiny",
		"post-delete hook Namespace " + production + " of Release " + ns + "/tiny",
	} {
		if !slices.ContainsFunc(p.Of(steps.Leave), func(it steps.Item) bool {
			return it.What == what && strings.Contains(it.Note, "helm get hooks -n "+ns+" tiny")
		}) {
			t.Errorf("the plan does not name %s: %+v", what, p.Of(steps.Leave))
		}
	}
	if got := box.Run(
		t, clustertest.Remote, "", "get", "clusterrolebinding", "planted", "--ignore-not-found", "-o", "name",
	); got != "" {
		t.Errorf("undo made %s", got)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "get", "namespace", production, "-o", "jsonpath={.status.phase}",
	); got != "Active" {
		t.Errorf("the namespace is %s", got)
	}
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// A user who can write the Secret of a release can add other objects to it, and remove the link's objects from it. Undo
// and upgrades use the inventory instead.
func TestVerifyAStoredReleaseNamesNothingToDelete(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns, production = "chart-stored", "chart-prod"
	s, box := charting(t, "stored", ns, true, nil, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	space(t, production)
	victim := `{apiVersion: v1, kind: ConfigMap, metadata: {name: precious, namespace: ` + production + `,
labels: {app.kubernetes.io/managed-by: Helm, carrick/link.stored: install},
annotations: {meta.helm.sh/release-name: tiny, meta.helm.sh/release-namespace: ` + ns +
		`, carrick/created-by: stored}}, data: {a: b}}`
	box.Run(t, clustertest.Remote, victim, "apply", "--server-side", "--field-manager=carrick.stored.install", "-f", "-")
	withStored(t, box, ns, func(release map[string]any) {
		release["manifest"] = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: precious, namespace: " + production +
			"}\n"
	})
	s.Forget()
	if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || p.Has(steps.Delete) {
		t.Errorf("apply would do\n%s\n%v", items(p), err)
	}
	withStored(t, box, ns, func(release map[string]any) {
		manifest, _ := release["manifest"].(string)
		release["manifest"] = manifest +
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: planted-by-record}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{apiGroup: " +
			"rbac.authorization.k8s.io, kind: User, name: mallory}]\n"
	})
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrolebinding", "planted-by-record")
	s.Forget()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || p.Has(steps.Create) {
		t.Errorf("apply would do\n%s\n%v", items(p), err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Error(err)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "get", "clusterrolebinding", "planted-by-record", "--ignore-not-found", "-o", "name",
	); got != "" {
		t.Errorf("apply created %s", got)
	}
	s.Forget()
	stepstest.Undo(t, s)
	if got := box.Run(
		t, clustertest.Remote, "", "-n", production, "get", "configmap", "precious", "-o", "jsonpath={.data}",
	); got != `{"a":"b"}` {
		t.Errorf("the victim is %q", got)
	}
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// The permissions in a plan are sufficient to apply and to undo it.
func TestTheRightsOfAChartAreEnough(t *testing.T) {
	t.Parallel()
	const ns = "chart-rights"
	space(t, ns)
	s, box := charting(t, "lender", ns, false, nil, 0)
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrole,clusterrolebinding", "chart-narrow")
	bind := func(rights ...permission.Rule) {
		var all []permission.Rule
		for _, r := range rights {
			r.Name = "" // a Role can't bind create to a name; what is asked is the wider right
			all = append(all, r)
		}
		for i, doc := range strings.Split(steps.Grant("chart-narrow", all), "---\n") {
			kind, scope := "clusterrole", []string{"create", "clusterrolebinding"}
			if strings.Contains(doc, "kind: Role\n") {
				kind, scope = "role", []string{"-n", ns, "create", "rolebinding"}
			}
			box.Run(t, clustertest.Remote, doc, "apply", "-f", "-")
			box.Run(
				t, clustertest.Remote, "",
				append(scope, fmt.Sprintf("chart-narrow-%d", i), "--"+kind+"=chart-narrow", "--user=narrow")...,
			)
			box.Cleanup(t, clustertest.Remote, "delete", "clusterrolebinding", fmt.Sprintf("chart-narrow-%d", i))
		}
	}
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := cluster.Open(
		kubeconfig.Access{
			Kubeconfig: box.Kubeconfigs[clustertest.Remote], Context: box.Contexts[clustertest.Remote], As: "narrow",
		},
		cluster.Options{},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(narrow.Close)
	install, _ := s.Guide().Action("install")
	doer := install.Doer.(action.Chart)
	doer.Namespace = ns
	env := steps.Env{Cluster: narrow, Link: "lender", Action: "install"}
	poor, err := doer.Plan(t.Context(), env)
	if err != nil || len(poor.Items) != 1 || !poor.Items[0].Refused || len(poor.Permissions) == 0 {
		t.Errorf("who may nothing is told %+v, %v", poor, err)
	}
	bind(p.Actions[0].Change.Permissions...)
	if err := doer.Do(t.Context(), env, nil); err != nil {
		t.Fatalf("with the rights of the plan: %v", err)
	}
	undo, err := s.PlanUndo(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"role", "rolebinding"} {
		box.Run(t, clustertest.Remote, "", "-n", ns, "delete", kind, "--all")
	}
	box.Run(
		t, clustertest.Remote, "", "delete", "clusterrolebinding", "chart-narrow-0", "chart-narrow-1", "--ignore-not-found",
	)
	bind(append(undo.Actions[0].Change.Permissions, p.Actions[0].Change.Permissions...)...)
	if err := doer.Undo(t.Context(), env, nil); err != nil {
		t.Errorf("with the rights of the plan: %v", err)
	}
}

// older0 returns an older version of the small chart.
func older0(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyTree(
		t, tinyChart, dir, func(text string) string { return strings.Replace(text, "version: 0.1.0", "version: 0.0.9", 1) },
	)
	return dir
}

func TestAFailedChartSaysWhyAndIsTakenBack(t *testing.T) {
	t.Parallel()
	const ns = "chart-failed"
	space(t, ns)
	values := map[string]any{
		"nodeSelector": map[string]any{"example.org/none": "here"}, "password": masked.New("correct-horse"),
	}
	s, box := charting(t, "failing", ns, false, values, 3*time.Second)
	before := around(t, box, ns)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%+v", p)
	if strings.Contains(shown, "correct-horse") || !strings.Contains(shown, "password: (hidden)") {
		t.Errorf("the plan shows %s", shown)
	}
	err = s.Apply(t.Context(), p, steps.ApplyOptions{}, nil)
	if err == nil || !strings.Contains(err.Error(), "0 of 1 ready: pod tiny-") ||
		!strings.Contains(err.Error(), "cannot be scheduled: 0/") {
		t.Errorf("it says %v", err)
	}
	t.Log(err)
	p, err = s.Plan(t.Context(), engine.Scope{})
	if err != nil || !strings.Contains(p.Actions[0].Change.Items[0].Note, "it has status failed") {
		t.Errorf("after that: %s %v", items(p), err)
	}
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// planted is an object in a stored release that must not be created.
const planted = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n" +
	"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{apiGroup: " +
	"rbac.authorization.k8s.io, kind: User, name: mallory}]\n"

// plant adds a binding to the stored release of a link and sets its status, with the field manager of the link.
func plant(t *testing.T, box *clustertest.Sandbox, link, ns, name, status string) {
	t.Helper()
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrolebinding", name, "--ignore-not-found")
	withStored(t, box, ns, func(release map[string]any) {
		manifest, _ := release["manifest"].(string)
		release["manifest"] = strings.ReplaceAll(manifest, "message: \"hello\"", "message: \"forged\"") +
			fmt.Sprintf(planted, name)
		release["info"].(map[string]any)["status"] = status
	})
	var secret unstructured.Unstructured
	if err := json.Unmarshal(
		[]byte(box.Run(t, clustertest.Remote, "", "-n", ns, "get", "secret", "sh.helm.release.v1.tiny.v1", "-o", "json")),
		&secret.Object,
	); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(secret.Object, "metadata", field)
	}
	if err := unstructured.SetNestedField(secret.Object, status, "metadata", "labels", "status"); err != nil {
		t.Fatal(err)
	}
	text, err := secret.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	box.Run(
		t, clustertest.Remote, string(text), "apply", "--server-side", "--force-conflicts",
		"--field-manager=carrick."+link+".install", "-f", "-",
	)
}

// harmless fails the test if the planted binding or the forged value was applied, or if the release does not exist.
func harmless(t *testing.T, box *clustertest.Sandbox, ns, name string) {
	t.Helper()
	if got := box.Run(
		t, clustertest.Remote, "", "get", "clusterrolebinding", name, "--ignore-not-found", "-o", "name",
	); got != "" {
		t.Errorf("apply created %s", got)
	}
	if got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap", "tiny", "-o", "jsonpath={.data.message}",
	); got != "hello" {
		t.Errorf("the value is %q", got)
	}
	r, err := chart.Current(t.Context(), box.Open(t, clustertest.Remote, cluster.Options{}), ns, "tiny")
	if err != nil || r.Status != chart.Deployed {
		t.Errorf("%+v, %v", r, err)
	}
}

// notes reports whether an item that a plan changes has a note with this text.
func notes(p *engine.Plan, text string) bool {
	return slices.ContainsFunc(p.Of(steps.Update), func(it steps.Item) bool { return strings.Contains(it.Note, text) })
}

// carrick continues or keeps a stored release, whether pending or complete, only if this link wrote its content.
func TestVerifyAStoredReleaseIsBelievedAsItWasWritten(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	for _, status := range []string{chart.PendingInstall, chart.Deployed} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			ns, binding := "chart-believed-"+status, "planted-"+status
			s, box := charting(t, "believer-"+status, ns, true, nil, 0)
			before := around(t, box, ns)
			stepstest.Apply(t, s)
			plant(t, box, "believer-"+status, ns, binding, status)
			s.Forget()
			p := stepstest.Apply(t, s)
			if !notes(p, "its Secret differs from the inventory") || len(p.Conflicts()) > 0 {
				t.Errorf("it would do\n%s", items(p))
			}
			harmless(t, box, ns, binding)
			if again, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
				t.Errorf("a second apply would do\n%s\n%v", items(again), err)
			}
			stepstest.Undo(t, s)
			if d := cmp.Diff(before, around(t, box, ns)); d != "" {
				t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
			}
		})
	}
}

// A user who can write Secrets in the namespace can replace this link's release with a pending release that has hooks.
// Installing over it requires confirmation. carrick runs none of its hooks, and prints no command that would run them.
func TestVerifyAReleasePutInTheLinksPlaceIsInstalledAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns, link, binding = "chart-replaced", "replaced", "planted-replaced"
	s, box := charting(t, link, ns, true, nil, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	plant(t, box, link, ns, binding, chart.PendingInstall)
	box.Run(t, clustertest.Remote, "", "-n", ns, "label", "secret", "sh.helm.release.v1.tiny.v1", "carrick/link."+link+"-")
	s.Forget()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || len(p.Conflicts()) != 1 ||
		!strings.Contains(p.Conflicts()[0].Note, "its Secret differs from the inventory") ||
		strings.Contains(items(p), "helm ") {
		t.Fatalf("it would do\n%s\n%v", items(p), err)
	}
	stepstest.Apply(t, s, steps.ApplyOptions{TakeOver: true})
	harmless(t, box, ns, binding)
	if again, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	stepstest.Undo(t, s)
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "secret", "sh.helm.release.v1.tiny.v1", "--ignore-not-found")
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// A release with this link's mark but without an inventory entry is from an earlier version, or forged. Taking it over
// requires a separate confirmation. Even then carrick uses none of its content.
func TestVerifyAReleaseWithoutAnEntryIsTakenOver(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	for _, status := range []string{chart.PendingInstall, chart.Deployed} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			ns, link, binding := "chart-unentered-"+status, "unentered-"+status, "unentered-"+status
			s, box := charting(t, link, ns, true, nil, 0)
			before := around(t, box, ns)
			stepstest.Apply(t, s)
			noInventory(t, box, link)
			plant(t, box, link, ns, binding, status)
			s.Forget()
			p, err := s.Plan(t.Context(), engine.Scope{})
			if err != nil || len(p.Conflicts()) != 1 || p.Conflicts()[0].What != "Release "+ns+"/tiny" ||
				!strings.Contains(p.Conflicts()[0].Note, "is not in the inventory") {
				t.Fatalf("it would do\n%s\n%v", items(p), err)
			}
			if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); !errors.As(err, new(*action.ConflictError)) {
				t.Errorf("it says %v", err)
			}
			s.Forget()
			if err := takeOver(t, s); err != nil {
				t.Fatal(err)
			}
			harmless(t, box, ns, binding)
			if again, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
				t.Errorf("a second apply would do\n%s\n%v", items(again), err)
			}
			stepstest.Undo(t, s)
			if d := cmp.Diff(before, around(t, box, ns)); d != "" {
				t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
			}
		})
	}
}

// withoutContent changes the inventory of a link to the format of an earlier version.
func withoutContent(t *testing.T, box *clustertest.Sandbox, link string) {
	t.Helper()
	const key = "carrick/inventory.install"
	var list []map[string]any
	text := box.Run(
		t, clustertest.Remote, "", "get", "clusterrole", "carrick:"+link, "-o",
		`jsonpath={.metadata.annotations.carrick/inventory\.install}`,
	)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		delete(e, "content")
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, "", "annotate", "--overwrite", "clusterrole", "carrick:"+link, key+"="+string(b))
}

// A release of the previous version has an inventory entry without a hash of its content. carrick installs it again
// without confirmation, and can undo it.
func TestVerifyAReleaseOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns = "chart-before"
	s, box := charting(t, "versioned", ns, true, nil, 0)
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	withoutContent(t, box, "versioned")
	s.Forget()
	p := stepstest.Apply(t, s)
	if !notes(p, "an earlier version of carrick installed it") || len(p.Conflicts()) > 0 {
		t.Errorf("it would do\n%s", items(p))
	}
	if again, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !again.Empty() {
		t.Errorf("a second apply would do\n%s\n%v", items(again), err)
	}
	withoutContent(t, box, "versioned")
	s.Forget()
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
}

// The stored release is part of the confirmed plan.
func TestAPlanIsOfWhatIsStored(t *testing.T) {
	t.Parallel()
	const ns = "chart-replanned"
	values := map[string]any{}
	s, box := charting(t, "replanned", ns, true, values, 0)
	stepstest.Apply(t, s)
	values["message"] = "other"
	s.Forget()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || !p.Has(steps.Update) {
		t.Fatalf("it would do\n%s\n%v", items(p), err)
	}
	plant(t, box, "replanned", ns, "planted-replanned", chart.Deployed)
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err == nil ||
		!strings.Contains(err.Error(), "changed since you confirmed") {
		t.Errorf("it says %v", err)
	}
	s.Forget()
	stepstest.Apply(t, s)
	stepstest.Undo(t, s)
}

// A user who can write the Secret of a release can add marks of other links to it. Only marks of links whose
// inventories contain the release count. A link without an inventory is named.
func TestVerifyAForgedMarkSharesNoRelease(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "trust")
	const ns = "chart-forged"
	space(t, ns)
	values := map[string]any{"extra": map[string]any{"enabled": true}}
	s, box := charting(t, "sole", ns, false, values, 0)
	other, _ := changed(t, "passer-by", ns, oneRole)
	stepstest.Apply(t, other)
	before := around(t, box, ns)
	stepstest.Apply(t, s)
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "label", "secret", "sh.helm.release.v1.tiny.v1",
		"carrick/link.passer-by=install", "carrick/link.unknown=install",
	)
	values["extra"] = map[string]any{"enabled": false}
	s.Forget()
	p := stepstest.Apply(t, s)
	if it := p.Actions[0].Change.Items[0]; len(p.Conflicts()) > 0 ||
		!strings.Contains(it.Note, "it has the label of link unknown, which has no inventory") {
		t.Errorf("it would do\n%s\n%+v", items(p), it)
	}
	role := box.Run(
		t, clustertest.Remote, "", "get", "clusterrole", "carrick:passer-by", "-o", "jsonpath={.metadata.annotations}",
	)
	if strings.Contains(role, "tiny") {
		t.Errorf("the inventory of the other link is %s", role)
	}
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, around(t, box, ns)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
	// If it belongs to another user, a forged label does not make this link join it.
	theirs := chart.Request{
		Name: "tiny", Namespace: ns, Source: tinyChart, Chart: "tiny", Version: "0.1.0", Manager: "helm",
	}
	if err := chart.Install(t.Context(), box.Open(t, clustertest.Remote, cluster.Options{}), theirs, nil); err != nil {
		t.Fatal(err)
	}
	delete(values, "extra")
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "label", "secret", "sh.helm.release.v1.tiny.v1",
		"carrick/link.passer-by=install",
	)
	s.Forget()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || !p.Empty() || !strings.Contains(p.Actions[0].Change.Items[0].Note, "another user installed it") {
		t.Errorf("it would do\n%s\n%v", items(p), err)
	}
}

// An upgrade deletes objects that the link created, and keeps objects that existed before.
func TestAnUpgradeLeavesWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	const ns = "chart-dropped"
	space(t, ns)
	values := map[string]any{"extra": map[string]any{"enabled": true}}
	s, box := charting(t, "dropper", ns, false, values, 0)
	extra := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tiny-extra, namespace: " + ns +
		", annotations: {meta.helm.sh/release-name: tiny, meta.helm.sh/release-namespace: " + ns + "}}\ndata: {a: theirs}\n"
	box.Run(t, clustertest.Remote, extra, "apply", "--server-side", "--field-manager=them", "-f", "-")
	get := func() string {
		return box.Run(
			t, clustertest.Remote, "", "-n", ns, "get", "configmap", "tiny-extra", "--ignore-not-found", "-o",
			"jsonpath={.data}",
		)
	}
	stepstest.Apply(t, s)
	values["extra"] = map[string]any{"enabled": false}
	s.Forget()
	if p := stepstest.Apply(t, s); p.Has(steps.Delete) ||
		!strings.Contains(items(p), "leave ConfigMap "+ns+"/tiny-extra") || get() != `{"a":"theirs"}` {
		t.Errorf("apply did\n%s\nand left %q", items(p), get())
	}
	stepstest.Undo(t, s)
	if got := get(); got != `{"a":"theirs"}` {
		t.Errorf("undo left %q", got)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "tiny-extra")
	values["extra"] = map[string]any{"enabled": true}
	s.Forget()
	stepstest.Apply(t, s)
	values["extra"] = map[string]any{"enabled": false}
	s.Forget()
	if p := stepstest.Apply(t, s); itemsOf(t, p, steps.Delete) != "ConfigMap "+ns+"/tiny-extra" || get() != "" {
		t.Errorf("apply did\n%s\nand left %q", items(p), get())
	}
	stepstest.Undo(t, s)
}
