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

// ErrNoRelease means that no release of that name was ever installed there, or
// that its history is gone.
var ErrNoRelease = errors.New("there is no such release")

const (
	storageType = "helm.sh/release.v1" // type of the Secrets (helm.sh/helm/v4/pkg/storage/driver/secrets.go)
	storageKey  = "release"
	saltKey     = "salt" // Helm reads storageKey alone
	atOnce      = 16     // requests at the same time
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Releases returns the deployed releases of a namespace, "" being all, sorted
// by namespace and name. It lists the Secrets in which Helm keeps them, and the
// trace of ctx wakes when one comes, goes or changes. Releases that Helm keeps
// elsewhere (HELM_DRIVER) are not seen, and neither is what Argo CD renders by
// itself. One that can't be decoded is in the error, beside all others; without
// the right to list Secrets there is only an error. It is one read, however many
// there are: who knows the namespace names it, who knows the release uses Find.
func Releases(ctx context.Context, c *cluster.Cluster, namespace string) ([]Release, error) {
	found, err := c.Secrets(ctx, namespace, cluster.Selector{Labels: "owner=helm,status=" + Deployed}, storageKey, saltKey)
	if err != nil {
		return nil, fmt.Errorf("list the releases of Helm: %w", err)
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

// Find returns the newest revision of a release, whatever its status, or
// ErrNoRelease. It is tracked as Releases is.
func Find(ctx context.Context, c *cluster.Cluster, namespace, name string) (*Release, error) {
	if err := checkName(namespace, name); err != nil {
		return nil, err
	}
	found, err := c.Secrets(ctx, namespace, cluster.Selector{Labels: "owner=helm,name=" + name}, storageKey, saltKey)
	if err != nil {
		return nil, fmt.Errorf("list the releases of Helm: %w", err)
	}
	found = slices.DeleteFunc(found, func(s *cluster.Secret) bool { return s.Type != storageType })
	if len(found) > 0 {
		return unpackedRelease(
			slices.MaxFunc(found, func(a, b *cluster.Secret) int { return cmp.Compare(revision(a), revision(b)) }),
		)
	}
	return nil, fmt.Errorf("release %s in namespace %s: %w", name, namespace, ErrNoRelease)
}

// ErrName means that nothing can be the name of a release.
var ErrName = errors.New("is not the name of a release")

// checkName refuses what no release can be called
// (helm.sh/helm/v4/pkg/chart/common/util: at most 53 characters).
func checkName(namespace, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(name) > 53 {
		return fmt.Errorf("%q %w: lower-case letters, digits, - and ., at most 53", name, ErrName)
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("release %s: %q is not the name of a namespace", name, namespace)
	}
	return nil
}

// Definitions are the CustomResourceDefinitions of the chart's crds folder, which are no parts of the release.
func (r *Release) Definitions() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, text := range r.inner.crds {
		made, err := objects(text)
		if err != nil {
			return nil, fmt.Errorf("the crds folder of release %s: %w", r.Name, err)
		}
		out = append(out, made...)
	}
	return out, nil
}

// revision is what the label of a release's Secret says.
func revision(s *cluster.Secret) int {
	n, _ := strconv.Atoi(s.Labels["version"])
	return n
}

// unpackedRelease is the release that a Secret holds.
func unpackedRelease(s *cluster.Secret) (*Release, error) {
	r, err := decodeOf(s.Name, s.Data[storageKey].Reveal())
	if err != nil {
		return nil, fmt.Errorf("the release in Secret %s/%s can't be read: %w", s.Namespace, s.Name, err)
	}
	// A Secret that was copied elsewhere still names the namespace it came from.
	r.Namespace = s.Namespace
	r.Labels, r.Created, r.UID = s.Labels, s.Created, types.UID(s.UID)
	r.inner.salt = s.Data[saltKey].Reveal()
	return r, nil
}
