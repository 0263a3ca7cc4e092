package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// runner runs a release's hooks, which are mostly Jobs (helm.sh/helm/v4/pkg/action/hooks.go).
type runner struct {
	c       *cluster.Cluster
	req     Request
	hooks   []*release.Hook
	timeout time.Duration
	say     func(string)
}

// run runs the hooks of one event in the order of their weight. It waits for each hook to finish before it starts the
// next.
func (r runner) run(ctx context.Context, event release.HookEvent) error {
	var mine []*release.Hook
	for _, h := range r.hooks {
		if slices.Contains(h.Events, event) {
			mine = append(mine, h)
		}
	}
	slices.SortStableFunc(mine, func(a, b *release.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})
	for i, h := range mine {
		r.say(fmt.Sprintf("%s hook %s %s", event, clean.Text(h.Kind), clean.Text(h.Name)))
		if err := r.one(ctx, h); err != nil {
			err = fmt.Errorf("%s hook %s: %w", event, clean.Text(h.Name), err)
			return errors.Join(err, r.tidy(ctx, mine[i:i+1], release.HookFailed), r.tidy(ctx, mine[:i], release.HookSucceeded))
		}
	}
	return r.tidy(ctx, mine, release.HookSucceeded)
}

// tidy deletes the hooks that have the given delete policy, in reverse order. It must run after all hooks of an event,
// because a later hook's Job can use a ServiceAccount that an earlier hook created.
func (r runner) tidy(ctx context.Context, hooks []*release.Hook, policy release.HookDeletePolicy) error {
	for _, h := range slices.Backward(hooks) {
		if !slices.Contains(h.DeletePolicies, policy) {
			continue
		}
		if err := r.clear(ctx, h); err != nil {
			return fmt.Errorf("delete hook %s: %w", clean.Text(h.Name), err)
		}
	}
	return nil
}

func (r runner) one(ctx context.Context, h *release.Hook) error {
	if len(h.DeletePolicies) == 0 || slices.Contains(h.DeletePolicies, release.HookBeforeHookCreation) {
		if err := r.clear(ctx, h); err != nil {
			return err
		}
	}
	objs, err := r.objects(ctx, h)
	if err != nil {
		return err
	}
	for _, o := range objs {
		if err := r.req.write(ctx, r.c, o); err != nil {
			return err
		}
	}
	return finished(ctx, r.c, objs, r.timeout, r.say)
}

// objects returns the objects of a hook with their namespaces and Helm's labels. Helm does not count them as part of
// the release.
func (r runner) objects(ctx context.Context, h *release.Hook) ([]*unstructured.Unstructured, error) {
	objs, err := objects(h.Manifest)
	if err != nil {
		return nil, err
	}
	return placed(ctx, r.c, objs, nil, r.req.Name, r.req.Namespace)
}

// clear deletes the objects that an earlier run of the hook created. It keeps CustomResourceDefinitions.
func (r runner) clear(ctx context.Context, h *release.Hook) error {
	objs, err := r.objects(ctx, h)
	if err != nil {
		return err
	}
	for _, o := range objs {
		if o.GroupVersionKind().GroupKind() == crdKind {
			continue
		}
		live, err := r.c.Fetch(ctx, o)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = erase(ctx, r.c, live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sortedRevisions(list []metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata {
	slices.SortFunc(list, func(a, b metav1.PartialObjectMetadata) int { return number(a.Labels) - number(b.Labels) })
	return list
}
