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
		Why: "Everything is made in the guest cluster. The Supervisor declares what a guest is given, its default storage " +
			"class and its version among it, and sets that back when somebody changes it in the guest: so what it declares is " +
			"looked at, too, where its context is at hand.",
		Ask: []steps.Question{
			{
				Key: "clusters.upgrade", Title: "Kubernetes version that an upgrade is planned to", Kind: steps.Text, Opt: true,
				Check: validKubernetesVersion,
				Help: "Such as 1.26. From there on the pods of a namespace without a level are held to the narrowest one; left " +
					"empty, what the Supervisor declares counts.",
			},
			{
				Key: "supervisor.namespace", Title: "Namespace of vSphere that the guest cluster stands in", Kind: steps.Namespace,
				Opt: true, On: steps.Remote, When: hasCluster,
				Help:    "On the Supervisor. Left empty, all that may be listed are looked through.",
				Default: steps.FromFact("context-namespace", "the Supervisor's context"),
			},
			{
				Key: "supervisor.cluster", Title: "Name of the guest cluster on the Supervisor", Kind: steps.Name, Opt: true,
				On: steps.Remote, When: hasCluster,
				Help: "The name of its TanzuKubernetesCluster or Cluster there. Left empty, it is the one that answers at the " +
					"address of the guest's context, or the only one.",
			},
		},
		Facts: slices.Concat(check.Identity(), clusterFacts()),
		Checks: slices.Concat(
			[]steps.Check{check.Reachable(), check.SignedIn(), check.Clock(), check.NotTheSame()},
			check.On(steps.Local, versionCheck(), check.MayMakeCheck("a right that is missing half-way leaves a "+
				"webhook without a server, or a class without a provisioner", page, mayMakeAll)),
			clusterChecks(),
		),
	}
}

// hasCluster reports whether a side is a cluster and not a facts file.
func hasCluster(e steps.Env) bool { return e.Cluster != nil }

func versionCheck() steps.Check {
	return check.AtLeast(
		22, "the APIs of admission, certificates and roles are what they are since then; what was before them is gone",
	)
}

var minorVersion = regexp.MustCompile(`^v?1\.(\d{1,3})(\D|$)`)

// minorOf returns the 26 of "v1.26.5+vmware.2"; ok is false if version has none.
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
		return errors.New("a version of Kubernetes, such as 1.26")
	}
	return nil
}
