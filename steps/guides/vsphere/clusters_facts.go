package vsphere

import (
	"cmp"
	"context"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/certs"
	"carrick/steps/check"
)

// clusterFacts returns the facts about both clusters. Facts about supported features depend on the
// kinds that a cluster serves, never on version strings.
func clusterFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "serves-psp", Title: "whether PodSecurityPolicies are served", On: steps.Local, Learn: servesPSP},
		{
			Name: "serves-map", Title: "the served version of MutatingAdmissionPolicies", On: steps.Local,
			Learn: servesMAP,
		},
		{
			Name: "serves-cert-manager", Title: "whether cert-manager's Certificates are served", On: steps.Local,
			Learn: certs.Served,
		},
		{Name: "branch", Title: "how pods are admitted", On: steps.Local, Learn: learnBranch},
		{Name: "default-class", Title: "the default StorageClass", On: steps.Local, Shared: true, Learn: learnDefaultClass},
		{
			Name: "is-supervisor", Title: "whether the cluster is a Supervisor", On: steps.Both, Shared: true,
			Learn: isSupervisor,
		},
		{Name: "context-namespace", Title: "the namespace of the context", On: steps.Remote, Learn: contextNamespace},
		{
			Name: "declared-class", Title: "the default StorageClass that the Supervisor declares", On: steps.Remote,
			Shared: true, Learn: declaredClassFact,
		},
		{
			Name: "declared-version", Title: "the Kubernetes version that the Supervisor declares", On: steps.Remote,
			Shared: true, Learn: declaredVersionFact,
		},
	}
}

// served returns the kinds of an API group that the cluster serves. If resource is not "", it
// returns only the kind with that resource name. Every authenticated user can read the served
// kinds, but not CRDs.
func served(ctx context.Context, e steps.Env, group, resource string) ([]cluster.Kind, error) {
	all, err := e.Cluster.Served(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(k cluster.Kind) bool {
		return k.GVR.Group != group || (resource != "" && k.GVR.Resource != resource)
	}), nil
}

func servesPSP(ctx context.Context, e steps.Env) (any, error) {
	kinds, err := served(ctx, e, "policy", "podsecuritypolicies")
	if err != nil {
		return nil, err
	}
	return len(kinds) > 0, nil
}

func learnBranch(ctx context.Context, e steps.Env) (any, error) {
	psp, err := servesPSP(ctx, e)
	if err != nil {
		return nil, err
	}
	if psp == true {
		return branchPSP, nil
	}
	return branchLabels, nil
}

// servesMAP returns the newest served API version of MutatingAdmissionPolicies, v1 or v1beta1. It ignores alpha
// versions.
func servesMAP(ctx context.Context, e steps.Env) (any, error) {
	kinds, err := served(ctx, e, "admissionregistration.k8s.io", "mutatingadmissionpolicies")
	if err != nil {
		return nil, err
	}
	for _, version := range []string{"v1", "v1beta1"} {
		if slices.ContainsFunc(kinds, func(k cluster.Kind) bool { return k.GVR.Version == version }) {
			return version, nil
		}
	}
	return nil, steps.Absent(
		"the cluster serves no MutatingAdmissionPolicies in v1 or v1beta1. They are enabled by default from " +
			"Kubernetes 1.36 on",
	)
}

// defaultAnnotations lists the annotations that make a StorageClass the default (kubernetes/kubernetes:
// pkg/apis/storage/util/helpers.go).
var defaultAnnotations = []string{
	"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class",
}

func isDefault(c *storagev1.StorageClass) bool {
	return slices.ContainsFunc(defaultAnnotations, func(note string) bool { return c.Annotations[note] == "true" })
}

func allClasses(ctx context.Context, e steps.Env) ([]*storagev1.StorageClass, error) {
	return check.List[storagev1.StorageClass](ctx, e.Cluster, check.StorageClasses, "", cluster.Selector{})
}

// defaultClasses returns the default StorageClasses, newest first. Claims without a StorageClass
// get the newest default (kubernetes/kubernetes: pkg/volume/util/storageclass.go).
func defaultClasses(ctx context.Context, e steps.Env) ([]*storagev1.StorageClass, error) {
	all, err := allClasses(ctx, e)
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(all, func(c *storagev1.StorageClass) bool { return !isDefault(c) })
	slices.SortFunc(out, func(a, b *storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}

func learnDefaultClass(ctx context.Context, e steps.Env) (any, error) {
	found, err := defaultClasses(ctx, e)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, steps.Absent("the cluster has no default StorageClass")
	}
	return found[0].Name, nil
}

// isSupervisor reports whether the cluster is a Supervisor. Only a Supervisor serves
// TanzuKubernetesClusters or kinds of vmoperator.vmware.com. A guest can serve other kinds of
// run.tanzu.vmware.com (vmware-tanzu/tanzu-framework: capabilities).
func isSupervisor(ctx context.Context, e steps.Env) (any, error) {
	machines, err := served(ctx, e, "vmoperator.vmware.com", "")
	if err != nil {
		return nil, err
	}
	clusters, err := served(ctx, e, tkcGroup, tkcResource)
	if err != nil {
		return nil, err
	}
	return len(machines)+len(clusters) > 0, nil
}

func contextNamespace(_ context.Context, e steps.Env) (any, error) {
	if ns := e.Cluster.Namespace(); ns != "" && ns != "default" {
		return ns, nil
	}
	return nil, steps.Absent("the context names no vSphere namespace")
}
