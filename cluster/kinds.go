package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/failure"
)

var crds = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// soon is the pause before the first retry for a kind whose CustomResourceDefinition is established. The API server
// serves the kind about 60 ms after that.
const soon = 50 * time.Millisecond

// untilServed records that the API server does not serve the kind. It waits until the kind's CustomResourceDefinition
// changes, and returns the pause before the next attempt. If the CustomResourceDefinition cannot be watched, the wait
// has a time limit. If the kind cannot have a CustomResourceDefinition, untilServed does not wait.
func (r *read) untilServed(cause error) time.Duration {
	name := r.key.gvr.Resource + "." + r.key.gvr.Group
	missing := fmt.Errorf("read %s: %w (%w)", name, failure.ErrNotServed, cause)
	if !strings.Contains(r.key.gvr.Group, ".") || r.key.gvr.Group == crds.Group {
		r.refuse(missing, true)
		return r.retry()
	}
	crd, err := r.c.acquire(readKey{gvr: crds, name: name})
	if err != nil {
		return lastRetry
	}
	defer r.c.release(crd)
	seen, err := crd.await(r.life)
	if err == nil && servesVersion(seen.record.object, r.key.gvr.Version) {
		// The API server is about to serve the kind.
		r.refuse(missing, false)
		r.fails++
		return min(soon<<min(r.fails-1, 7), r.c.options.BackoffMax)
	}
	r.fails = 0
	_, polled := crd.Heard()
	blind := err != nil && !isAbsent(err) // the CustomResourceDefinition cannot be watched
	r.watchInstead(crd)
	defer r.watchInstead(nil)
	r.refuse(missing, polled || blind)
	wake := make(chan struct{}, 1)
	crd.version.Subscribe(wake, seen.gen)
	defer crd.version.Unsubscribe(wake)
	var due <-chan time.Time
	if blind {
		timer := time.NewTimer(r.retry())
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-wake:
	case <-due:
	case <-r.nudge:
	case <-r.life.Done():
	}
	return 0
}

func (r *read) watchInstead(other *read) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.via = other
}

// servesVersion reports whether the CustomResourceDefinition is established and serves the given version.
func servesVersion(crd *unstructured.Unstructured, version string) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	established := slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return established && slices.ContainsFunc(versions, func(v any) bool {
		declared, _ := v.(map[string]any)
		return declared["name"] == version && declared["served"] == true
	})
}
