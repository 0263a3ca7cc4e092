package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/bearer"
	"carrick/cluster/clustertest"
	"carrick/cluster/diff"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
)

const manager = "carrick.test.a"

// object returns the object in a YAML text, with the given namespace.
func object(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	if namespace != "" {
		obj.SetNamespace(namespace)
	}
	return obj
}

// emptyNamespace creates a namespace for the test on a real API server and returns its name.
func emptyNamespace(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	made, err := c.Create(
		t.Context(), object(t, "", "{apiVersion: v1, kind: Namespace, metadata: {generateName: change-}}"), manager,
	)
	if err != nil {
		t.Fatal(err)
	}
	return made.GetName()
}

func apply(t *testing.T, c *cluster.Cluster, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := c.Apply(t.Context(), obj, cluster.ApplyOptions{Manager: manager})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestApplyOnARealServer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t).Open(t, clustertest.Local, cluster.Options{})
	namespace := emptyNamespace(t, c)
	config := func(value string) *unstructured.Unstructured {
		return object(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: "+value+"}}")
	}
	first := apply(t, c, config("one"))

	t.Run("twice is no change", func(t *testing.T) {
		second := apply(t, c, config("one"))
		if second.GetResourceVersion() != first.GetResourceVersion() || diff.Objects(first, second) != "" {
			t.Errorf("changed: %s", diff.Objects(first, second))
		}
	})
	t.Run("a dry run changes nothing, and shows what would change", func(t *testing.T) {
		would, err := c.Apply(t.Context(), config("two"), cluster.ApplyOptions{Manager: manager, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		now, err := c.Fetch(t.Context(), config("two"))
		if err != nil || now.GetResourceVersion() != first.GetResourceVersion() || len(now.GetManagedFields()) == 0 {
			t.Errorf("then %v, %v", now, err)
		}
		if diff := diff.Objects(now, would); !strings.Contains(diff, "-  key: one\n+  key: two\n") ||
			strings.Contains(diff, "resourceVersion") {
			t.Errorf("diff %s", diff)
		}
	})
	t.Run("a conflict names the manager and the field", func(t *testing.T) {
		other := cluster.ApplyOptions{Manager: "carrick.test.b"}
		_, err := c.Apply(t.Context(), config("two"), other)
		conflicts := failure.Conflicts(err)
		if len(conflicts) != 1 || conflicts[0] != (failure.Conflict{Manager: manager, Field: ".data.key"}) ||
			!apierrors.IsConflict(err) {
			t.Fatalf("got %+v, %v", conflicts, err)
		}
		other.Force = true
		if _, err := c.Apply(t.Context(), config("two"), other); err != nil {
			t.Errorf("taking it over: %v", err)
		}
	})
	for _, tc := range []struct{ situation, object, words string }{
		{"an unknown field", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dta: {}}", "dta"},
		{
			"an unknown field, deep in it",
			"{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {ports: [{port: 1, nodeport: 2}]}}", "nodeport",
		},
	} {
		t.Run(tc.situation+" is refused", func(t *testing.T) {
			_, err := c.Apply(t.Context(), object(t, namespace, tc.object), cluster.ApplyOptions{Manager: manager})
			if err == nil || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("applied: %v", err)
			}
			_, err = c.Create(t.Context(), object(t, namespace, tc.object), manager)
			if err == nil || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("created: %v", err)
			}
		})
	}
	t.Run("a Secret's diff is masked", func(t *testing.T) {
		secret := func(value string) *unstructured.Unstructured {
			return object(t, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: "+value+"}}")
		}
		before := apply(t, c, secret("old-secret"))
		would, err := c.Apply(t.Context(), secret("new-secret"), cluster.ApplyOptions{Manager: manager, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		diff := diff.Objects(before, would)
		if !strings.Contains(diff, "+  password: (hidden, 10 bytes, changed)\n") || strings.Contains(diff, "c2VjcmV0") ||
			strings.Contains(diff, "-secret") {
			t.Errorf("diff %s", diff)
		}
	})
}

func TestPreconditionsOnARealServer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t).Open(t, clustertest.Local, cluster.Options{})
	namespace := emptyNamespace(t, c)
	obj := apply(t, c, object(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"))
	patch := func(o cluster.PatchOptions) error {
		o.Manager = manager
		_, err := c.Patch(t.Context(), configMaps, namespace, "a", []byte(`{"data":{"key":"value"}}`), o)
		return err
	}
	for situation, err := range map[string]error{
		"patch with another UID":     patch(cluster.PatchOptions{UID: "c0ffee"}),
		"patch with another version": patch(cluster.PatchOptions{UID: obj.GetUID(), ResourceVersion: "1"}),
		"delete with another UID":    c.Delete(t.Context(), configMaps, namespace, "a", "c0ffee"),
	} {
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", situation, err)
		}
	}
	if err := patch(cluster.PatchOptions{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}); err != nil {
		t.Errorf("patch with its own: %v", err)
	}
	for _, situation := range []string{"delete", "delete what is gone"} {
		if err := c.Delete(t.Context(), configMaps, namespace, "a", obj.GetUID()); err != nil {
			t.Errorf("%s: %v", situation, err)
		}
	}
	if _, err := c.Fetch(t.Context(), obj); !apierrors.IsNotFound(err) {
		t.Errorf("then: %v", err)
	}
}

func TestGoneOnARealServer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t).Open(t, clustertest.Local, cluster.Options{})
	namespace := emptyNamespace(t, c)
	held := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.org/hold]}}"
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	obj := apply(t, c, object(t, namespace, held))
	gone := func(ctx context.Context) error { return c.Gone(ctx, configMaps, namespace, "a", obj.GetUID()) }

	if err := gone(soon()); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "is not being deleted") {
		t.Errorf("no one has deleted it: %v", err)
	}
	if err := c.Delete(t.Context(), configMaps, namespace, "a", obj.GetUID()); err != nil {
		t.Fatal(err)
	}
	if err := gone(soon()); err == nil || !strings.Contains(err.Error(), "blocked by example.org/hold") {
		t.Errorf("a finalizer holds it: %v", err)
	}
	end := make(chan error, 1)
	go func() { end <- gone(t.Context()) }()
	if _, err := c.Patch(
		t.Context(), configMaps, namespace, "a", []byte(`{"metadata":{"finalizers":null}}`),
		cluster.PatchOptions{Manager: manager},
	); err != nil {
		t.Fatal(err)
	}
	if err := <-end; err != nil {
		t.Errorf("the finalizer has gone: %v", err)
	}
	next := apply(t, c, object(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"))
	if err := gone(t.Context()); err != nil || next.GetUID() == obj.GetUID() {
		t.Errorf("another of the same name has come: %v", err)
	}
}

func TestTokensOnARealServer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t).Open(t, clustertest.Local, cluster.Options{})
	namespace := emptyNamespace(t, c)
	apply(t, c, object(t, namespace, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}"))
	apply(t, c, object(t, namespace, `
apiVersion: v1
kind: Secret
metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token`))

	t.Run("a token Secret's token never ends, and is a way in", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		token := filledToken(ctx, t, c, namespace, "robot-token")
		claims, err := bearer.Parse(token)
		where, name, ok := claims.ServiceAccount()
		if err != nil || !ok || where != namespace || name != "robot" || !claims.Expires.IsZero() {
			t.Errorf("got %+v, %v", claims, err)
		}
		kubeconfig := kubeconfig.Config{Server: c.Server(), CA: c.CA(), Namespace: namespace, Token: token}
		robot, err := c.As([]byte(kubeconfig.Bytes().Reveal()))
		if err != nil {
			t.Fatal(err)
		}
		who, err := robot.WhoAmI(ctx)
		for apierrors.IsUnauthorized(err) && ctx.Err() == nil { // the API server has not read the Secret itself yet
			who, err = robot.WhoAmI(ctx)
		}
		if err != nil || who.Name != "system:serviceaccount:"+namespace+":robot" {
			t.Errorf("got %+v, %v", who, err)
		}
		secret := object(t, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: robot-token}}")
		if _, err := robot.Fetch(ctx, secret); !apierrors.IsForbidden(err) {
			t.Errorf("it may read Secrets: %v", err)
		}
	})
	t.Run("a requested token ends", func(t *testing.T) {
		token, expires, err := c.RequestToken(
			t.Context(), namespace, "robot", cluster.TokenOptions{Audiences: []string{"other"}, Expires: 20 * time.Minute},
		)
		if err != nil {
			t.Fatal(err)
		}
		claims, err := bearer.Parse(token)
		if err != nil || !claims.Expires.Equal(expires) || len(claims.Audience) != 1 || claims.Audience[0] != "other" {
			t.Errorf("got %+v, %v, %v", claims, expires, err)
		}
		if left := time.Until(expires); left < 15*time.Minute || left > 25*time.Minute {
			t.Errorf("it ends in %v", left)
		}
	})
	t.Run("no token for nobody", func(t *testing.T) {
		if _, _, err := c.RequestToken(t.Context(), namespace, "nobody", cluster.TokenOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("error %v", err)
		}
	})
}

// filledToken waits until the controller has put the token into its Secret, and returns the token.
func filledToken(ctx context.Context, t *testing.T, c *cluster.Cluster, namespace, name string) masked.Value {
	t.Helper()
	for {
		traced, trace := tracked.WithTrace(ctx)
		secret, err := c.Secret(traced, namespace, name, "token")
		if err == nil && !secret.Data["token"].IsZero() {
			return secret.Data["token"]
		}
		if err := trace.Wait(ctx); err != nil {
			t.Fatalf("no token: %v", err)
		}
	}
}

func TestKindsOnARealServer(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t).Open(t, clustertest.Local, cluster.Options{})
	namespace := emptyNamespace(t, c)
	made := apply(
		t, c, object(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {carrick/link.test: ''}}}"),
	)

	kinds, err := c.Kinds(t.Context())
	if err != nil || len(kinds) < 30 {
		t.Fatalf("got %d kinds, %v", len(kinds), err)
	}
	seen := map[schema.GroupResource]bool{}
	for _, kind := range kinds {
		if seen[kind.GVR.GroupResource()] || strings.Contains(kind.GVR.Resource, "/") {
			t.Errorf("%s stands there twice, or is a subresource", kind.GVR)
		}
		seen[kind.GVR.GroupResource()] = true
	}
	found, err := c.Find(t.Context(), configMaps, namespace, cluster.Selector{Labels: "carrick/link.test"})
	if err != nil || len(found) != 1 || found[0].UID != made.GetUID() {
		t.Errorf("found %v, %v", found, err)
	}
	gvk := schema.GroupVersionKind{Group: "liqo.io", Version: "v1", Kind: "Nothing"}
	if _, _, err := c.Resource(t.Context(), gvk); !errors.Is(err, failure.ErrNotServed) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Find(
		t.Context(), gvk.GroupVersion().WithResource("nothings"), "", cluster.Selector{},
	); !errors.Is(err, failure.ErrNotServed) {
		t.Errorf("error %v", err)
	}
}
