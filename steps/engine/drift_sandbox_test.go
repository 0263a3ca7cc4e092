package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/stepstest"
)

const written = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: '${answers.space}', labels: {app.kubernetes.io/name: ours}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: fence, namespace: '${answers.space}'}
spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: '${answers.space}'}
spec: {type: NodePort, selector: {app: x}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: k, namespace: '${answers.space}'}
stringData: {key: of-ours}
`

const reads = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: drift-reader}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}]
`

// drifting is a link whose objects exist, with its drift check.
type drifting struct {
	t   *testing.T
	s   *engine.Session
	box *clustertest.Sandbox
	ns  string
}

func drifts(t *testing.T, link, ns string) drifting {
	t.Helper()
	space(t, ns)
	box := clustertest.Start(t)
	g, assets := changing(written)
	return drifting{t, stepstest.Open(t, box, action.WithDrift(g), assets, link, map[string]any{"space": ns}), box, ns}
}

func (d drifting) kubectl(in string, args ...string) {
	d.t.Helper()
	d.box.Run(d.t, clustertest.Remote, in, append([]string{"-n", d.ns}, args...)...)
}

// shell runs the manual commands of a fix.
func (d drifting) shell(line string) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "sh", "-c", line)
	cmd.Dir = d.t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.box.Kubeconfigs[clustertest.Remote],
		"PATH="+filepath.Dir(d.box.Kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// becomes waits until the drift check has that status and its finding contains all the words.
func (d drifting) becomes(status steps.Status, words ...string) steps.Result {
	d.t.Helper()
	var last steps.Result
	cells := d.s.Guide().Cells()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	err := d.s.Follow(ctx, cells, func(b *engine.Board, _ map[steps.Cell]engine.Look, _ steps.Cell) bool {
		for _, c := range cells {
			if action.IsDrift(c.Check) {
				last = b.Verdict(c)
			}
		}
		fits := last.Status == status
		for _, w := range words {
			fits = fits && strings.Contains(last.Found+" "+last.Fix, w)
		}
		return !fits
	})
	if err != nil {
		d.t.Fatalf("want %v with %q, the last was %v: %s", status, words, last.Status, last.Found)
	}
	return last
}

func TestDriftIsSeenAndMended(t *testing.T) {
	t.Parallel()
	d := drifts(t, "drift", "drift-seen")
	d.becomes(steps.Skip, "exists yet")
	stepstest.Apply(t, d.s)
	d.becomes(steps.Pass, "all 4")

	d.kubectl("", "label", "role/r", "somebody=else")
	d.kubectl("", "annotate", "service/s", "somebody=else")
	d.becomes(steps.Pass, "all 4")

	for _, change := range []struct {
		args, words []string
	}{
		{
			[]string{"patch", "role/r", "--type=json", "-p", `[{"op":"add","path":"/rules/0/verbs/-","value":"delete"}]`},
			[]string{"Role drift-seen/r: rules[0].verbs"},
		},
		{
			[]string{"patch", "role/r", "--type=json", "-p", `[{"op":"add","path":"/rules/0/resourceNames","value":["one"]}]`},
			[]string{"rules[0].resourceNames was added"},
		},
		{[]string{"label", "role/r", "--overwrite", "app.kubernetes.io/name=theirs"}, []string{"is theirs instead of ours"}},
		{[]string{"label", "role/r", "app.kubernetes.io/name-"}, []string{"is missing"}},
		{
			[]string{"patch", "networkpolicy/fence", "--type=merge", "-p", `{"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`},
			[]string{"NetworkPolicy drift-seen/fence: spec.podSelector"},
		},
		{
			[]string{"patch", "networkpolicy/fence", "--type=merge", "-p", `{"spec":{"ingress":[{}]}}`},
			[]string{"spec.ingress"},
		},
		{
			[]string{"patch", "service/s", "--type=merge", "-p", `{"spec":{"selector":{"app":"y"}}}`},
			[]string{"spec.selector.app is y instead of x"},
		},
		{[]string{"delete", "role/r"}, []string{"Role drift-seen/r is gone"}},
		{
			[]string{"patch", "secret/k", "--type=merge", "-p", `{"stringData":{"key":"of-theirs"}}`},
			[]string{"Secret drift-seen/k: data.key"},
		},
	} {
		d.kubectl("", change.args...)
		status := steps.Warn
		if change.args[0] == "delete" {
			status = steps.Fail
		}
		r := d.becomes(status, change.words...)
		if !strings.Contains(r.Fix, "carrick apply drift.yaml --step ") || strings.Contains(r.Found, "of-") {
			t.Errorf("%q: found %q, what to do: %q", change.args, r.Found, r.Fix)
		}
		check := d.s.Guide().Cells()[len(d.s.Guide().Cells())-1]
		asked, _ := d.s.Guide().Check(check.Check)
		byHand := strings.Contains(r.Fix, " && ") // first: apply alone does not mend it
		if act, _ := d.s.Guide().Offer(asked, check.Side, r); (act == nil) != byHand || act != nil && act.Name != "make" {
			t.Errorf("%q: the action that is offered is %v, and what to do is %q", change.args, act, r.Fix)
		}
		if first, _, has := strings.Cut(r.Fix, " && carrick apply"); has {
			d.shell(first)
		}
		stepstest.Apply(t, d.s, steps.ApplyOptions{TakeOver: strings.HasSuffix(r.Fix, "--take-over")})
		d.becomes(steps.Pass, "all 4")
	}
	d.kubectl("", "patch", "role/r", "--type=merge", "-p", `{"metadata":{"finalizers":["example.org/held"]}}`)
	d.kubectl("", "delete", "role/r", "--wait=false")
	d.becomes(steps.Fail, "Role drift-seen/r is being deleted")
	d.kubectl("", "patch", "role/r", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	d.becomes(steps.Fail, "Role drift-seen/r is gone")
	stepstest.Apply(t, d.s)
	stepstest.Undo(t, d.s)
	d.becomes(steps.Skip, "exists yet")
}

// Manually created objects are compared, too, once all of them exist. Missing fields are not drift, because apply has
// yet to write them.
func TestDriftOfWhatWasMadeByHand(t *testing.T) {
	t.Parallel()
	d := drifts(t, "by-hand", "drift-by-hand")
	docs := strings.SplitAfter(strings.ReplaceAll(written, "'${answers.space}'", d.ns), "---\n")
	by := func(docs ...string) {
		d.kubectl(
			strings.ReplaceAll(strings.Join(docs, ""), ", labels: {app.kubernetes.io/name: ours}", ""), "apply", "-f", "-",
		)
	}
	by(strings.ReplaceAll(docs[0], "verbs: [get]", "verbs: [list]"), docs[1], docs[2])
	d.becomes(steps.Skip, "exists yet")
	by(docs[3])
	d.becomes(steps.Warn, "Role drift-by-hand/r: rules[0].verbs[0] is list instead of get", "--take-over")
	by(docs[0])
	d.becomes(steps.Pass, "all 4")
}

// If a user is not allowed to send dry runs, the drift check does not pass.
func TestDriftThatCanNotBeAskedForIsNoPass(t *testing.T) {
	t.Parallel()
	d := drifts(t, "reader", "drift-reader")
	stepstest.Apply(t, d.s)
	d.becomes(steps.Pass, "all 4")
	admin := d.box.Open(t, clustertest.Remote, cluster.Options{})
	d.kubectl("", "create", "serviceaccount", "reader")
	d.kubectl(reads, "apply", "-f", "-")
	d.kubectl(
		"", "create", "clusterrolebinding", "drift-reader", "--clusterrole=drift-reader", "--serviceaccount="+d.ns+":reader",
	)
	d.box.Cleanup(t, clustertest.Remote, "delete", "clusterrole/drift-reader", "clusterrolebinding/drift-reader")
	token, _, err := admin.RequestToken(t.Context(), d.ns, "reader", cluster.TokenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k := kubeconfig.Config{Name: "reader", Server: admin.Server(), CA: admin.CA(), Token: token}
	as, err := admin.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	defer as.Close()
	g, assets := changing(written)
	ends := map[steps.Side]engine.Endpoint{
		steps.Local:  {Cluster: d.box.Open(t, clustertest.Local, cluster.Options{}), Name: "local"},
		steps.Remote: {Cluster: as, Name: "reader"},
	}
	d.s = stepstest.OpenWith(t, action.WithDrift(g), assets, "reader", map[string]any{"space": d.ns}, ends)
	d.becomes(steps.Skip, "cannot be compared", "Service drift-reader/s")
	d.kubectl("", "delete", "role/r")
	d.becomes(steps.Fail, "Role drift-reader/r is gone")
}
