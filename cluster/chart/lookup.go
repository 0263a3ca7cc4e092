package chart

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"carrick/cluster"
	"carrick/cluster/failure"
)

// lookups implements the template function lookup. It reads from a cluster.
type lookups struct {
	ctx context.Context
	on  *cluster.Cluster
}

// GetClientFor implements the engine's ClientProvider (helm.sh/helm/v4/pkg/engine/lookup_func.go).
func (l lookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvr, namespaced, err := l.on.Resource(l.ctx, schema.FromAPIVersionAndKind(apiVersion, kind))
	if errors.Is(err, failure.ErrNotServed) {
		return nil, false, fmt.Errorf("lookup of %s %s: %w", apiVersion, kind, err)
	}
	if err != nil {
		return nil, false, err
	}
	return timed{l.on.Dynamic().Resource(gvr), l.ctx}, namespaced, nil
}

// timed cancels lookups when ctx ends or a timeout expires. The engine has neither a context nor a timeout.
type timed struct {
	dynamic.NamespaceableResourceInterface
	ctx context.Context
}

const lookupWithin = 10 * time.Second

func (t timed) Namespace(ns string) dynamic.ResourceInterface {
	return timedIn{t.NamespaceableResourceInterface.Namespace(ns), t.ctx}
}

func (t timed) Get(
	_ context.Context, name string, o metav1.GetOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	return timedIn{t.NamespaceableResourceInterface, t.ctx}.Get(t.ctx, name, o, sub...)
}

func (t timed) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return timedIn{t.NamespaceableResourceInterface, t.ctx}.List(t.ctx, o)
}

type timedIn struct {
	dynamic.ResourceInterface
	ctx context.Context
}

func (t timedIn) Get(
	_ context.Context, name string, o metav1.GetOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(t.ctx, lookupWithin)
	defer cancel()
	return t.ResourceInterface.Get(ctx, name, o, sub...)
}

func (t timedIn) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(t.ctx, lookupWithin)
	defer cancel()
	return t.ResourceInterface.List(ctx, o)
}
