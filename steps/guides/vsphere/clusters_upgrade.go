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

// Kubernetes minor versions from which pods can be rejected.
const (
	withoutPSP = 25 // PodSecurityPolicies are removed
	restricted = 26 // Tanzu releases enforce restricted in namespaces without a pod security level
)

// plannedMinor returns the minor version to which an upgrade of the guest is planned. from is the source of that
// version. minor is 0 if no version is known.
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
	return n, "declared by the Supervisor", nil
}

func upgradeCrosses(ctx context.Context, e steps.Env) steps.Result {
	now, err := e.Cluster.Version(ctx)
	if err != nil {
		return steps.Errored(err)
	}
	if now.Minor >= restricted {
		return steps.Passed("the guest runs %s, which is 1.26 or later", now.Git)
	}
	planned, from, err := plannedMinor(e)
	switch {
	case err != nil:
		return steps.Errored(err)
	case planned <= now.Minor:
		return steps.Passed("the guest runs %s, and no upgrade is planned. Set clusters.upgrade before you upgrade", now.Git)
	case planned < withoutPSP:
		return steps.Passed("the upgrade from %s to 1.%d (%s) keeps PodSecurityPolicies", now.Git, planned, from)
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
	on := fmt.Sprintf("the upgrade from %s to 1.%d (%s)", now.Git, planned, from)
	if len(profiles) > 0 {
		return steps.Failed(
			fmt.Sprintf(
				"%s affects profile namespaces that have no pod security level: %s. Set their levels before the upgrade", on,
				check.Some(profiles),
			),
			e.ApplyStep("security"),
		)
	}
	if len(others) > 0 {
		return steps.Warned(
			fmt.Sprintf(
				"%s does not affect profile namespaces, which have pod security levels. From 1.26 on, restricted applies to "+
					"other namespaces without a level: %s", on,
				check.Some(others),
			),
			fmt.Sprintf(
				"%s label --dry-run=server --overwrite namespace %s %s=restricted    # warns about pods that would be rejected",
				e.Kubectl(), others[0], check.EnforceLabel,
			),
		)
	}
	return steps.Passed("%s is safe, because every namespace has a pod security level", on)
}

// ofSystem reports whether Tanzu releases exempt the namespace from pod security (TKr: AdmissionConfiguration,
// exemptions).
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
