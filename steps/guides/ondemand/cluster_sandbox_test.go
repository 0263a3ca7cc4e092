package ondemand_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/cases"
	"carrick/cluster/host"
	"carrick/cluster/kubeconfig"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/guides/ondemand"
	"carrick/steps/stepstest"
)

// clusterHalf returns the guide without the actions on the web node and without the charts, which are not in this
// repository.
func clusterHalf() *steps.Guide {
	g := withoutHost(ondemand.Guide())
	for _, name := range []string{"walltime", "idle"} {
		g.Step(name).Actions = nil
	}
	return g
}

func withoutHost(g *steps.Guide) *steps.Guide {
	var kept []steps.Step
	for _, s := range g.Steps {
		var actions []steps.Action
		for _, a := range s.Actions {
			if a.On == steps.Remote {
				actions = append(actions, a)
			}
		}
		var checks []steps.Check
		for _, c := range s.Checks {
			if c.On == steps.Remote {
				checks = append(checks, c)
			}
		}
		s.Actions, s.Checks = actions, checks
		kept = append(kept, s)
	}
	g.Steps, g.Undo = kept, nil
	return g
}

// clusterSession opens the cluster half of the guide on a real API server. A folder represents the web node.
func clusterSession(t *testing.T, box *clustertest.Sandbox, name string, answers map[string]any) *engine.Session {
	t.Helper()
	return openCluster(t, box, clusterHalf(), name, answers)
}

func openCluster(
	t *testing.T, box *clustertest.Sandbox, g *steps.Guide, name string, answers map[string]any,
) *engine.Session {
	t.Helper()
	host, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{
		"cluster.server": "https://k8s.example.org:6443", "hooks.allow-cidr": "0.0.0.0/0",
		"trial.user": "alice", "trial.other": "bob", "trial.enabled": true,
	}
	for k, v := range answers {
		all[k] = v
	}
	s := stepstest.OpenWith(t, g, assets, name, all, map[steps.Side]engine.Endpoint{
		steps.Local:  {Host: host, Name: "web"},
		steps.Remote: {Cluster: box.Open(t, clustertest.Remote, cluster.Options{}), Name: box.Contexts[clustertest.Remote]},
	})
	t.Cleanup(s.Close)
	return s
}

const idMaps = `
apiVersion: v1
kind: Namespace
metadata: {name: k8-ldap-configmap}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: user-uid-map, namespace: k8-ldap-configmap}
data: {user-alice: "5001", user-bob: "5002"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: user-gid-map, namespace: k8-ldap-configmap}
data: {user-alice: "6001", user-bob: "6002"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: user-gids-map, namespace: k8-ldap-configmap}
data: {user-alice: '["6001","7001"]'}
`

// After apply all checks of the cluster half pass, and a second apply changes nothing. Undo restores the original state
// of the cluster.
func TestVerifyTheClustersHalfComesAndGoes(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := clustertest.Start(t)
	box.Run(t, clustertest.Remote, idMaps, "apply", "-f", "-")
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", "k8-ldap-configmap")
	before := stepstest.Snapshot(t, box)
	s := clusterSession(t, box, "half", map[string]any{"policies.ids": "admission-policy"})
	stepstest.Apply(t, s)
	stepstest.Green(t, s)
	p, err := s.Plan(t.Context(), engine.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Empty() {
		t.Errorf("a second apply would change: %+v", p.Actions)
	}
	t.Run("the hook takes the trial over", func(t *testing.T) { hookTakesOver(t, box) })
	box.Run(
		t, clustertest.Remote,
		"{apiVersion: v1, kind: Namespace, metadata: {name: user-zoe, labels: {app.kubernetes.io/name: open-ondemand}}}",
		"apply", "-f", "-",
	)
	if p, err = s.PlanUndo(t.Context(), engine.Scope{}); err != nil {
		t.Fatal(err)
	}
	if kept := p.ByOthers(); len(kept) != 1 || kept[0].What != "the users' namespaces user-zoe" {
		t.Errorf("the undo names as kept: %+v", kept)
	}
	box.Run(t, clustertest.Remote, "", "delete", "namespace", "user-zoe")
	stepstest.Undo(t, s)
	if d := cmp.Diff(before, stepstest.Snapshot(t, box)); d != "" {
		t.Errorf("undo did not restore the original state (-before +after):\n%s", d)
	}
	if p, err = s.PlanUndo(t.Context(), engine.Scope{}); err != nil || len(p.Actions) != 0 {
		t.Errorf("after the undo, another one would: %+v, %v", p.Actions, err)
	}
}

// hookTakesOver applies objects over carrick's with kubectl, as upstream's hook does.
func hookTakesOver(t *testing.T, box *clustertest.Sandbox) {
	const theirs = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny-from-other-namespaces, namespace: user-alice}
spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 0.0.0.0/0}}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: alice-ood-user, namespace: user-alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ood-user}
subjects: [{kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}]
`
	if out := box.Run(
		t, clustertest.Remote, theirs, "apply", "--dry-run=server", "-f", "-",
	); !strings.Contains(out, "rolebinding.rbac.authorization.k8s.io/alice-ood-user") {
		t.Errorf("kubectl says %q", out)
	}
}

// withFirstToken returns a client of the cluster that authenticates only with the first token, which root gets.
func withFirstToken(t *testing.T, s *engine.Session) *cluster.Cluster {
	t.Helper()
	c := s.Endpoint(steps.Remote).Cluster
	secret, err := c.Secret(t.Context(), "ondemand", "ondemand-first-token", "token")
	if err != nil {
		t.Fatal(err)
	}
	k := kubeconfig.Config{Server: c.Server(), CA: c.CA(), Token: secret.Data["token"]}
	as, err := c.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	return as
}

func binding(t *testing.T, role string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: by-the-hook-%s, namespace: user-alice}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{kind: User, name: carol, apiGroup: rbac.authorization.k8s.io}]
`, role, role))
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// Root's token is sufficient for everything that the hook does, and can renew itself. It cannot grant permissions that
// it does not have, or create tokens of other ServiceAccounts.
func TestVerifyTheAccountDoesWhatTheHookDoesAndNoMore(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	box.Run(
		t, clustertest.Remote, "", "create", "clusterrole", "job-pod-reaper", "--verb=list,delete",
		"--resource=pods,services,configmaps,secrets",
	)
	box.Cleanup(t, clustertest.Remote, "delete", "clusterrole", "job-pod-reaper")
	s := clusterSession(t, box, "account", nil)
	stepstest.Apply(t, s)
	defer stepstest.Undo(t, s)
	as := withFirstToken(t, s)
	for _, role := range []string{"ood-user", "ood-initializer", "job-pod-reaper"} {
		if _, err := as.Create(t.Context(), binding(t, role), "kubectl"); err != nil {
			t.Errorf("the hook's binding of %s: %v", role, err)
		}
	}
	if _, err := as.Create(t.Context(), binding(t, "cluster-admin"), "kubectl"); !apierrors.IsForbidden(err) {
		t.Errorf("it binds cluster-admin: %v", err)
	}
	name := fmt.Sprintf("user-%d", time.Now().UnixNano())
	space := object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	if _, err := as.Create(t.Context(), space, "kubectl"); err != nil {
		t.Errorf("the hook's namespace: %v", err)
	}
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", name)
	token, ends, err := as.RequestToken(t.Context(), "ondemand", "ondemand", cluster.TokenOptions{Expires: 2 * time.Hour})
	if err != nil || token.IsZero() || time.Until(ends) < time.Hour {
		t.Errorf("it does not renew its token: %v, good until %v", err, ends)
	}
	if _, _, err := as.RequestToken(
		t.Context(), "ondemand", "default", cluster.TokenOptions{},
	); !apierrors.IsForbidden(err) {
		t.Errorf("it gets a token of another ServiceAccount: %v", err)
	}
	if _, _, err := as.RequestToken(
		t.Context(), "kube-system", "default", cluster.TokenOptions{},
	); !apierrors.IsForbidden(err) {
		t.Errorf("it gets a token of another namespace: %v", err)
	}
}

// pod returns a pod as the portal creates it, with the user's uid and gid, after a call of change.
func pod(t *testing.T, change func(map[string]any)) *unstructured.Unstructured {
	t.Helper()
	o := object(t, `
apiVersion: v1
kind: Pod
metadata: {name: tried, namespace: user-alice}
spec:
  securityContext: {runAsUser: 5001, runAsGroup: 6001, fsGroup: 6001, runAsNonRoot: true, supplementalGroups: [7001], seccompProfile: {type: RuntimeDefault}}
  initContainers:
    - {name: init, image: "registry.example.org/app", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
  containers:
    - {name: app, image: "registry.example.org/app", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
`)
	change(o.Object["spec"].(map[string]any))
	return o
}

func at(spec map[string]any, list string) map[string]any {
	return spec[list].([]any)[0].(map[string]any)["securityContext"].(map[string]any)
}

func own(spec map[string]any) map[string]any { return spec["securityContext"].(map[string]any) }

// The policies reject every pod that would run as another user, and accept the portal's pods.
func TestVerifyThePoliciesPinIDs(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "cycle")
	box := clustertest.Start(t)
	// An API server goes on with the maps as they were when the last policy that
	// takes them was deleted, as an earlier test did.
	box.Stop(t, clustertest.Remote)
	box.Start(t, clustertest.Remote)
	box.Run(t, clustertest.Remote, idMaps, "apply", "-f", "-")
	box.Cleanup(t, clustertest.Remote, "delete", "namespace", "k8-ldap-configmap")
	s := clusterSession(t, box, "ids", map[string]any{"policies.ids": "admission-policy"})
	policies := func() string {
		return box.Run(
			t, clustertest.Remote, "", "get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name",
		)
	}
	before := policies()
	stepstest.Apply(t, s)
	defer func() {
		stepstest.Undo(t, s)
		if after := policies(); after != before {
			t.Errorf("undo leaves %q; before apply there was %q", after, before)
		}
	}()
	c := s.Endpoint(steps.Remote).Cluster
	try := func(change func(map[string]any)) error {
		_, err := c.Preview(t.Context(), pod(t, change), cluster.PreviewOptions{})
		return err
	}
	wrongUID := func(spec map[string]any) { own(spec)["runAsUser"] = int64(5002) }
	// until all three are in force
	for end := time.Now().Add(5 * time.Minute); try(wrongUID) == nil && time.Now().Before(end); {
	}
	for end := time.Now().Add(5 * time.Minute); try(func(spec map[string]any) { own(spec)["supplementalGroups"] = []any{int64(1)} }) == nil && time.Now().Before(end); {
	}
	for name, tried := range map[string]struct {
		change func(map[string]any)
		says   string // "": it is let through
	}{
		"the portal's":     {func(map[string]any) {}, ""},
		"uid of another":   {wrongUID, "uid 5001"},
		"no uid":           {func(spec map[string]any) { delete(own(spec), "runAsUser") }, "uid 5001"},
		"uid of container": {func(spec map[string]any) { at(spec, "containers")["runAsUser"] = int64(5002) }, "uid 5001"},
		"uid of init": {
			func(spec map[string]any) { at(spec, "initContainers")["runAsUser"] = int64(5002) }, "uid 5001",
		},
		"own uid by each":   {func(spec map[string]any) { at(spec, "containers")["runAsUser"] = int64(5001) }, ""},
		"gid of another":    {func(spec map[string]any) { own(spec)["runAsGroup"] = int64(6002) }, "gid 6001"},
		"fsGroup of others": {func(spec map[string]any) { own(spec)["fsGroup"] = int64(0) }, "gid 6001"},
		"no fsGroup":        {func(spec map[string]any) { delete(own(spec), "fsGroup") }, ""},
		"other's group": {
			func(spec map[string]any) { own(spec)["supplementalGroups"] = []any{int64(7001), int64(700)} }, "supplementalGroups",
		},
		"own group": {func(spec map[string]any) { own(spec)["supplementalGroups"] = []any{int64(6001), int64(7001)} }, ""},
		"group by fsGroup": {func(spec map[string]any) {
			own(spec)["fsGroup"], own(spec)["supplementalGroups"] = int64(700), []any{int64(700)}
		}, "gid 6001"},
		"no groups": {func(spec map[string]any) { delete(own(spec), "supplementalGroups") }, ""},
		"setuid": {func(spec map[string]any) {
			delete(at(spec, "containers"), "allowPrivilegeEscalation")
		}, "allowPrivilegeEscalation"},
	} {
		err := try(tried.change)
		switch {
		case tried.says == "" && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		case tried.says != "" && (err == nil || !strings.Contains(err.Error(), tried.says)):
			t.Errorf("%s: %v, and %q is to be said", name, err, tried.says)
		}
	}
	t.Run("who is in no map is refused", func(t *testing.T) {
		mapped := func(uid string, done func(error) bool) {
			t.Helper()
			box.Run(
				t, clustertest.Remote, "", "-n", "k8-ldap-configmap", "patch", "configmap", "user-uid-map", "--type=merge", "-p",
				`{"data":{"user-alice":`+uid+`}}`,
			)
			var err error
			for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
				if err = try(func(map[string]any) {}); done(err) {
					return
				}
			}
			t.Errorf("with uid %s: %v", uid, err)
		}
		mapped("null", func(err error) bool { return err != nil && strings.Contains(err.Error(), "no uid is known") })
		// Once the last policy is deleted, this API server reads no ConfigMap for policies any more: see adapterPodTaken.
		mapped(`"5001"`, func(err error) bool { return err == nil })
	})
	t.Run("other namespaces are left alone", func(t *testing.T) {
		o := pod(t, wrongUID)
		o.SetNamespace("default")
		if _, err := c.Preview(t.Context(), o, cluster.PreviewOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// The isolation check, which impersonates users, agrees with the API server.
func TestVerifyIsolationIsWhatTheAPIServerSays(t *testing.T) {
	t.Parallel()
	cases.Whole(t, "live")
	box := clustertest.Start(t)
	s := clusterSession(t, box, "isolation", nil)
	stepstest.Apply(t, s)
	defer stepstest.Undo(t, s)
	stepstest.Green(t, s)
	wide := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "everybody-everywhere"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "ood-user"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "system:authenticated"}},
	}
	text, err := yaml.Marshal(wide)
	if err != nil {
		t.Fatal(err)
	}
	box.Run(t, clustertest.Remote, string(text), "create", "-f", "-")
	defer box.Run(t, clustertest.Remote, "", "delete", "clusterrolebinding", "everybody-everywhere")
	s.Forget()
	b, _ := s.Look(t.Context(), s.Guide().Cells())
	for _, name := range []string{"user-denied", "user-isolation"} {
		if v := b.Verdict(steps.Cell{Step: "trial", Check: name, Side: steps.Remote}); v.Status != steps.Fail || v.Fix == "" {
			t.Errorf("%s: %v: %s", name, v.Status, v.Found)
		}
	}
}
