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
		Why: "carrick creates everything in the guest cluster. The Supervisor declares the guest's default storage class " +
			"and version, and reverts changes to them in the guest. So carrick also reads the Supervisor if its context " +
			"is available.",
		Ask: []steps.Question{
			{
				Key: "clusters.upgrade", Title: "Planned Kubernetes version", Kind: steps.Text, Opt: true,
				Check: validKubernetesVersion,
				Help: "The version of the next upgrade, such as 1.26. From 1.26 on, restricted applies to the pods of a " +
					"namespace without a level. If empty, the version that the Supervisor declares is used.",
			},
			{
				Key: "supervisor.namespace", Title: "vSphere namespace of the guest cluster", Kind: steps.Namespace,
				Opt: true, On: steps.Remote, When: hasCluster,
				Help:    "A namespace on the Supervisor. If empty, carrick searches all namespaces that you can list.",
				Default: steps.FromFact("context-namespace", "the Supervisor's context"),
			},
			{
				Key: "supervisor.cluster", Title: "Guest cluster name", Kind: steps.Name, Opt: true,
				On: steps.Remote, When: hasCluster,
				Help: "The name of its TanzuKubernetesCluster or Cluster on the Supervisor. If empty, carrick uses the cluster " +
					"with the address of the guest's context, or the only one.",
			},
		},
		Facts: slices.Concat(check.Identity(), clusterFacts()),
		Checks: slices.Concat(
			[]steps.Check{check.Reachable(), check.SignedIn(), check.Clock(), check.NotTheSame()},
			check.On(
				steps.Local, versionCheck(),
				check.MayMakeCheck(
					"A missing permission can leave a webhook without a server, or a class without a provisioner.", page, mayMakeAll,
				),
			),
			clusterChecks(),
		),
	}
}

// hasCluster reports whether a side is a cluster and not a facts file.
func hasCluster(e steps.Env) bool { return e.Cluster != nil }

func versionCheck() steps.Check {
	return check.AtLeast(
		22,
		"The admission, certificate and RBAC APIs have been stable since then, and earlier versions of them were removed.",
	)
}

var minorVersion = regexp.MustCompile(`^v?1\.(\d{1,3})(\D|$)`)

// minorOf returns the 26 of "v1.26.5+vmware.2"; ok is false if version has no minor version.
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
