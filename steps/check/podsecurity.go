package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// Pod security's label of a namespace, and its levels from open to narrow
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
const (
	EnforceLabel = "pod-security.kubernetes.io/enforce"
	versionLabel = "pod-security.kubernetes.io/enforce-version"
	Privileged   = "privileged"
	Baseline     = "baseline"
	Restricted   = "restricted"
)

// Levels are those of pod security, from open to narrow.
var Levels = []string{Privileged, Baseline, Restricted}

// Narrowness compares levels; a namespace without one counts as open.
func Narrowness(level string) int { return max(slices.Index(Levels, level), 0) }

// MostTried is how many namespaces Violators asks about.
const MostTried = 50

// Violators asks the API server what it would say to a level on each of the first
// namespaces: it answers with the pods that run there and violate it, each as
// "namespace/pod: why". It looks at pods only where the level or its version changes
// (kubernetes/pod-security-admission: admission/admission.go, ValidateNamespace), so it is
// asked about the server's own version by its other name.
func Violators(
	ctx context.Context, c *cluster.Cluster, namespaces []*corev1.Namespace, level string,
) ([]string, error) {
	asked := namespaces[:min(len(namespaces), MostTried)]
	said := make([]cluster.Preview, len(asked))
	server, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	var looks []func() error
	for i, ns := range asked {
		version := fmt.Sprintf("v%d.%d", server.Major, server.Minor)
		if ns.Labels[versionLabel] == version {
			version = "latest"
		}
		looks = append(looks, func() (err error) {
			said[i], err = c.Preview(ctx, withLevel(ns.Name, level, version), cluster.PreviewOptions{})
			return err
		})
	}
	if err := Together(looks...); err != nil {
		return nil, err
	}
	var out []string
	for i, ns := range asked {
		for _, w := range said[i].Warnings {
			if !strings.HasPrefix(w, "existing pods in namespace") && strings.Contains(w, ": ") {
				out = append(out, ns.Name+"/"+w)
			}
		}
	}
	return out, nil
}

func withLevel(name, level, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	o.SetLabels(map[string]string{EnforceLabel: level, versionLabel: version})
	return o
}

// Refusal is why an API server would not take an object that it was asked to
// try, in its words. is is false where the error says nothing of the object, such
// as that the user may not make one.
func Refusal(err error) (why string, is bool) {
	if err == nil || errors.As(err, new(*cluster.PremiseError)) ||
		strings.Contains(err.Error(), " cannot patch resource ") ||
		strings.Contains(err.Error(), " cannot create resource ") {
		return "", false
	}
	text := clean.Text(err.Error())
	failed := apierrors.IsInternalError(err) && strings.Contains(text, "failed calling webhook")
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !failed {
		return "", false
	}
	for _, mark := range []string{"is forbidden: ", "is invalid: ", "Internal error occurred: "} {
		if _, after, ok := strings.Cut(text, mark); ok {
			return after, true
		}
	}
	return text, true
}
