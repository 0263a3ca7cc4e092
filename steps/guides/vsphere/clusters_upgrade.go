package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// These are the Kubernetes versions from which pods may be rejected.
const (
	withoutPSP = 25 // PodSecurityPolicies are removed
	restricted = 26 // a Tanzu release enforces restricted in a namespace without a level
)

// plannedMinor returns the planned minor version of the guest, or 0 if it is unknown.
func plannedMinor(e steps.Env) (minor int, from string, err error) {
	if n, ok := minorOf(e.Answers.Text("clusters.upgrade")); ok {
		return n, "clusters.upgrade", nil
	}
	declared, err := e.Peer.Text("declared-version")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	n, _ := minorOf(declared)
	return n, "what the Supervisor declares", nil
}

func upgradeCrosses(ctx context.Context, e steps.Env) steps.Result {
	now, err := e.Cluster.Version(ctx)
	if err != nil {
		return steps.Errored(err)
	}
	if now.Minor >= restricted {
		return steps.Passed("it is %s, which is past 1.26", now.Git)
	}
	planned, from, err := plannedMinor(e)
	switch {
	case err != nil:
		return steps.Errored(err)
	case planned <= now.Minor:
		return steps.Passed("it is %s, and no upgrade is planned; answer clusters.upgrade once one is", now.Git)
	case planned < withoutPSP:
		return steps.Passed("from %s to 1.%d (%s): PodSecurityPolicies stay", now.Git, planned, from)
	}
	all, err := check.List[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	var profiles, others []string
	for _, ns := range all {
		switch {
		case ns.Labels[check.EnforceLabel] != "" || ofSystem(ns.Name):
		case isProfileSpace(ns):
			profiles = append(profiles, ns.Name)
		default:
			others = append(others, ns.Name)
		}
	}
	on := fmt.Sprintf("from %s to 1.%d (%s)", now.Git, planned, from)
	if len(profiles) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"%s, and namespaces of profiles have no level yet: %s. Don't upgrade before they have", on, check.Some(profiles),
			),
			e.ApplyStep("security"),
		)
	}
	if len(others) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"%s: the namespaces of profiles have levels; others have none, and are held to restricted from 1.26 on: %s", on,
				check.Some(others),
			),
			fmt.Sprintf(
				"%s label --dry-run=server --overwrite namespace %s %s=restricted    # what would be refused is warned of",
				e.Kubectl(), others[0], check.EnforceLabel,
			),
		)
	}
	return steps.Passed("%s: every namespace has a level", on)
}

// ofSystem reports whether Tanzu releases exempt a namespace from pod security (TKr:
// AdmissionConfiguration, exemptions).
func ofSystem(namespace string) bool {
	return namespace == "tkg-system" || strings.HasPrefix(namespace, "kube-") ||
		strings.HasPrefix(namespace, "vmware-system-")
}

const (
	profileLabel = "app.kubernetes.io/part-of" // set by upstream's labels file
	profileValue = "kubeflow-profile"
)

// isProfileSpace reports whether Kubeflow created a namespace for a profile
// (kubeflow/dashboard: components/profile-controller/controllers/profile_controller.go).
func isProfileSpace(ns *corev1.Namespace) bool {
	return ns.Labels[profileLabel] == profileValue ||
		slices.ContainsFunc(ns.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Profile" })
}
