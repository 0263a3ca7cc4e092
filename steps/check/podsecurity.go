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

// EnforceLabel is the label that sets the Pod Security level of a namespace. Privileged, Baseline and Restricted are
// its values, from least to most restrictive (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
const (
	EnforceLabel = "pod-security.kubernetes.io/enforce"
	versionLabel = "pod-security.kubernetes.io/enforce-version"
	Privileged   = "privileged"
	Baseline     = "baseline"
	Restricted   = "restricted"
)

// Levels lists the Pod Security levels from least to most restrictive.
var Levels = []string{Privileged, Baseline, Restricted}

// Narrowness returns the rank of a Pod Security level in Levels. An unset level counts as privileged.
func Narrowness(level string) int { return max(slices.Index(Levels, level), 0) }

// MostTried is the maximum number of namespaces that Violators checks.
const MostTried = 50

// Violators returns the running pods that would violate a Pod Security level, each as "namespace/pod: why". It uses dry
// runs and checks only the first MostTried namespaces. The API server evaluates existing pods only if the level or its
// version changes (kubernetes/pod-security-admission: admission/admission.go, ValidateNamespace). The request therefore
// sets the server's own version explicitly.
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

// Refusal returns the API server's reason for rejecting an object in a dry run. If the error is not about the object,
// the bool is false. An example is a missing permission to create the object.
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
