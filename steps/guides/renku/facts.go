package renku

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	defaultStorage = "storageclass.kubernetes.io/is-default-class"
	defaultIngress = "ingressclass.kubernetes.io/is-default-class"
)

// purposeLabel is the label for session nodes in the published guide.
const purposeLabel = "renku.io/node-purpose"

func prerequisiteFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "default-storage-class", Title: "the default StorageClass", On: steps.Remote, Learn: defaultStorageClass},
		{Name: "default-ingress-class", Title: "the default IngressClass", On: steps.Remote, Learn: defaultIngressClass},
		{Name: "dns-namespace", Title: "the namespace of the cluster's DNS", On: steps.Remote, Learn: dnsNamespace},
		{Name: "purpose-label", Title: "the label of session nodes", On: steps.Remote, Learn: purposeOfNodes},
	}
}

func defaultStorageClass(ctx context.Context, e steps.Env) (any, error) {
	return oldestDefault(ctx, e, check.StorageClasses, defaultStorage, "StorageClass")
}

func defaultIngressClass(ctx context.Context, e steps.Env) (any, error) {
	return oldestDefault(ctx, e, check.IngressClasses, defaultIngress, "IngressClass")
}

// oldestDefault returns the name of the oldest default class, because existing objects most likely
// use that class.
func oldestDefault(
	ctx context.Context, e steps.Env, gvr schema.GroupVersionResource, annotation, kind string,
) (any, error) {
	classes, err := e.Cluster.List(ctx, gvr, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	defaults := defaultsOf(classes, annotation)
	if len(defaults) == 0 {
		return nil, steps.Absent("the cluster has no default %s", kind)
	}
	return defaults[0].GetName(), nil
}

// defaultsOf returns the default classes, oldest first. annotation is the key that marks a class as
// the default.
func defaultsOf[T metav1.Object](classes []T, annotation string) []T {
	var out []T
	for _, c := range classes {
		if c.GetAnnotations()[annotation] == "true" {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b T) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return out
}

// newestFirst sorts default StorageClasses by creation time, newest first, then by name. From
// Kubernetes 1.26 on, PersistentVolumeClaims without a StorageClass get the first one
// (kubernetes/kubernetes: pkg/volume/util/storageclass.go).
func newestFirst[T metav1.Object](classes []T) []T {
	return slices.SortedFunc(slices.Values(classes), func(a, b T) int {
		at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(bt.Compare(at.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// severalDefaults returns the finding that several classes are the default. The fix keeps only the
// first class as the default. resource is "storageclass" or "ingressclass".
func severalDefaults[T metav1.Object](e steps.Env, resource, annotation string, defaults []T) (found, fix string) {
	var names, others []string
	for i, c := range defaults {
		names = append(names, clean.Name(c.GetName()))
		if i > 0 {
			others = append(others, steps.Quoted(c.GetName()))
		}
	}
	kinds := map[string]string{"storageclass": "StorageClasses", "ingressclass": "IngressClasses"}[resource]
	found = fmt.Sprintf("%d %s are marked as default: %s", len(names), kinds, strings.Join(names, ", "))
	return found, e.Kubectl() + " annotate " + resource + " " + strings.Join(others, " ") + " " + annotation + "-"
}

// openShiftDNS is the namespace of OpenShift's DNS pods. Their labels and ports differ from those
// of other clusters' DNS pods.
const openShiftDNS = "openshift-dns"

func dnsNamespace(ctx context.Context, e steps.Env) (any, error) {
	_, err := e.Cluster.Get(ctx, check.Namespaces, "", openShiftDNS)
	switch {
	case err == nil:
		return openShiftDNS, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return "kube-system", nil // the usual namespace; the check dns-pods verifies it
	}
	return nil, err
}

func dnsLabels(e steps.Env) map[string]any {
	if e.Answers.Text("network.dns-namespace") == openShiftDNS {
		return map[string]any{"dns.operator.openshift.io/daemonset-dns": "default"}
	}
	return map[string]any{"k8s-app": "kube-dns"}
}

func dnsPorts(e steps.Env) []any {
	port := int64(53)
	if e.Answers.Text("network.dns-namespace") == openShiftDNS {
		port = 5353
	}
	return []any{
		map[string]any{"port": port, "protocol": "UDP"},
		map[string]any{"port": port, "protocol": "TCP"},
	}
}

func purposeOfNodes(ctx context.Context, e steps.Env) (any, error) {
	nodes, err := check.List[corev1.Node](
		ctx, e.Cluster, check.Nodes, "", cluster.Selector{Labels: purposeLabel + "=user"},
	)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, steps.Absent("no node has the label %s=user", purposeLabel)
	}
	return []string{purposeLabel + "=user"}, nil
}

func sessionsNamespace(e steps.Env) string { return e.Answers.Text("sessions.namespace") }

// fromPeer returns a Default function that reads a fact of the other side. The parameter from
// describes the source of the fact.
func fromPeer(name, from string) func(steps.Env) (any, string) {
	return func(e steps.Env) (any, string) {
		v, err := e.Peer.Value(name)
		if err != nil {
			return nil, ""
		}
		return v, from
	}
}
