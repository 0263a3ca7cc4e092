package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"carrick/cluster"
)

// ErrNoRelease means that the release does not exist, or that its history was deleted.
var ErrNoRelease = errors.New("the release does not exist")

const (
	storageType = "helm.sh/release.v1" // type of the Secrets (helm.sh/helm/v4/pkg/storage/driver/secrets.go)
	storageKey  = "release"
	saltKey     = "salt" // carrick's own key; Helm reads only storageKey
	atOnce      = 16     // concurrent requests
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Releases returns the deployed releases of a namespace, sorted by namespace and name. namespace "" means all
// namespaces. It lists the Secrets in which Helm stores releases. The trace of ctx records the list, so that Trace.Wait
// returns when such a Secret is created, changed or deleted. Releases does not find releases that Helm stores elsewhere
// (HELM_DRIVER), or charts that Argo CD renders itself.
//
// If some releases cannot be decoded, Releases returns the other releases, and an error that names the unreadable ones.
// Without the permission to list Secrets, it returns only an error. All releases of a namespace share one tracked read.
// Callers that know the namespace should pass it, and callers that know the release should use Find.
func Releases(ctx context.Context, c *cluster.Cluster, namespace string) ([]Release, error) {
	found, err := c.Secrets(ctx, namespace, cluster.Selector{Labels: "owner=helm,status=" + Deployed}, storageKey, saltKey)
	if err != nil {
		return nil, fmt.Errorf("list the Helm releases: %w", err)
	}
	var out []Release
	var faults []error
	for _, s := range found {
		if s.Type != storageType {
			continue
		}
		r, err := unpackedRelease(s)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Revision, b.Revision))
	})
	return out, errors.Join(faults...)
}

// Find returns the newest revision of a release with any status. It returns ErrNoRelease if there is none. It is
// tracked like Releases.
func Find(ctx context.Context, c *cluster.Cluster, namespace, name string) (*Release, error) {
	if err := checkName(namespace, name); err != nil {
		return nil, err
	}
	found, err := c.Secrets(ctx, namespace, cluster.Selector{Labels: "owner=helm,name=" + name}, storageKey, saltKey)
	if err != nil {
		return nil, fmt.Errorf("list the Helm releases: %w", err)
	}
	found = slices.DeleteFunc(found, func(s *cluster.Secret) bool { return s.Type != storageType })
	if len(found) > 0 {
		return unpackedRelease(
			slices.MaxFunc(found, func(a, b *cluster.Secret) int { return cmp.Compare(revision(a), revision(b)) }),
		)
	}
	return nil, fmt.Errorf("release %s in namespace %s: %w", name, namespace, ErrNoRelease)
}

// ErrName means that a string cannot be the name of a release.
var ErrName = errors.New("is not a release name")

// checkName returns an error for an invalid release name (helm.sh/helm/v4/pkg/chart/common/util: at most 53 characters)
// or an invalid namespace.
func checkName(namespace, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(name) > 53 {
		return fmt.Errorf("%q %w: use lower-case letters, digits, - and ., at most 53 characters", name, ErrName)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("release %s: %q is not a namespace name", name, namespace)
	}
	return nil
}

// Definitions returns the CustomResourceDefinitions in the chart's crds directory. Helm does not count them as part of
// the release.
func (r *Release) Definitions() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, text := range r.inner.crds {
		made, err := objects(text)
		if err != nil {
			return nil, fmt.Errorf("the crds directory of release %s: %w", r.Name, err)
		}
		out = append(out, made...)
	}
	return out, nil
}

// revision returns the revision number in the labels of a release's Secret.
func revision(s *cluster.Secret) int {
	n, _ := strconv.Atoi(s.Labels["version"])
	return n
}

// unpackedRelease returns the release in a Secret.
func unpackedRelease(s *cluster.Secret) (*Release, error) {
	r, err := decodeOf(s.Name, s.Data[storageKey].Reveal())
	if err != nil {
		return nil, fmt.Errorf("the release in Secret %s/%s cannot be read: %w", s.Namespace, s.Name, err)
	}
	// A Secret that was copied to another namespace still contains the original namespace.
	r.Namespace = s.Namespace
	r.Labels, r.Created, r.UID = s.Labels, s.Created, types.UID(s.UID)
	r.inner.salt = s.Data[saltKey].Reveal()
	return r, nil
}
