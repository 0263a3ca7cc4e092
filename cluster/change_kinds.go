package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"carrick/cluster/failure"
)

// Kind is one kind that a cluster serves.
type Kind struct {
	GVK        schema.GroupVersionKind
	GVR        schema.GroupVersionResource
	Namespaced bool
	Verbs      []string // such as "list" and "delete"
}

// changeState caches the kinds that the cluster serves.
type changeState struct {
	mu     sync.Mutex
	served *served // nil: not discovered yet
	asking singleflight.Group
}

type served struct {
	// kinds does not contain subresources. Groups are in the API server's order. In each group, the preferred version
	// comes first.
	kinds  []Kind
	silent map[schema.GroupVersion]error // group versions whose aggregated API server does not answer
}

// Resource returns the resource for a kind and reports whether it is namespaced. Discovery results are cached. If the
// kind is missing from the cache, Resource repeats the discovery. If the kind is still missing, the error is
// failure.ErrNotServed.
func (c *Cluster) Resource(
	ctx context.Context, gvk schema.GroupVersionKind,
) (gvr schema.GroupVersionResource, namespaced bool, err error) {
	if gvk.Kind == "" || gvk.Version == "" {
		return gvr, false, fmt.Errorf("apiVersion %q and kind %q do not identify a kind", gvk.GroupVersion(), gvk.Kind)
	}
	if c.twin != nil {
		return c.twin.Resource(ctx, gvk)
	}
	c.change.mu.Lock()
	known := c.change.served
	c.change.mu.Unlock()
	for _, kind := range known.all() {
		if kind.GVK == gvk {
			return kind.GVR, kind.Namespaced, nil
		}
	}
	now, err := c.discover(ctx)
	if err != nil {
		return gvr, false, err
	}
	for _, kind := range now.kinds {
		if kind.GVK == gvk {
			return kind.GVR, kind.Namespaced, nil
		}
	}
	if err := now.silent[gvk.GroupVersion()]; err != nil {
		return gvr, false, fmt.Errorf("cannot discover the kinds of %s: %w", gvk.GroupVersion(), err)
	}
	return gvr, false, fmt.Errorf("%s in %s: %w", gvk.Kind, gvk.GroupVersion(), failure.ErrNotServed)
}

// Kinds returns all kinds that can be listed, sorted by group and resource. Each kind has the version that the API
// server prefers. Kinds omits groups whose aggregated API server does not answer.
func (c *Cluster) Kinds(ctx context.Context) ([]Kind, error) {
	now, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[schema.GroupResource]bool{}
	var out []Kind
	for _, kind := range now.kinds {
		if slices.Contains(kind.Verbs, "list") && !seen[kind.GVR.GroupResource()] {
			seen[kind.GVR.GroupResource()] = true
			out = append(out, kind)
		}
	}
	slices.SortFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	return out, nil
}

// Silent returns the sorted list of group versions whose aggregated API server does not answer. Kinds omits the kinds
// of these group versions, because they are unknown.
func (c *Cluster) Silent(ctx context.Context) ([]string, error) {
	now, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for gv := range now.silent {
		out = append(out, gv.String())
	}
	slices.Sort(out)
	return out, nil
}

func (s *served) all() []Kind {
	if s == nil {
		return nil
	}
	return s.kinds
}

// StartServed starts discovery in the background, so that later calls to Resource do not have to wait for it. If the
// kinds are already cached, it does nothing.
func (c *Cluster) StartServed() {
	c.change.mu.Lock()
	known := c.change.served != nil
	c.change.mu.Unlock()
	if !known {
		c.work.Go(func() { _, _ = c.discover(c.life) })
	}
}

// discover runs discovery and caches the result. Concurrent callers share one run.
func (c *Cluster) discover(ctx context.Context) (*served, error) {
	answer := c.change.asking.DoChan("", func() (any, error) {
		ctx, cancel := c.bounded(c.life)
		defer cancel()
		now, err := c.ask(ctx)
		if err != nil {
			return nil, failed(ctx, "discover the kinds of the cluster", err)
		}
		c.change.mu.Lock()
		c.change.served = now
		c.change.mu.Unlock()
		return now, nil
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-answer:
		if got.Err != nil {
			return nil, got.Err
		}
		return got.Val.(*served), nil
	}
}

// ask discovers the served kinds in one round trip. It requests aggregated discovery from /api and /apis at the same
// time. API servers before v1.30 do not support version 2 of aggregated discovery. For these servers, ask requests each
// group separately.
func (c *Cluster) ask(ctx context.Context) (*served, error) {
	var halves [2]apidiscovery.APIGroupDiscoveryList
	var aggregated [2]bool
	all, each := errgroup.WithContext(ctx)
	for i, path := range []string{"/api", "/apis"} {
		all.Go(func() (err error) {
			aggregated[i], err = c.askHalf(each, path, &halves[i])
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	if !aggregated[0] || !aggregated[1] {
		return c.askGroups(ctx)
	}
	halves[0].Items = append(halves[0].Items, halves[1].Items...)
	groups, resources, silent := discovery.SplitGroupsAndResources(halves[0])
	out := &served{silent: silent}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			out.add(resources[schema.GroupVersion{Group: group.Name, Version: version.Version}])
		}
	}
	return out, nil
}

func (c *Cluster) askHalf(
	ctx context.Context, path string, into *apidiscovery.APIGroupDiscoveryList,
) (aggregated bool, err error) {
	var contentType string
	result := c.api.Get().AbsPath(path).MaxRetries(fewRetries).
		SetHeader("Accept", discovery.AcceptV2+","+discovery.AcceptV1).
		Do(ctx).ContentType(&contentType)
	if err := result.Error(); apierrors.IsNotFound(err) {
		// An API server without the core group, such as an aggregated API server, has no /api.
		return true, nil
	} else if err != nil {
		return false, err
	}
	want := schema.GroupVersionKind{Group: "apidiscovery.k8s.io", Version: "v2", Kind: "APIGroupDiscoveryList"}
	if aggregated, _ = discovery.ContentTypeIsGVK(contentType, want); !aggregated {
		return false, nil
	}
	data, err := result.Raw()
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(data, into)
}

func (c *Cluster) askGroups(ctx context.Context) (*served, error) {
	groups, lists, err := discovery.NewDiscoveryClient(c.api).ServerGroupsAndResourcesWithContext(ctx)
	silent, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return nil, err
	}
	out := &served{silent: silent}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			out.add(byVersion[version.GroupVersion])
		}
	}
	return out, nil
}

// add adds the kinds of one group version. list can be nil.
func (s *served) add(list *metav1.APIResourceList) {
	if list == nil {
		return
	}
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	for _, resource := range list.APIResources {
		if strings.Contains(resource.Name, "/") {
			continue
		}
		s.kinds = append(s.kinds, Kind{
			GVK: gv.WithKind(resource.Kind), GVR: gv.WithResource(resource.Name),
			Namespaced: resource.Namespaced, Verbs: resource.Verbs,
		})
	}
}
