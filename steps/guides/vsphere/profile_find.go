package vsphere

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/failure"
	"carrick/steps"
	"carrick/steps/check"
)

// userProfile is a Kubeflow Profile. It represents a user and their namespace, which has the same
// name (kubeflow/dashboard: components/profile-controller).
type userProfile struct {
	name, owner string
	uid         types.UID
	made        time.Time
	ends        bool
	held        bool // it has a finalizer
	trial       bool // this link created it
}

// profiles returns all Profiles, sorted by name. It returns an AbsentError if the cluster does not
// serve Profiles.
func profiles(ctx context.Context, e steps.Env) ([]userProfile, error) {
	all, err := e.Cluster.List(ctx, profileKind, "", cluster.Selector{})
	if errors.Is(err, failure.ErrNotServed) {
		return nil, steps.Absent("the cluster serves no profiles, so Kubeflow is not installed")
	}
	if err != nil {
		return nil, err
	}
	var out []userProfile
	for _, o := range all {
		out = append(out, userProfile{
			name: o.GetName(), owner: textAt(o.Object, "spec", "owner", "name"), uid: o.GetUID(),
			made: o.GetCreationTimestamp().Time, ends: o.GetDeletionTimestamp() != nil,
			held: len(o.GetFinalizers()) > 0, trial: ofThisLink(e, o.GetLabels()),
		})
	}
	slices.SortFunc(out, func(a, b userProfile) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// owns reports whether ns belongs to the profile's owner. It uses the same test as the profile controller and
// cluster/extension. The name alone is not sufficient, because a profile can have the name of any namespace.
func (p userProfile) owns(ns *corev1.Namespace) bool {
	return p.name == ns.Name && p.owner != "" && ns.Annotations[ownerAnnotation] == p.owner
}

// profileSpaces returns the existing namespaces of profiles, sorted by name, except those that are
// being deleted.
func profileSpaces(ctx context.Context, e steps.Env) ([]*corev1.Namespace, error) {
	var owners []userProfile
	var all []*corev1.Namespace
	err := check.Together(
		func() (err error) {
			owners, err = profiles(ctx, e)
			return err
		},
		func() (err error) {
			all, err = check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", cluster.Selector{})
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(ns *corev1.Namespace) bool {
		return ns.DeletionTimestamp != nil || !slices.ContainsFunc(owners, func(p userProfile) bool { return p.owns(ns) })
	}), nil
}

func spaceNames(all []*corev1.Namespace) []string {
	var out []string
	for _, ns := range all {
		out = append(out, ns.Name)
	}
	return out
}
