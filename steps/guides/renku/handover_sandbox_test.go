package renku_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// credential returns the part of the guide that creates and tests a kubeconfig. This part requires
// neither an operator nor a running Renku.
func credential() *steps.Guide {
	g := renku.Guide()
	g.Undo = nil
	for i := range g.Steps { // questions and facts of the others stay: answers lean on them
		if s := &g.Steps[i]; !slices.Contains([]string{"clusters", "prerequisites", "identity", "kubeconfig"}, s.Name) {
			s.Actions, s.Checks = nil, nil
		}
	}
	return g
}

// toSecret contains the steps up to the kubeconfig in Renku's Secret.
var toSecret = engine.Scope{Steps: []string{"prerequisites", "identity", "kubeconfig", "secret"}}

// handed opens a link with its own session namespace, LINK-sessions. Renku is in the namespace ns.
func handed(t *testing.T, box *clustertest.Sandbox, link, ns, secret string, more map[string]any) *engine.Session {
	t.Helper()
	answers := map[string]any{
		"sessions.namespace": link + "-sessions", "renku.namespace": ns, "secret.name": secret,
		"pools.quotas": []any{link + "-pool"},
	}
	for k, v := range more {
		answers[k] = v
	}
	return stepstest.Open(t, box, renku.Guide(), assets, link, answers)
}

func do(t *testing.T, s *engine.Session, scope engine.Scope, o steps.ApplyOptions, say steps.Progress) error {
	t.Helper()
	p, err := s.Plan(t.Context(), scope)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return s.Apply(t.Context(), p, o, say)
}

// undone undoes the actions in a scope and returns the undo plan.
func undone(t *testing.T, s *engine.Session, scope engine.Scope) *engine.Plan {
	t.Helper()
	p, err := s.PlanUndo(t.Context(), scope)
	if err == nil {
		err = s.Undo(t.Context(), p, nil)
	}
	if err != nil {
		t.Fatalf("undo: %v", err)
	}
	return p
}

var theSecret = engine.Scope{Steps: []string{"secret"}}

// keysOf returns the keys of a local Secret, or none if the Secret does not exist.
func keysOf(t *testing.T, box *clustertest.Sandbox, ns, name string) []string {
	t.Helper()
	out := box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "secret", name, "--ignore-not-found", "-o",
		`go-template={{range $k, $v := .data}}{{$k}} {{end}}`,
	)
	return strings.Fields(out)
}

func localNamespace(t *testing.T, box *clustertest.Sandbox, name string) {
	t.Helper()
	box.Run(t, clustertest.Local, "", "create", "namespace", name)
	box.Cleanup(t, clustertest.Local, "delete", "namespace", name, "--wait=false")
}

func wantKeys(t *testing.T, box *clustertest.Sandbox, ns, name string, want ...string) {
	t.Helper()
	if got := keysOf(t, box, ns, name); !slices.Equal(got, want) {
		t.Fatalf("Secret %s/%s holds %v, want %v", ns, name, got, want)
	}
}

// Two links write to an existing Secret. Neither link changes the keys of the other link or of
// another user, and undo removes only the link's own key.
func TestVerifyTwoLinksIntoOneSecretOfRenku(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	const ns, name = "handed", "clusters"
	localNamespace(t, box, ns)
	box.Run(t, clustertest.Local, "", "-n", ns, "create", "secret", "generic", name, "--from-literal=paris.yaml=paris")
	a, b := handed(t, box, "milan", ns, name, nil), handed(t, box, "rome", ns, name, nil)
	for _, s := range []*engine.Session{a, b} {
		if err := do(t, s, toSecret, steps.ApplyOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		defer undone(t, s, engine.Scope{})
	}
	wantKeys(t, box, ns, name, "milan.yaml", "paris.yaml", "rome.yaml")
	for _, s := range []*engine.Session{a, b} {
		for _, check := range []string{"kubeconfig-stored", "stored-kubeconfig", "stored-server-tls", "stored-is-tested"} {
			if v := passed(t, s, check, steps.Local); v.Status != steps.Pass {
				t.Errorf("%s of %s: %v %s", check, s.Link().Name(), v.Status, v.Found)
			}
		}
		if p, err := s.Plan(t.Context(), theSecret); err != nil || !p.Empty() {
			t.Errorf("a second apply would change %+v, %v", p.Actions, err)
		}
	}
	undone(t, a, theSecret)
	wantKeys(t, box, ns, name, "paris.yaml", "rome.yaml")
	undone(t, b, theSecret)
	wantKeys(t, box, ns, name, "paris.yaml")
	if marks := box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "secret", name, "-o", "jsonpath={.metadata.labels}{.metadata.annotations}",
	); marks != "" {
		t.Errorf("left on the Secret: %s", marks)
	}
}

// Undo deletes a Secret that a link created, but only together with its last key.
func TestVerifyASecretThatALinkMadeGoesWithItsLastKey(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	const ns, name = "made", "clusters"
	localNamespace(t, box, ns)
	a, b := handed(t, box, "turin", ns, name, nil), handed(t, box, "genoa", ns, name, nil)
	for _, s := range []*engine.Session{a, b} {
		if err := do(t, s, toSecret, steps.ApplyOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		defer undone(t, s, engine.Scope{})
	}
	undone(t, a, theSecret)
	wantKeys(t, box, ns, name, "genoa.yaml")
	box.Run(
		t, clustertest.Local, "", "-n", ns, "patch", "secret", name, "--type=merge", "-p",
		`{"stringData":{"paris.yaml":"paris"}}`,
	)
	p := undone(t, b, theSecret)
	if it := p.Actions[0].Change.Items[0]; it.Verb != steps.Release || !strings.Contains(it.Note, "paris.yaml") {
		t.Errorf("the plan says %s %s", it.Verb, it.Note)
	}
	wantKeys(t, box, ns, name, "paris.yaml")
	box.Run(t, clustertest.Local, "", "-n", ns, "delete", "secret", name)
	if err := do(t, b, theSecret, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	undone(t, b, theSecret)
	wantKeys(t, box, ns, name)
	if left := box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "secret", name, "--ignore-not-found", "-o", "name",
	); left != "" {
		t.Error("the Secret is left although nothing is in it")
	}
}

// Undo removes the key from a Secret that Renku's pods mount, but keeps the Secret. Without the
// Secret the pods could not start.
func TestVerifyASecretThatIsMountedStays(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	const ns, name = "mounted", "clusters"
	localNamespace(t, box, ns)
	s := handed(t, box, "pavia", ns, name, nil)
	if err := do(t, s, toSecret, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	defer undone(t, s, engine.Scope{})
	box.Run(
		t, clustertest.Local,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"data-service"},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},
		"spec":{"containers":[{"name":"d","image":"registry.example.org/d"}],"volumes":[{"name":"kubeconfigs","secret":{"secretName":"clusters"}}]}}}}`,
		"-n", ns, "create", "-f", "-",
	)
	p := undone(t, s, theSecret)
	if it := p.Actions[0].Change.Items[0]; it.Verb != steps.Release ||
		!strings.Contains(it.Note, "data-service mount the Secret") {
		t.Errorf("the plan says %s %s", it.Verb, it.Note)
	}
	if left := box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "secret", name, "-o",
		"jsonpath={.data}{.metadata.labels}{.metadata.annotations}",
	); left != "" {
		t.Errorf("it has %s still", left)
	}
	if p, err := s.PlanUndo(t.Context(), theSecret); err != nil || !p.Empty() {
		t.Errorf("a second undo would change %+v, %v", p, err)
	}
}

// carrick takes over the key of another user only with a confirmation, and only after it has saved
// the old value.
func TestVerifyAKeyOfOthersIsSavedBeforeItIsTakenOver(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	const ns, name = "taken", "clusters"
	localNamespace(t, box, ns)
	box.Run(t, clustertest.Local, "", "-n", ns, "create", "secret", "generic", name, "--from-literal=pisa.yaml=by-hand")
	s := handed(t, box, "pisa", ns, name, nil)
	defer undone(t, s, engine.Scope{})
	err := do(t, s, toSecret, steps.ApplyOptions{}, nil)
	if err == nil || !strings.Contains(err.Error(), "--take-over") || strings.Contains(err.Error(), "by-hand") {
		t.Fatalf("without a yes: %v", err)
	}
	err = do(t, s, theSecret, steps.ApplyOptions{TakeOver: true}, nil)
	if err == nil || strings.Contains(err.Error(), "by-hand") {
		t.Fatalf("without a file: %v", err)
	}
	value := func() string {
		return box.Run(
			t, clustertest.Local, "", "-n", ns, "get", "secret", name, "-o",
			`go-template={{index .data "pisa.yaml" | base64decode}}`,
		)
	}
	if value() != "by-hand" {
		t.Fatal("it was overwritten all the same")
	}
	file := filepath.Join(t.TempDir(), "old.before")
	if q, _ := renku.Guide().Question("secret.backup"); q != nil {
		if _, err := q.Parse("/root/.ssh/id_ed25519"); err == nil {
			t.Error("it takes a file that it never saved")
		}
	}
	if err := s.Answer("secret.backup", file); err != nil {
		t.Fatal(err)
	}
	if err := do(t, s, theSecret, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	if saved, err := os.ReadFile(file); err != nil || string(saved) != "by-hand" {
		t.Errorf("saved %q, %v", saved, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if !strings.Contains(value(), "current-context") {
		t.Error("it was not taken over")
	}
	undone(t, s, theSecret)
	if value() != "by-hand" {
		t.Error("undo did not give it back")
	}
	if err := do(t, s, theSecret, steps.ApplyOptions{TakeOver: true}, nil); err != nil {
		t.Fatal(err)
	}
	p, err := s.PlanUndo(t.Context(), theSecret)
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "private")
	if err := errors.Join(
		os.WriteFile(private, []byte("private"), 0o600), os.Remove(file), os.WriteFile(file, []byte("another"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), p, nil); err == nil {
		t.Error("undo wrote another value than the plan said")
	}
	if err := errors.Join(os.Remove(file), os.Symlink(private, file)); err != nil {
		t.Fatal(err)
	}
	undone(t, s, theSecret)
	if !strings.Contains(value(), "current-context") {
		t.Error("the old value is lost, and undo took the key away from who counts on it")
	}
	if notes := box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "secret", name, "-o", "jsonpath={.metadata.labels}{.metadata.annotations}",
	); notes != "" {
		t.Errorf("left on the Secret: %s", notes)
	}
}

// The diff hides secrets. carrick never deletes an immutable Secret in order to change it.
func TestVerifyASecretIsNotDeletedToBeChanged(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box := seeded(t)
	const ns, name = "fixed", "clusters"
	localNamespace(t, box, ns)
	box.Run(
		t, clustertest.Local,
		fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Secret","immutable":true,"metadata":{"name":%q,"namespace":%q},"stringData":{"paris.yaml":"paris"}}`,
			name, ns,
		),
		"create", "-f", "-",
	)
	s := handed(t, box, "siena", ns, name, nil)
	defer undone(t, s, engine.Scope{})
	if err := do(t, s, engine.Scope{Steps: toSecret.Steps[:3]}, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(t.Context(), theSecret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.MissingPermissions(t.Context(), p); err == nil || !strings.Contains(err.Error(), "secret.name") {
		t.Errorf("nothing refuses it: %v", err)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{Replace: true}, nil); err == nil {
		t.Error("it was applied")
	}
	wantKeys(t, box, ns, name, "paris.yaml")
	if err := s.Answer("secret.name", "other"); err != nil {
		t.Fatal(err)
	}
	p, err = s.Plan(t.Context(), theSecret)
	if err != nil {
		t.Fatal(err)
	}
	it := p.Actions[0].Change.Items[0]
	if !strings.Contains(it.Diff, "siena.yaml: (hidden") || strings.Contains(it.Diff, "eyJ") ||
		strings.Contains(it.Diff, "ZXlK") {
		t.Errorf("the diff:\n%s", it.Diff)
	}
}

// The fix of a Helm value, which only Renku's admin can set, can be pasted into a shell.
func TestVerifyTheFixOfAValueCanBePasted(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	const ns = "valued"
	localNamespace(t, box, ns)
	release := `{"name":"renku","version":1,"info":{"status":"deployed"},"chart":{"metadata":{"name":"renku","version":"2.19.3"}},
		"config":{"notebooks":{"oidc":{"extraRedirectUris":"[\"https://paris.example.org/*\"]"}}}}`
	stored := base64.StdEncoding.EncodeToString([]byte(release))
	box.Run(
		t, clustertest.Local,
		fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.renku.v1","namespace":%q,
		"labels":{"owner":"helm","name":"renku","status":"deployed","version":"1"}},"stringData":{"release":%q}}`, ns,
			stored,
		),
		"create", "-f", "-",
	)
	s := handed(t, box, "monza", ns, "clusters", map[string]any{"sessions.host": "sessions.example.org"})
	on := " --kube-context " + box.Contexts[clustertest.Local]
	upgrade := "helm upgrade renku renku/renku -n valued" + on + " --version 2.19.3 --reuse-values "
	for check, want := range map[string]string{
		"kubeconfigs-value": upgrade +
			"--set dataService.remoteClustersKubeconfigSecretName=clusters    # only after Secret clusters exists",
		"redirect-uris": "    extraRedirectUris: " +
			"'[\"https://paris.example.org/*\",\"https://sessions.example.org/*\"]'\n    extraWebOrigins: " +
			"'[\"https://sessions.example.org\"]'\n" + upgrade + "-f oidc-values.yaml",
	} {
		if v := verdict(t, s, check, steps.Local); v.Status.Holds() || !strings.Contains(v.Fix, want) {
			t.Errorf("%s is %s; its fix lacks %q:\n%s", check, v.Status, want, v.Fix)
		}
	}
}

const fourServices = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: renku-%[1]s, labels: {app: renku-%[1]s}}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: renku-%[1]s}}
  template:
    metadata: {labels: {app: renku-%[1]s}}
    spec:
      containers: [{name: %[1]s, image: example.org/%[1]s, volumeMounts: [{name: remote-cluster-kubeconfigs, mountPath: /secrets/kube_configs}]}]
      volumes: [{name: remote-cluster-kubeconfigs, secret: {secretName: clusters}}]
---`

// started returns the names of the pods of the four services.
func started(t *testing.T, box *clustertest.Sandbox, ns string) []string {
	t.Helper()
	return strings.Fields(box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "pods", "-o",
		`go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`,
	))
}

// carrick restarts the services once for each cause and waits until they run. Undo restarts them
// again.
func TestVerifyRestartIsDoneOnceForOneCause(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	const ns, link = "restarted", "lucca"
	localNamespace(t, box, ns)
	yaml := fmt.Sprintf(fourServices, "data-service", 2)
	for _, name := range []string{"k8s-watcher", "data-tasks", "secrets-storage"} {
		yaml += fmt.Sprintf(fourServices, name, 1)
	}
	box.Run(t, clustertest.Local, yaml, "-n", ns, "apply", "-f", "-")
	for _, name := range []string{"data-service", "k8s-watcher", "data-tasks", "secrets-storage"} {
		box.Run(t, clustertest.Local, "", "-n", ns, "rollout", "status", "deployment/renku-"+name, "--timeout=300s")
	}
	s := handed(t, box, link, ns, "clusters", nil)
	defer undone(t, s, engine.Scope{})
	if err := do(t, s, toSecret, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	restart := engine.Scope{Actions: []string{"restart"}}
	p, err := s.Plan(t.Context(), restart)
	if err != nil || len(p.Actions) != 1 || !strings.Contains(p.Actions[0].Pending, "signed in") {
		t.Fatalf("before the cluster has a row: %+v, %v", p, err)
	}
	box.Run(
		t, clustertest.Local, "", "-n", ns, "annotate", "secret", "clusters",
		"carrick/cluster-id."+link+"=01KDY02100RENKVTESTCAVSTER",
	)
	// somebody else did this
	s.Forget()
	// there is no Renku to take it back from
	defer box.Run(t, clustertest.Local, "", "-n", ns, "annotate", "secret", "clusters", "carrick/cluster-id."+link+"-")

	before := started(t, box, ns)
	if p, err = s.Plan(t.Context(), restart); err != nil {
		t.Fatal(err)
	}
	items := p.Actions[0].Change.Items
	if len(items) != 4 || !strings.Contains(items[0].Note, "unreachable remote cluster") {
		t.Fatalf("the plan: %+v", items)
	}
	var said []string
	if err := s.Apply(
		t.Context(), p, steps.ApplyOptions{}, func(e steps.Event) { said = append(said, e.Text) },
	); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "new pods ready") &&
		!strings.Contains(all, "rollout not started") {
		t.Errorf("no progress:\n%s", all)
	}
	after := started(t, box, ns)
	if same := slices.DeleteFunc(
		slices.Clone(after), func(p string) bool { return !slices.Contains(before, p) },
	); len(same) > 0 || len(after) != 5 {
		t.Errorf("of %v there are still %v", after, same)
	}
	if v := passed(t, s, "services-restarted", steps.Local); v.Status != steps.Pass {
		t.Errorf("services-restarted: %v %s", v.Status, v.Found)
	}
	if p, err = s.Plan(t.Context(), restart); err != nil || !p.Empty() {
		t.Errorf("a second time it would do %+v, %v", p.Actions, err)
	}
	after = restartedForANewToken(t, box, s, ns, link)
	undone(t, s, restart)
	if left := box.Run(
		t, clustertest.Local, "", "-n", ns, "get", "deployments", "-o",
		"jsonpath={.items[*].spec.template.metadata.annotations}",
	); left != "" {
		t.Errorf("left in the pod templates: %s", left)
	}
	again := started(t, box, ns)
	if same := slices.DeleteFunc(
		slices.Clone(again), func(p string) bool { return !slices.Contains(after, p) },
	); len(same) > 0 {
		t.Errorf("undo left %v running", same)
	}
	if p := undone(t, s, restart); !p.Empty() {
		t.Errorf("a second undo would do %+v", p.Actions)
	}
}

// restartedForANewToken deletes the token Secret. One plan writes the new kubeconfig and restarts the services. It
// returns the pods of the services.
func restartedForANewToken(
	t *testing.T, box *clustertest.Sandbox, s *engine.Session, ns, link string,
) []string {
	t.Helper()
	before := started(t, box, ns)
	box.Run(t, clustertest.Remote, "", "-n", link+"-sessions", "delete", "secret", "renku-"+link+"-token")
	s.Forget()
	p, err := s.Plan(t.Context(), engine.Scope{Steps: append(slices.Clone(toSecret.Steps), "restart")})
	if err != nil {
		t.Fatal(err)
	}
	last := p.Actions[len(p.Actions)-1]
	if last.Action != "restart" || !strings.Contains(last.Pending, "renku-"+link+"-token does not exist yet") {
		t.Fatalf("the plan ends with %+v", last)
	}
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	now := started(t, box, ns)
	for _, pod := range now {
		if slices.Contains(before, pod) {
			t.Errorf("pod %s was not restarted for the new kubeconfig", pod)
		}
	}
	return now
}

// sessionParts are the objects that the session operator and the cluster create for a session. The
// test runs without them, so it creates these objects itself.
const sessionParts = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: carrick-test-como}
spec: {capacity: {storage: 1G}, accessModes: [ReadWriteOnce], hostPath: {path: /none}, storageClassName: "", claimRef: {name: carrick-test-como, namespace: como-sessions}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: carrick-test-como, namespace: como-sessions}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: carrick-test-como, resources: {requests: {storage: 1G}}}
---
apiVersion: v1
kind: Pod
metadata: {name: carrick-test-como-0, namespace: como-sessions, labels: {app.kubernetes.io/instance: carrick-test-como}}
spec: {containers: [{name: session, image: example.org/session}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: carrick-test-como, namespace: como-sessions}
spec: {tls: [{}], rules: [{host: sessions.example.org, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}
`

// carrick creates the test session with the new kubeconfig, waits until it is usable, and deletes
// it. The test acts as upstream's operator.
func TestVerifyASessionIsMadeFollowedAndTakenBack(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	file := stepstest.Upstream(t, "../../..", "amalthea/amalthea.dev_amaltheasessions.yaml", "the test session")
	box := seeded(t)
	stepstest.Define(t, box, steps.Remote, file)
	const ns, name = "como-sessions", "carrick-test-como"
	s := handed(
		t, box, "como", "renku", "como-clusters",
		map[string]any{"session.test": true, "sessions.host": "sessions.example.org"},
	)
	defer undone(t, s, engine.Scope{})
	if err := do(t, s, engine.Scope{Steps: toSecret.Steps[:3]}, steps.ApplyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	box.Cleanup(t, clustertest.Remote, "delete", "persistentvolume", name, "--wait=false")
	var said []string
	test := engine.Scope{Steps: []string{"session"}}
	err := do(t, s, test, steps.ApplyOptions{}, func(e steps.Event) {
		said = append(said, e.Text)
		if e.Verb == steps.Create {
			box.Run(t, clustertest.Remote, sessionParts, "apply", "-f", "-")
			box.Run(
				t, clustertest.Remote, "", "-n", ns, "patch", "amaltheasession", name, "--subresource=status", "--type=merge", "-p",
				`{"status":{"state":"Running","url":"https://sessions.example.org/carrick-test-como/"}}`,
			)
		}
	})
	all := strings.Join(said, "\n")
	if err != nil {
		t.Fatalf("%v\n%s", err, all)
	}
	for _, want := range []string{
		"with the new kubeconfig", "volume: pass", "pod: pass", "ingress: pass",
		"address: pass: https://sessions.example.org/carrick-test-como/",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("it did not say %q:\n%s", want, all)
		}
	}
	if strings.Contains(all, "your own permissions") {
		t.Errorf("the credential was not enough:\n%s", all)
	}
	if p, err := s.Plan(t.Context(), test); err != nil || !p.Empty() {
		t.Errorf("a second time it would do %+v, %v", p.Actions, err)
	}
	undone(t, s, test)
	if left := box.Run(t, clustertest.Remote, "", "-n", ns, "get", "amaltheasessions", "-o", "name"); left != "" {
		t.Errorf("left behind: %s", left)
	}
	// nobody owns what the test made
	box.Run(t, clustertest.Remote, "", "-n", ns, "delete", "pvc,pod,ingress", "--all", "--wait=false")
}
