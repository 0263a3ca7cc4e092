package vsphere

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"carrick/steps"
	"carrick/steps/check"
)

func clusters() steps.Step {
	return steps.Step{
		Name: "clusters", Title: "Clusters",
		Map: steps.MapRow{Local: "API, StorageClass", Remote: "API, guest cluster", Arrow: steps.Local},
		Why: "carrick creates all objects in the guest cluster. The Supervisor declares the guest's default StorageClass " +
			"and Kubernetes version, and reverts changes to them in the guest. So carrick also reads the Supervisor if its " +
			"context is available.",
		Ask: []steps.Question{
			{
				Key: "clusters.upgrade", Title: "Planned Kubernetes version", Kind: steps.Text, Opt: true,
				Check: validKubernetesVersion,
				Help: "The version of the next upgrade, such as 1.26. From 1.26 on, Tanzu guests enforce the pod security level " +
					"restricted in namespaces without a level. If empty, carrick uses the version that the Supervisor declares.",
			},
			{
				Key: "supervisor.namespace", Title: "vSphere namespace of the guest cluster", Kind: steps.Namespace,
				Opt: true, On: steps.Remote, When: hasCluster,
				Help:    "A namespace on the Supervisor, such as dev. If empty, carrick searches all namespaces that you can list.",
				Default: steps.FromFact("context-namespace", "the Supervisor's context"),
			},
			{
				Key: "supervisor.cluster", Title: "Guest cluster name", Kind: steps.Name, Opt: true,
				On: steps.Remote, When: hasCluster,
				Help: "The name of the guest's TanzuKubernetesCluster or Cluster on the Supervisor. If empty, carrick uses the " +
					"cluster with the address of the guest's context, or the only cluster.",
			},
		},
		Facts: slices.Concat(check.Identity(), clusterFacts()),
		Checks: slices.Concat(
			[]steps.Check{check.Reachable(), check.SignedIn(), check.Clock(), check.NotTheSame()},
			check.On(
				steps.Local, versionCheck(),
				check.MayMakeCheck(
					"A missing permission can leave a webhook without pods, or a StorageClass without a provisioner.", page,
					mayMakeAll,
				),
			),
			clusterChecks(),
		),
	}
}

// hasCluster reports whether the side is a cluster and not a facts file.
func hasCluster(e steps.Env) bool { return e.Cluster != nil }

func versionCheck() steps.Check {
	return check.AtLeast(
		22,
		"Kubernetes 1.22 removed the earlier versions of the admission, certificate and RBAC APIs. The current versions "+
			"are stable.",
	)
}

var minorVersion = regexp.MustCompile(`^v?1\.(\d{1,3})(\D|$)`)

// minorOf returns the minor version, such as 26 for "v1.26.5+vmware.2". ok is false if version has
// no minor version.
func minorOf(version string) (minor int, ok bool) {
	found := minorVersion.FindStringSubmatch(version)
	if found == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(found[1])
	return minor, err == nil
}

func validKubernetesVersion(v string) error {
	if _, ok := minorOf(v); v != "" && !ok {
		return errors.New("must be a Kubernetes version, such as 1.26")
	}
	return nil
}
