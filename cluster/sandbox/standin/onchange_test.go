package standin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// TestLoopOnChange verifies that look is called soon after a change, rarely without a change, and at most once per
// LookEvery during a burst of changes.
func TestLoopOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleDynamicClient(scheme.Scheme)
		now := watch.NewFake()
		client.PrependWatchReactor(
			"configmaps", func(clienttesting.Action) (bool, watch.Interface, error) { return true, now, nil },
		)
		one := func(label string) *unstructured.Unstructured {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configMap("a", "one", label))
			if err != nil {
				t.Fatal(err)
			}
			return &unstructured.Unstructured{Object: fields}
		}
		looks := 0
		end := loopOnChange(
			t.Context(), See(t.Context(), client), func(context.Context) error { looks++; return nil }, configMaps,
		)
		defer end()
		after := func(d time.Duration, least, most int) {
			t.Helper()
			was := looks
			time.Sleep(d)
			synctest.Wait()
			if n := looks - was; n < least || n > most {
				t.Errorf("%d looks within %s, not %d to %d", n, d, least, most)
			}
		}
		after(LookEvery+time.Millisecond, 1, 2) // the first, and one of the list
		after(20*time.Second, 9, 11)            // nothing happens
		now.Add(one("x"))
		after(LookEvery+time.Millisecond, 1, 2)
		for range 5 {
			now.Modify(one("y"))
		}
		after(2*LookEvery, 1, 2)
		now.Delete(one("y"))
		after(LookEvery+time.Millisecond, 1, 1)
	})
}
