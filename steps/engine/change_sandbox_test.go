package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"carrick/cluster/clustertest"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

// changing returns a guide with one action on the remote side.
func changing(asset string) (*steps.Guide, fstest.MapFS) {
	role := func(name string) steps.Role { return steps.Role{Name: name, Kind: steps.Cluster} }
	g := guide("changing", role("here"), role("there"), steps.Step{
		Ask:     []steps.Question{{Key: "space", Title: "Namespace", Help: "h", Kind: steps.Namespace}},
		Actions: []steps.Action{{Name: "make", Title: "Make", On: steps.Remote, Doer: action.Manifest{File: "a.yaml"}}},
		Checks:  []steps.Check{{Name: "holds", Title: "it holds", Why: "w", On: steps.Remote, NotChecked: "nothing"}},
	})
	return g, fstest.MapFS{"a.yaml": {Data: []byte(asset)}}
}

// changed opens a link of such a guide in a separate namespace.
func changed(t *testing.T, link, space, asset string) (*engine.Session, *clustertest.Sandbox) {
	t.Helper()
	box := clustertest.Start(t)
	g, assets := changing(asset)
	return stepstest.Open(t, box, g, assets, link, map[string]any{"space": space}), box
}

func space(t *testing.T, name string) {
	t.Helper()
	box := clustertest.Start(t)
	box.Run(t, clustertest.Remote, "", "create", "namespace", name)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", name, "--wait=false")
}

const filledIn = `
apiVersion: v1
kind: Service
metadata: {name: s, namespace: '${answers.space}'}
spec: {type: NodePort, selector: {app: x}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: '${answers.space}'}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
`

// Addresses, ports and UIDs that the server assigns differ between dry runs. They do not make a plan outdated.
func TestWhatTheServerFillsInIsNoOtherPlan(t *testing.T) {
	t.Parallel()
	space(t, "filled-in")
	s, _ := changed(t, "filled", "filled-in", filledIn)
	stepstest.Apply(t, s)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || !p.Empty() {
		t.Errorf("a second apply would change %+v, %v", p.Actions, err)
	}
	stepstest.Undo(t, s)
}

const labelled = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: '${answers.space}', labels: {app.kubernetes.io/name: ours}}
data: {a.b: ours, c: ours}
`

const theirs = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, labels: {app.kubernetes.io/name: theirs}}
data: {a.b: theirs}
`

func takeOver(t *testing.T, s *engine.Session) error {
	t.Helper()
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Conflicts()) == 0 {
		t.Fatal("there is no conflict: this proves nothing")
	}
	return s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil)
}

// takenOver returns a link that has taken over another manager's values, in a separate namespace.
func takenOver(t *testing.T, link, ns string) (*engine.Session, *clustertest.Sandbox) {
	t.Helper()
	space(t, ns)
	s, box := changed(t, link, ns, labelled)
	box.Run(t, clustertest.Remote, theirs, "-n", ns, "apply", "--server-side", "--field-manager=somebody", "-f", "-")
	if err := takeOver(t, s); err != nil {
		t.Fatal(err)
	}
	return s, box
}

func TestWhatIsTakenOverComesBackAlsoWithDotsInItsName(t *testing.T) {
	t.Parallel()
	const ns = "taken-over"
	s, box := takenOver(t, "taker", ns)
	// Later they change another value, which is taken over in its turn.
	box.Run(
		t, clustertest.Remote, strings.Replace(theirs, "a.b: theirs", "c: theirs", 1), "-n", ns, "apply", "--server-side",
		"--force-conflicts", "--field-manager=others", "-f", "-",
	)
	if err := takeOver(t, s); err != nil {
		t.Fatal(err)
	}
	stepstest.Undo(t, s)
	got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o",
		`jsonpath={.metadata.labels} {.metadata.annotations} {.data}`,
	)
	if want := `{"app.kubernetes.io/name":"theirs"}  {"a.b":"theirs","c":"theirs"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Undo keeps a value that another user changed after it was taken over.
func TestWhatWasChangedSinceIsNotPutBack(t *testing.T) {
	t.Parallel()
	const ns = "changed-since"
	s, box := takenOver(t, "past", ns)
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "patch", "configmap", "c", "--type=merge", "-p", `{"data":{"a.b":"newer"}}`,
	)
	stepstest.Undo(t, s)
	got := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o",
		`jsonpath={.metadata.labels} {.metadata.annotations} {.data}`,
	)
	if want := `{"app.kubernetes.io/name":"theirs"}  {"a.b":"newer"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// If two links took over the same value, the undo of the second link restores it.
func TestWhatTwoLinksTookOverComesBackWithTheLast(t *testing.T) {
	t.Parallel()
	const ns = "taken-twice"
	space(t, ns)
	a, box := changed(t, "first", ns, labelled)
	b, _ := changed(t, "second", ns, labelled)
	box.Run(t, clustertest.Remote, theirs, "-n", ns, "apply", "--server-side", "--field-manager=somebody", "-f", "-")
	if err := takeOver(t, a); err != nil {
		t.Fatal(err)
	}
	stepstest.Apply(t, b)
	value := func() string {
		return box.Run(t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c", "-o", `jsonpath={.data.a\.b}`)
	}
	stepstest.Undo(t, a)
	if got := value(); got != "ours" {
		t.Errorf("the second link has lost its value: %q", got)
	}
	stepstest.Undo(t, b)
	if got := value(); got != "theirs" {
		t.Errorf("the value is %q, not what it was", got)
	}
}

func TestASecretOfOthersIsNotOverwritten(t *testing.T) {
	t.Parallel()
	const ns = "secret-of-others"
	space(t, ns)
	secret := func(ns, value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: " + ns + "}\nstringData: {tls.crt: " + value +
			"}\n"
	}
	s, box := changed(t, "robber", ns, secret("'${answers.space}'", "ours"))
	box.Run(
		t, clustertest.Remote, strings.Replace(secret(ns, "dGhlaXJz"), "stringData", "data", 1), "apply", "--server-side",
		"--field-manager=somebody", "-f", "-",
	)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Apply(t.Context(), p, steps.ApplyOptions{TakeOver: true}, nil)
	got := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "secret", "s", "-o", `jsonpath={.data.tls\.crt}`)
	if err == nil || got != "dGhlaXJz" {
		t.Errorf("the value is %q, and apply said %v", got, err)
	}
}

const oneRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: '${answers.space}'}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`

// A copy that another user made has the label, too, but undo keeps it.
func TestUndoLeavesCopiesOfItsObjects(t *testing.T) {
	t.Parallel()
	const ns, other = "copied-from", "copied-to"
	space(t, ns)
	space(t, other)
	s, box := changed(t, "copied", ns, oneRole)
	stepstest.Apply(t, s)
	role := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "role", "r", "-o", "json")
	role = strings.ReplaceAll(role, `"namespace": "`+ns+`"`, `"namespace": "`+other+`"`)
	for _, field := range []string{"uid", "resourceVersion"} {
		role = dropped(role, field)
	}
	box.Run(t, clustertest.Remote, role, "create", "-f", "-")
	stepstest.Undo(t, s)
	if left := box.Run(
		t, clustertest.Remote, "", "-n", other, "get", "role", "r", "-o", "name",
	); !strings.Contains(left, "role") {
		t.Errorf("the copy is gone: %q", left)
	}
	if left := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "role", "r", "-o", "name", "--ignore-not-found",
	); left != "" {
		t.Errorf("%s is left", left)
	}
}

// dropped removes the line of a field from indented JSON.
func dropped(text, field string) string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		if !strings.Contains(l, `"`+field+`":`) {
			out = append(out, l)
		}
	}
	return strings.ReplaceAll(strings.Join(out, "\n"), ",\n    }", "\n    }")
}

const twoKinds = `
apiVersion: v1
kind: Namespace
metadata: {name: '${answers.space}'}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: '${answers.space}'}
rules: []
`

// The plan keeps an object because it is in use. If it becomes unused before the undo runs, undo does not delete it,
// but stops.
func TestUndoStopsWhenItIsNotWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	const ns = "left-and-emptied"
	s, box := changed(t, "emptied", ns, twoKinds)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "configmap", "precious")
	p, err := s.PlanUndo(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "precious")
	if err := s.Undo(t.Context(), p, nil); err == nil {
		t.Error("undo did something else than what was confirmed")
	}
	if box.Run(t, clustertest.Remote, "", "get", "namespace", ns, "-o", "name", "--ignore-not-found") == "" {
		t.Error("the namespace is gone")
	}
	stepstest.Undo(t, s)
}

// An object that can't be changed in place is not deleted if the server would reject the new one.
func TestReplaceIsNotOfferedForWhatIsInvalid(t *testing.T) {
	t.Parallel()
	const ns = "not-replaced"
	space(t, ns)
	s, box := changed(
		t, "replacer", ns, strings.Replace(oneRole, "resources: [pods]", "resources: [pods], nonResourceURLs: [/x]", 1),
	)
	box.Run(t, clustertest.Remote, "", "-n", ns, "create", "role", "r", "--verb=list", "--resource=pods")
	if p, err := s.Plan(t.Context(), engine.Scope{}); err == nil {
		t.Errorf("planned: %+v", p.Actions)
	}
}

// Apply waits until an object that is being deleted is gone, and then creates it again.
func TestApplyWaitsUntilAnObjectIsGone(t *testing.T) {
	t.Parallel()
	const ns = "being-deleted"
	space(t, ns)
	s, box := changed(t, "deleting", ns, labelled)
	stepstest.Apply(t, s)
	box.Run(
		t, clustertest.Remote, "", "-n", ns, "patch", "configmap", "c", "--type=merge", "-p",
		`{"metadata":{"finalizers":["example.org/hold"]}}`,
	)
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "configmap", "c", "--wait=false")
	p, err := s.Plan(t.Context(), engine.Scope{})
	const held = "is being deleted (blocked by example.org/hold)"
	if err != nil || len(p.Actions) != 1 || !strings.Contains(p.Actions[0].Pending, held) {
		t.Fatalf("planned %+v, %v", p.Actions, err)
	}
	waited := false
	err = s.Apply(t.Context(), p, steps.ApplyOptions{}, func(e steps.Event) {
		if waited || !strings.Contains(e.Text, held) {
			return
		}
		waited = true
		box.Run(
			t, clustertest.Remote, "", "-n", ns, "patch", "configmap", "c", "--type=merge", "-p",
			`{"metadata":{"finalizers":null}}`,
		)
	})
	if err != nil || !waited {
		t.Errorf("waited %v: %v", waited, err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c")
}

// otherVersion is an asset in one API version, for a cluster that serves another version.
const otherVersion = `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: a, namespace: '${answers.space}'}
spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}
`

// If a cluster serves a kind in another version than the asset's, that version is used to write, find and undo objects.
// If the cluster serves no version, there is nothing to undo.
func TestTheVersionThatIsServedIsWritten(t *testing.T) {
	t.Parallel()
	const ns = "other-version"
	space(t, ns)
	box := clustertest.Start(t)
	g, assets := changing(otherVersion)
	version, served := "v2", true
	m := g.Steps[0].Actions[0].Doer.(action.Manifest)
	m.Version = func(context.Context, steps.Env) (string, error) {
		if !served {
			return "", steps.Absent("none is served")
		}
		return version, nil
	}
	g.Steps[0].Actions[0].Doer = m
	s := stepstest.Open(t, box, g, assets, "version", map[string]any{"space": ns})
	stepstest.Apply(t, s)
	said := box.Run(
		t, clustertest.Remote, "", "-n", ns, "get", "hpa", "a", "--show-managed-fields", "-o",
		`jsonpath={.metadata.managedFields[?(@.operation=="Apply")].apiVersion}`,
	)
	if said != "autoscaling/v2" {
		t.Errorf("it is written in %q", said)
	}
	if p, err := s.Plan(t.Context(), engine.Scope{}); err != nil || !p.Empty() {
		t.Errorf("a second apply would change %+v, %v", p.Actions, err)
	}
	served = false
	if p, err := s.PlanUndo(t.Context(), engine.Scope{}); err != nil || len(p.Actions) != 0 {
		t.Errorf("undo would change %+v, %v", p, err)
	}
	served = true
	stepstest.Undo(t, s)
	if left := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "hpa", "-o", "name"); left != "" {
		t.Errorf("left is %s", left)
	}
}

// An object whose controller is outside the namespace may be another user's data, so the namespace is kept.
func TestANamespaceWithAnObjectOfAForeignControllerStays(t *testing.T) {
	t.Parallel()
	const ns = "foreign-controller"
	s, box := changed(t, "holder", ns, "apiVersion: v1\nkind: Namespace\nmetadata: {name: '${answers.space}'}\n")
	stepstest.Apply(t, s)
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", ns, "--wait=false")
	owner := box.Run(t, clustertest.Remote, "", "get", "namespace", "default", "-o", "jsonpath={.metadata.uid}")
	box.Run(
		t, clustertest.Remote, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: precious, namespace: `+ns+`,
ownerReferences: [{apiVersion: v1, kind: Namespace, name: default, uid: `+owner+`, controller: true}]},
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, "create", "-f", "-",
	)
	p, err := s.PlanUndo(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	it := p.Actions[0].Change.Items[0]
	if it.Verb != steps.Leave || !strings.Contains(it.Note, "PersistentVolumeClaim precious") {
		t.Errorf("%s %s: %s", it.Verb, it.What, it.Note)
	}
}

// If another part of the guide creates the namespace of a part, the plan of the part includes that action, and it is
// applied first.
func TestAPartCreatesItsNamespaceFirst(t *testing.T) {
	t.Parallel()
	box := clustertest.Start(t)
	const ns, configMap = "part-of", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: part-of}\n"
	g, assets := changing(configMap)
	g.Steps[0].Actions = append(g.Steps[0].Actions, steps.Action{
		Name: "space", Title: "Create the namespace", On: steps.Remote, Doer: action.Manifest{File: "space.yaml"},
	})
	assets["space.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: part-of}\n")}
	s := stepstest.Open(t, box, g, assets, "part", nil)
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"make"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Actions) != 2 || p.Actions[0].Action != "space" || p.Actions[1].Action != "make" {
		t.Fatalf("the plan is %+v", p.Actions)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, "", "-n", ns, "get", "configmap", "c")
	stepstest.Undo(t, s)

	g.Steps[0].Actions = g.Steps[0].Actions[:1]
	alone := stepstest.Open(t, box, g, assets, "part", nil)
	p, err = alone.Plan(t.Context(), engine.Scope{Actions: []string{"make"}})
	if err != nil {
		t.Fatal(err)
	}
	const note = "namespace part-of does not exist, and no action creates it"
	if got := p.Actions[0].Change.Items[0].Note; got != note {
		t.Errorf("where nothing creates it the plan says %q, want %q", got, note)
	}
}

const oneDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: '${answers.space}'}
spec:
  replicas: 0
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: ours, env: [{name: A, value: ours}]}]}
`

// Another manager's list elements in an object that this link created are taken over, because undo deletes the object.
// In an object that existed before they are not, because undo could not restore the old value.
func TestAPartOfAListIsTakenOverInWhatWasCreated(t *testing.T) {
	t.Parallel()
	const ns = "list-parts"
	space(t, ns)
	s, box := changed(t, "lister", ns, oneDeployment)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "set", "image", "-n", ns, "deployment/d", "c=theirs")
	box.Run(t, clustertest.Remote, "", "set", "env", "-n", ns, "deployment/d", "A=theirs")
	if err := takeOver(t, s); err != nil {
		t.Fatal(err)
	}
	const is = "{.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].value}"
	if got := box.Run(
		t, clustertest.Remote, "", "get", "-n", ns, "deployment/d", "-o", "jsonpath="+is,
	); got != "ours ours" {
		t.Errorf("it has %q", got)
	}
	stepstest.Undo(t, s)
	box.Run(t, clustertest.Remote, "", "create", "-n", ns, "deployment", "d", "--image=theirs", "--replicas=0")
	other, _ := changed(t, "later", ns, strings.Replace(oneDeployment, "name: c,", "name: theirs,", 1))
	if err := takeOver(t, other); err == nil ||
		!strings.Contains(err.Error(), "set it manually to the value in the diff") {
		t.Errorf("got %v", err)
	}
}

// The same rule for an object of a release.
func TestAPartOfAListIsTakenOverInARelease(t *testing.T) {
	t.Parallel()
	const ns = "release-parts"
	space(t, ns)
	s, box := charting(t, "releaser", ns, false, map[string]any{"replicas": 0}, 0)
	stepstest.Apply(t, s)
	box.Run(t, clustertest.Remote, "", "set", "image", "-n", ns, "deployment/tiny", "pause=theirs")
	if err := takeOver(t, s); err != nil {
		t.Fatal(err)
	}
	got := box.Run(
		t, clustertest.Remote, "", "get", "-n", ns, "deployment/tiny", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}",
	)
	if got == "theirs" {
		t.Errorf("it has %q", got)
	}
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil || !p.Empty() {
		t.Errorf("a second apply would change %+v, %v", p.Actions, err)
	}
	stepstest.Undo(t, s)
}
