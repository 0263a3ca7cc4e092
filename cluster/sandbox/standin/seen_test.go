package standin

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func configMap(namespace, name, label string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"of": label}},
		Data:       map[string]string{"is": name},
	}
}

func TestSeenFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		client := fake.NewSimpleDynamicClient(
			scheme.Scheme, configMap("b", "two", "x"), configMap("a", "one", "x"), configMap("a", "other", "y"),
		)
		var down atomic.Bool
		var lists atomic.Int32
		refused := apierrors.NewServiceUnavailable("away")
		now := watch.NewFake()
		client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			lists.Add(1)
			return down.Load(), nil, refused
		})
		client.PrependWatchReactor("configmaps", func(clienttesting.Action) (bool, watch.Interface, error) {
			now = watch.NewFake()
			return true, now, nil
		})
		s := See(ctx, client)
		defer s.Close()
		is := func(namespace, selector string, names ...string) {
			t.Helper()
			synctest.Wait()
			found, err := Listed[corev1.ConfigMap](ctx, s, configMaps, namespace, selector)
			if err != nil || len(found) != len(names) {
				t.Fatalf("%d objects %v, not %v", len(found), err, names)
			}
			for i, name := range names {
				if found[i].Name != name || found[i].Data["is"] != name {
					t.Errorf("%d is %v, not %s", i, found[i], name)
				}
			}
		}
		is("", "", "one", "other", "two")
		is("a", "of=x", "one")
		fresh := func(o runtime.Object) runtime.Object {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			return &unstructured.Unstructured{Object: fields}
		}
		synctest.Wait()
		now.Add(fresh(configMap("c", "three", "x")))
		now.Delete(fresh(configMap("a", "one", "x")))
		now.Modify(fresh(configMap("a", "other", "x")))
		is("", "of=x", "other", "two", "three")
		if lists.Load() != 1 {
			t.Errorf("%d lists", lists.Load())
		}
		if got, err := Got[corev1.ConfigMap](ctx, s, configMaps, "b", "two"); err != nil || got.Data["is"] != "two" {
			t.Errorf("got %v %v", got, err)
		}
		if _, err := Got[corev1.ConfigMap](ctx, s, configMaps, "b", "three"); !apierrors.IsNotFound(err) {
			t.Errorf("what is not there: %v", err)
		}

		synctest.Wait()
		down.Store(true) // the watch ends, and nothing can be listed
		now.Stop()
		time.Sleep(2 * LookEvery) // of the bubble's clock
		if _, err := s.List(ctx, configMaps, "", ""); !errors.Is(err, refused) {
			t.Errorf("while it is away: %v", err)
		}
		down.Store(false)         // what it holds then is what counts
		time.Sleep(2 * LookEvery) // of the bubble's clock
		is("", "", "one", "other", "two")
	})
}
