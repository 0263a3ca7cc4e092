package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clustertest"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
)

// seenWithin is the time limit for noticing a change. It is a limit for slow machines and not a performance budget.
const seenWithin = 3 * time.Minute

// real is a namespace for one test in a real cluster.
type real struct {
	t         *testing.T
	sandbox   *clustertest.Sandbox
	side      string
	namespace string
	c         *cluster.Cluster
}

func realCluster(t *testing.T, side string) *real {
	t.Helper()
	s := clustertest.Start(t)
	r := &real{t: t, sandbox: s, side: side, c: s.Open(t, side, cluster.Options{})}
	r.namespace = fmt.Sprintf(
		"live-%s-%d", strings.ToLower(strings.NewReplacer("Test", "", "_", "-").Replace(t.Name()[:min(len(t.Name()), 30)])),
		time.Now().UnixNano()%1e6,
	)
	r.kubectl("create", "namespace", r.namespace)
	return r
}

func (r *real) kubectl(args ...string) string {
	r.t.Helper()
	return r.sandbox.Run(r.t, r.side, "", args...)
}

func (r *real) apply(manifest string) {
	r.t.Helper()
	r.sandbox.Run(r.t, r.side, manifest, "apply", "-f", "-")
}

func (r *real) put(name, value string) {
	r.t.Helper()
	patch := fmt.Appendf(nil, `{"data":{"key":%q}}`, value)
	if _, err := r.c.Patch(
		r.t.Context(), configMaps, r.namespace, name, patch, cluster.PatchOptions{Manager: "test"},
	); err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) configMap(c *cluster.Cluster, name string) *probe {
	return &probe{t: r.t, read: func(ctx context.Context) (string, error) {
		object, err := c.Get(ctx, configMaps, r.namespace, name)
		if err != nil {
			return "", err
		}
		value, _ := object.Object["data"].(map[string]any)["key"].(string)
		return value, nil
	}}
}

// limited returns the cluster with the credentials of a ServiceAccount that has one role.
func (r *real) limited(verbs string) *cluster.Cluster {
	r.t.Helper()
	r.kubectl("-n", r.namespace, "create", "serviceaccount", "limited")
	r.kubectl("-n", r.namespace, "create", "role", "limited", "--verb="+verbs, "--resource=configmaps")
	r.grant()
	token := strings.TrimSpace(r.kubectl("-n", r.namespace, "create", "token", "limited"))
	k := kubeconfig.Config{
		Name: "limited", Server: r.c.Server(), CA: r.c.CA(), Token: masked.New(token), Namespace: r.namespace,
	}
	c, err := r.c.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *real) grant() {
	r.t.Helper()
	r.kubectl(
		"-n", r.namespace, "create", "rolebinding", "limited", "--role=limited", "--serviceaccount="+r.namespace+":limited",
	)
}

func (r *real) revoke() {
	r.t.Helper()
	r.kubectl("-n", r.namespace, "delete", "rolebinding", "limited")
}

// The test does not check how fast changes are noticed; a benchmark measures this.
func TestSandboxEveryWriteIsSeen(t *testing.T) {
	t.Parallel()
	r := realCluster(t, clustertest.Local)
	r.kubectl("-n", r.namespace, "create", "configmap", "x", "--from-literal=key=0")
	p := r.configMap(r.c, "x").look().is("0")
	for i := range 50 {
		want := strconv.Itoa(i + 1)
		r.put("x", want)
		for p.value != want {
			p.changed(seenWithin)
		}
	}
}

func TestSandboxAColdPassTakesOneRoundOfRequests(t *testing.T) {
	t.Parallel()
	r := realCluster(t, clustertest.Local)
	start := time.Now()
	done := make(chan error)
	for i := range 30 {
		go func() {
			_, err := r.c.Get(t.Context(), configMaps, r.namespace, fmt.Sprintf("x%d", i))
			done <- err
		}()
	}
	for range 30 {
		if err := <-done; !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	t.Logf("30 distinct reads, cold: %v", time.Since(start))
	start = time.Now()
	for i := range 30 {
		_, _ = r.c.Get(t.Context(), configMaps, r.namespace, fmt.Sprintf("x%d", i))
	}
	t.Logf("the same, warm: %v", time.Since(start))
}

// When an API server goes away, all reads turn stale, and all recover afterwards. The API server authorizes a
// watch only when it begins, so a right that was revoked during a watch is noticed after the restart.
func TestSandboxReadsSurviveARestart(t *testing.T) {
	t.Parallel()
	r := realCluster(t, clustertest.Remote)
	probes := make([]*probe, 30)
	for i := range probes {
		probes[i] = r.configMap(r.c, fmt.Sprintf("x%d", i)).look().fails("not found", apierrors.IsNotFound)
	}
	r.kubectl("-n", r.namespace, "create", "configmap", "x", "--from-literal=key=1")
	limited := r.limited("get,list,watch")
	right := permission.Rule{Verb: "watch", Resource: "configmaps", Namespace: r.namespace}
	p := r.configMap(limited, "x")
	for p.look(); p.err != nil; { // the binding may take a moment to count
		p.changed(seenWithin)
	}
	r.revoke()
	can(t, limited, right, false)

	r.sandbox.Stop(t, r.side)
	lost := time.Now()
	for _, p := range probes {
		p.changed(seenWithin).stale()
	}
	t.Logf("all stale %v after the API server had gone: %s", time.Since(lost), failure.Explain(probes[0].err))
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
	defer cancel()
	_ = probes[0].trace.Wait(ctx)
	r.sandbox.Start(t, r.side)
	back := time.Now()
	for _, p := range probes {
		for !apierrors.IsNotFound(p.err) {
			p.changed(seenWithin)
		}
	}
	t.Logf("all recovered %v after it was ready again", time.Since(back))

	for !apierrors.IsForbidden(p.err) {
		p.changed(seenWithin)
	}
	t.Log(failure.Explain(p.err))
	start := time.Now()
	r.grant()
	p.changed(seenWithin).is("1")
	t.Logf("granted again: seen after %v", time.Since(start))
	can(t, limited, right, true)
}

// can waits until a permission is granted or not, as wanted. It uses no cached looks.
func can(t *testing.T, c *cluster.Cluster, right permission.Rule, want bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		decisions, err := c.Can(t.Context(), right)
		if err != nil {
			t.Fatal(err)
		}
		if decisions[0].Allowed == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still %v", right, !want)
		}
	}
}

func TestSandboxWhatMayOnlyBeGotIsPolled(t *testing.T) {
	t.Parallel()
	r := realCluster(t, clustertest.Local)
	r.kubectl("-n", r.namespace, "create", "configmap", "x", "--from-literal=key=1")
	limited := r.limited("get")
	p := r.configMap(limited, "x")
	for p.look(); p.err != nil; {
		p.changed(seenWithin)
	}
	if _, polled := p.trace.Seen(); !polled {
		t.Error("it does not say that it is polled")
	}
	start := time.Now()
	r.put("x", "2")
	p.changed(seenWithin).is("2")
	t.Logf("a change was seen by polling after %v", time.Since(start))
	if _, err := limited.List(t.Context(), configMaps, r.namespace, cluster.Selector{}); !apierrors.IsForbidden(err) {
		t.Errorf("a forbidden list gave %v", err)
	}
}

const boatsCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func TestSandboxAKindIsReadOnceItIsServed(t *testing.T) {
	t.Parallel()
	r := realCluster(t, clustertest.Local)
	boats := schema.GroupVersionResource{Group: r.namespace + ".example.com", Version: "v1", Resource: "boats"}
	p := &probe{t: t, count: func(ctx context.Context) (int, error) {
		list, err := r.c.List(ctx, boats, r.namespace, cluster.Selector{})
		return len(list), err
	}}
	p.look().fails("not served", func(err error) bool { return errors.Is(err, failure.ErrNotServed) })
	r.apply(fmt.Sprintf(boatsCRD, r.namespace))
	t.Cleanup(func() {
		_ = r.c.Delete(context.Background(), crds, "", "boats."+r.namespace+".example.com", "")
	})
	start := time.Now()
	p.changed(seenWithin).is("0")
	t.Logf("usable %v after kubectl returned", time.Since(start))
	r.apply(fmt.Sprintf("{apiVersion: %s/v1, kind: Boat, metadata: {name: b, namespace: %s}}", boats.Group, r.namespace))
	p.changed(seenWithin).is("1")
	r.kubectl("delete", "crd", "boats."+boats.Group)
	for !errors.Is(p.err, failure.ErrNotServed) {
		p.changed(seenWithin)
	}
}

func TestSandboxSaysWhoAndWhatItIs(t *testing.T) {
	t.Parallel()
	r := realCluster(t, clustertest.Local)
	version, err := r.c.Version(t.Context())
	if err != nil || version.Git != r.sandbox.Version || version.Major != 1 || version.Minor < 30 || !version.SkewKnown ||
		version.Skew.Abs() > time.Minute {
		t.Errorf("got %+v, %v", version, err)
	}
	who, err := r.c.WhoAmI(t.Context())
	if err != nil || who.Name == "" {
		t.Errorf("got %+v, %v", who, err)
	}
	uid, err := r.c.UID(t.Context())
	if err != nil || uid == "" {
		t.Errorf("got %q, %v", uid, err)
	}
	rules, _, _, err := r.c.Rules(t.Context(), r.namespace)
	if err != nil || len(rules) == 0 {
		t.Errorf("got %v, %v", rules, err)
	}
	t.Logf("%s, %v away, clock %v off, seen as %s", version.Git, version.Latency, version.Skew, who.Name)
}
