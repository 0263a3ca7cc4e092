package renku_test

import (
	"context"
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

// notesOf are the annotations of a link's inventory.
func notesOf(t *testing.T, box *clustertest.Sandbox, link string) string {
	t.Helper()
	return box.Run(
		t, clustertest.Local, "", "get", "clusterrole", "carrick:"+link, "-o", "jsonpath={.metadata.annotations}",
		"--ignore-not-found",
	)
}

func apply(t *testing.T, s *engine.Session, scope engine.Scope) (*engine.Plan, error) {
	t.Helper()
	p, err := s.Plan(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return p, s.Apply(t.Context(), p, steps.ApplyOptions{}, nil)
}

// withoutServices is the guide for a Renku that is an API alone: nothing loads
// the kubeconfigs.
func withoutServices() *steps.Guide {
	g := renku.Guide()
	pool, _ := g.Action("pool")
	pool.Needs = slices.DeleteFunc(pool.Needs, func(need string) bool { return need == "kubeconfig-loaded" })
	return g
}

// ready is a link whose remote side is prepared; nothing is in Renku yet.
func ready(t *testing.T, name string, f *fakeRenku, box *clustertest.Sandbox, more map[string]any) *engine.Session {
	t.Helper()
	given := map[string]any{"sessions.namespace": name + "-sessions"}
	for k, v := range more {
		given[k] = v
	}
	s := stepstest.Open(t, box, withoutServices(), assets, name, f.answers(t, box, given))
	if _, err := apply(t, s, toSecret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // which has ended by now
		p, err := s.PlanUndo(ctx, engine.Scope{})
		if err == nil {
			err = s.Undo(ctx, p, nil)
		}
		if err != nil {
			t.Errorf("undo at the end: %v", err)
		}
		s.Close()
	})
	return s
}

func (f *fakeRenku) named(config string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.clusters {
		if c["config_name"] == config {
			return c
		}
	}
	return nil
}

// A Renku that drops the flag, and one that passes it on: with either the
// cluster ends with the controller's default certificate.
func TestVerifyRegisterMendsTheDefaultCertificate(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := seeded(t)
	for name, want := range map[string][]string{
		"dropped": {"POST /clusters", "PATCH /clusters/"},
		"passed":  {"POST /clusters", "POST /clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startRenku(t)
			f.passesFlag = name == "passed"
			s := ready(t, name, f, box, nil)
			p, err := apply(t, s, engine.Scope{Steps: []string{"register"}})
			if err != nil {
				t.Fatal(err)
			}
			items := p.Of(steps.Create)
			if len(items) != 1 || !strings.Contains(items[0].Diff, `+  "config_name": "`+name+`.yaml"`) {
				t.Errorf("the plan shows %+v", items)
			}
			did := f.did()
			if len(did) != 2 || !strings.HasPrefix(did[0], want[0]) || !strings.HasPrefix(did[1], want[1]) {
				t.Errorf("asked %v", did)
			}
			if c := f.named(name + ".yaml"); c["session_ingress_use_default_cluster_tls_cert"] != true ||
				c["session_tls_secret_name"] != nil {
				t.Errorf("stored %v", c)
			}
			if v := passed(t, s, "cluster-as-planned", steps.Local); v.Status != steps.Pass {
				t.Errorf("%v %s", v.Status, v.Found)
			}
			if again, err := apply(t, s, engine.Scope{Steps: []string{"register"}}); err != nil || !again.Empty() ||
				len(f.did()) > 0 {
				t.Errorf("a second apply does something: %v %+v", err, again)
			}
		})
	}
}

// A named Secret takes the place of the default certificate: in one PATCH
// Renku refuses that.
func TestVerifyRegisterChangesToANamedSecret(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "named", f, box, nil)
	if _, err := apply(t, s, engine.Scope{Steps: []string{"register"}}); err != nil {
		t.Fatal(err)
	}
	f.did()
	if err := s.Answer("sessions.tls-secret", "sessions-tls"); err != nil {
		t.Fatal(err)
	}
	p, err := apply(t, s, engine.Scope{Actions: []string{"register"}})
	if err != nil {
		t.Fatal(err)
	}
	if u := p.Of(steps.Update); len(u) != 1 ||
		!strings.Contains(u[0].Diff, `+  "session_tls_secret_name": "sessions-tls"`) ||
		!strings.Contains(u[0].Note, "3 requests") {
		t.Errorf("the plan shows %+v", u)
	}
	c := f.named("named.yaml")
	if did := f.did(); len(did) != 3 || c["session_protocol"] != "https" ||
		c["session_tls_secret_name"] != "sessions-tls" {
		t.Errorf("asked %v, stored %v", did, c)
	}
}

// An answer that was lost: the next apply finds that the row is this link's,
// and so does undo.
func TestVerifyALostAnswerIsFoundAgain(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "lost", f, box, nil)
	f.loses = "POST /clusters"
	if _, err := apply(t, s, engine.Scope{Steps: []string{"register"}}); err == nil {
		t.Fatal("the lost answer was no error")
	}
	if !strings.Contains(notesOf(t, box, "lost"), `"carrick/note.register":"asked"`) {
		t.Errorf("noted: %s", notesOf(t, box, "lost"))
	}
	s.Forget()
	if _, err := apply(t, s, engine.Scope{Steps: []string{"register"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notesOf(t, box, "lost"), `"carrick/note.register":"01JQ`) {
		t.Errorf("noted: %s", notesOf(t, box, "lost"))
	}
	stepstest.Undo(t, s)
	if f.named("lost.yaml") != nil || strings.Contains(notesOf(t, box, "lost"), "carrick/note") {
		t.Errorf("left: %v, notes %s", f.named("lost.yaml"), notesOf(t, box, "lost"))
	}
}

// What stood there before this link stays, and a name that is taken is told.
func TestVerifyRegisterLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "others", f, box, map[string]any{"cluster.name": "Paris"})
	p, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"register"}})
	if err != nil {
		t.Fatal(err)
	}
	if it := p.Of(steps.Create); len(it) != 1 || !it[0].Refused || !strings.Contains(it[0].Note, "paris.yaml") {
		t.Errorf("the plan shows %+v", it)
	}
	if _, err := s.MissingPermissions(t.Context(), p); err == nil || !strings.Contains(err.Error(), "has a cluster") {
		t.Errorf("it would be begun: %v", err)
	}
	if err := s.Answer("cluster.config-name", "paris.yaml"); err != nil { // the link is about that cluster
		t.Fatal(err)
	}
	if _, err := apply(t, s, engine.Scope{Actions: []string{"register"}}); err != nil {
		t.Fatal(err)
	}
	if c := f.named("paris.yaml"); c["session_host"] != "localhost" {
		t.Errorf("stored %v", c)
	}
	u := stepstest.Undo(t, s)
	if f.named("paris.yaml") == nil {
		t.Error("undo deleted a cluster that stood before")
	}
	if left := u.Of(steps.Leave); !slices.ContainsFunc(
		left, func(it steps.Item) bool { return strings.Contains(it.Note, "did not create it") },
	) {
		t.Errorf("undo says %+v", left)
	}
}

// What is noted is found although the Secret is answered otherwise by now.
func TestVerifyUndoFindsNotesElsewhere(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "moved", f, box, nil)
	if _, err := apply(t, s, engine.Scope{Steps: []string{"register"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer("secret.name", "another-secret"); err != nil {
		t.Fatal(err)
	}
	u := stepstest.Undo(t, s)
	if f.named("moved.yaml") != nil || strings.Contains(notesOf(t, box, "moved"), "carrick/note") {
		t.Errorf("left: %v, notes %s; undo did %+v", f.named("moved.yaml"), notesOf(t, box, "moved"), u.Of(steps.Delete))
	}
}

// Whoever can write the kubeconfigs Secret, or a Secret of any other namespace, can write the note of an earlier
// version there. Undo deletes nothing by it, and apply enters only what Renku has under the link's own names.
func TestVerifyUndoIgnoresNotesOutsideOfTheInventory(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "planted", f, box, nil)
	box.Run(t, clustertest.Local, `
apiVersion: v1
kind: Namespace
metadata: {name: aaa-team}
---
apiVersion: v1
kind: Secret
metadata:
  name: notes
  namespace: aaa-team
  labels: {carrick/link.planted: secret}
  annotations: {carrick/pool-id.planted: "77", carrick/cluster-id.planted: 01KDY02100RENKVTESTCAVSTER}
`, "apply", "--server-side", "--field-manager=carrick.planted.secret", "-f", "-")
	box.Run(
		t, clustertest.Local, "", "-n", fakeSpace, "annotate", "--overwrite", "secret", "renku-remote-clusters",
		"carrick/pool-id.planted=77", "carrick/cluster-id.planted=01KDY02100RENKVTESTCAVSTER",
	)
	f.pools[77] = map[string]any{"name": "Paris production"}
	p, err := s.PlanUndo(t.Context(), engine.Scope{Steps: []string{"register", "pool"}})
	if err != nil || len(p.Of(steps.Delete)) != 0 {
		t.Fatalf("undo would delete %+v, %v", p.Of(steps.Delete), err)
	}
	left := p.Of(steps.Leave)
	for _, what := range []string{"resource pool 77", "cluster 01KDY02100RENKVTESTCAVSTER"} {
		if !slices.ContainsFunc(left, func(it steps.Item) bool {
			return strings.HasPrefix(it.What, what) &&
				strings.Contains(it.Note, "everyone who can write the Secret can set the annotation")
		}) {
			t.Errorf("nothing is said of %s: %+v", what, left)
		}
	}
	if err := s.Undo(t.Context(), p, nil); err != nil || f.pools[77] == nil {
		t.Errorf("undo: %v, pools %v", err, f.pools)
	}
	if _, err := apply(t, s, engine.Scope{Steps: []string{"register"}}); err != nil {
		t.Fatal(err)
	}
	if notes := notesOf(t, box, "planted"); strings.Contains(notes, "01KDY02100RENKVTESTCAVSTER") ||
		strings.Contains(notes, `note.pool`) {
		t.Errorf("apply believed the note: %s", notes)
	}
	stepstest.Undo(t, s)
	if f.pools[77] == nil || f.named("planted.yaml") != nil {
		t.Errorf("after undo Renku has the pools %v and the cluster %v", f.pools, f.named("planted.yaml"))
	}
}

// What an earlier version created in Renku is entered by apply, which says so, and undone from then on.
func TestVerifyANoteOfAnEarlierVersionIsEntered(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "adopt")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "earlier", f, box, nil)
	scope := engine.Scope{Steps: []string{"register"}}
	if _, err := apply(t, s, scope); err != nil {
		t.Fatal(err)
	}
	id := box.Run(
		t, clustertest.Local, "", "get", "clusterrole", "carrick:earlier", "-o",
		`jsonpath={.metadata.annotations.carrick/note\.register}`,
	)
	if id == "" {
		t.Fatal("nothing is noted: this proves nothing")
	}
	box.Run(t, clustertest.Local, "", "annotate", "clusterrole", "carrick:earlier", "carrick/note.register-")
	box.Run(
		t, clustertest.Local, "", "-n", fakeSpace, "annotate", "secret", "renku-remote-clusters",
		"carrick/cluster-id.earlier="+id,
	)
	if p, err := s.PlanUndo(t.Context(), scope); err != nil || len(p.Of(steps.Delete)) != 0 {
		t.Fatalf("undo would delete %+v, %v", p.Of(steps.Delete), err)
	}
	p, err := apply(t, s, scope)
	if err != nil || len(p.Of(steps.Update)) != 1 ||
		!strings.Contains(p.Of(steps.Update)[0].Note, "apply records the id in this link's inventory") {
		t.Fatalf("apply did %+v, %v", p.Of(steps.Update), err)
	}
	if again, err := s.Plan(t.Context(), scope); err != nil || !again.Empty() {
		t.Errorf("a second apply would do %+v, %v", again, err)
	}
	stepstest.Undo(t, s)
	if f.named("earlier.yaml") != nil || notesOf(t, box, "earlier") != "" {
		t.Errorf("left: %v, notes %s", f.named("earlier.yaml"), notesOf(t, box, "earlier"))
	}
}

// A number alone makes no pool this link's: another Renku has the same numbers.
func TestVerifyUndoLeavesAPoolOfAnother(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "owner")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "numbered", f, box, nil)
	note := func(text string) {
		box.Run(t, clustertest.Local, "", "annotate", "--overwrite", "clusterrole", "carrick:numbered", text)
	}
	note("carrick/note.pool=77")
	f.pools[77] = map[string]any{"name": "Somebody's"}
	p, err := s.PlanUndo(t.Context(), engine.Scope{Steps: []string{"pool"}})
	if err != nil || len(p.Of(steps.Delete)) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := s.Undo(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), `"Somebody's"`) ||
		f.pools[77] == nil {
		t.Errorf("undo said %v; there are %v", err, f.pools)
	}
	note("carrick/note.pool-")
}

const pooled = `name: A pool
public: false
default: false
cpu_limit_factor: 2
quota: {cpu: 4, memory: 32, gpu: 0, id: pooled-pool}
classes: [{name: small, cpu: 1, memory: 2, gpu: 0, max_storage: 4, default_storage: 1, default: true}]
`

// The whole way: cluster, pool, the factor that POST drops, members; then back,
// with a pool of somebody else in between.
func TestVerifyPoolAndBack(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "pooled", f, box, map[string]any{"pool.spec": pooled, "pool.members": []any{"group:01JQGROUP"}})
	early, err := s.Plan(t.Context(), engine.Scope{Actions: []string{"pool"}})
	if err != nil || len(early.Actions) != 1 || !strings.Contains(early.Actions[0].Pending, "Renku has no cluster") {
		t.Fatalf("before the cluster the pool's plan is %+v, %v", early, err)
	}
	if _, err := apply(t, s, engine.Scope{Steps: []string{"register", "pool"}}); err != nil {
		t.Fatal(err)
	}
	did := strings.Join(f.did(), "\n")
	for _, want := range []string{"POST /resource_pools\nPATCH /resource_pools/", "/members"} {
		if !strings.Contains(did, want) {
			t.Errorf("asked %s", did)
		}
	}
	for _, check := range []string{"pool-exists", "pool-as-planned", "pool-members"} {
		if v := passed(t, s, check, steps.Local); v.Status != steps.Pass {
			t.Errorf("%s: %v %s", check, v.Status, v.Found)
		}
	}
	if again, err := apply(t, s, engine.Scope{Steps: []string{"register", "pool"}}); err != nil || !again.Empty() {
		t.Errorf("a second apply does something: %v %+v", err, again)
	}

	f.mu.Lock()
	for id, c := range f.clusters {
		if c["config_name"] == "pooled.yaml" {
			f.pools[99] = map[string]any{"name": "Another", "cluster_id": id}
		}
	}
	f.mu.Unlock()
	s.Forget()
	p, err := s.PlanUndo(t.Context(), engine.Scope{Steps: []string{"register", "pool"}})
	if err != nil {
		t.Fatal(err)
	}
	if gone := p.Of(steps.Delete); len(gone) != 2 || !strings.Contains(gone[0].What, "resource pool") ||
		!strings.Contains(gone[1].Note, `"Another" (id 99)`) {
		t.Errorf("undo would %+v", gone)
	}
	if err := s.Undo(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "pools of the local cluster") {
		t.Errorf("the cluster went although a pool points to it: %v", err)
	}
	if f.named("pooled.yaml") == nil {
		t.Fatal("the cluster is gone")
	}
	f.mu.Lock()
	delete(f.pools, 99)
	f.mu.Unlock()
	s.Forget()
	stepstest.Undo(t, s)
	if f.named("pooled.yaml") != nil || len(f.pools) > 0 || strings.Contains(notesOf(t, box, "pooled"), "carrick/note") {
		t.Errorf("left: %v, %v, notes %s", f.named("pooled.yaml"), f.pools, notesOf(t, box, "pooled"))
	}
}

// Without a token all else can be planned, the payload is shown, and nothing
// is asked of Renku. Apply signs in, and so does undo in a session of its own.
func TestVerifySignedOutSignsIn(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box, f := seeded(t), startRenku(t)
	s := ready(t, "signedout", f, box, map[string]any{"renku.token": ""})
	p, err := s.Plan(t.Context(), engine.Scope{Steps: []string{"register"}})
	if err != nil {
		t.Fatal(err)
	}
	if run := p.Of(steps.Run); len(run) != 1 || !strings.Contains(run[0].What, f.url) ||
		!strings.Contains(run[0].Note, "in memory until it exits") {
		t.Errorf("no sign-in is planned: %+v", p.Actions)
	}
	if a := p.Actions[1]; !strings.Contains(a.Pending, "not signed in") || len(a.Change.Items) != 1 ||
		a.Change.Items[0].Diff == "" {
		t.Errorf("the payload is not shown: %+v", a)
	}
	if did := f.did(); len(did) > 0 {
		t.Errorf("planning asked %v", did)
	}
	var said []string
	say := func(e steps.Event) { said = append(said, e.Text) }
	if err := s.Apply(t.Context(), p, steps.ApplyOptions{}, say); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "FAKE-CODE") || strings.Contains(text, adminToken()) {
		t.Errorf("it said %s", text)
	}
	if f.named("signedout.yaml") == nil || f.signIns != 1 {
		t.Errorf("not registered after %d sign-ins", f.signIns)
	}
	if again, err := s.Plan(t.Context(), engine.Scope{Steps: []string{"register"}}); err != nil || !again.Empty() {
		t.Errorf("a second apply would do something: %v %+v", err, again)
	}

	later := stepstest.Open(
		t, box, renku.Guide(), assets, "signedout",
		f.answers(t, box, map[string]any{"sessions.namespace": "signedout-sessions", "renku.token": ""}),
	)
	defer later.Close()
	u := stepstest.Undo(t, later)
	if gone := u.Of(steps.Delete); !slices.ContainsFunc(
		gone, func(it steps.Item) bool { return strings.Contains(it.Note, "asked to sign in") },
	) {
		t.Errorf("undo said %+v", gone)
	}
	if f.named("signedout.yaml") != nil || f.signIns != 2 {
		t.Errorf("left after %d sign-ins: %v", f.signIns, f.named("signedout.yaml"))
	}
}
