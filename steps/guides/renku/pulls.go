package renku

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// registries lists the registries of the images that sessions use: Renku's images, the login proxy,
// the driver's sidecars and project images.
var registries = []string{"docker.io", "harbor.renkulab.io", "registry.k8s.io", "ghcr.io"}

func imagePulls() steps.Check {
	return steps.Check{
		Name: "image-pulls", Title: "The remote nodes can pull the images of sessions", On: steps.Remote,
		Needs: []string{"signed-in"},
		Why: "Sessions need images from docker.io, harbor.renkulab.io, registry.k8s.io and ghcr.io. A pull from this " +
			"machine would prove nothing about the nodes.",
		References: []string{"SwissDataScienceCenter/amalthea: api/v1alpha1/auth_templates.go"},
		Run:        imagesPulled,
	}
}

func imagesPulled(ctx context.Context, e steps.Env) steps.Result {
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, sessionsNamespace(e), cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	drivers, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, "", cluster.Selector{Labels: "app=csi-nodeplugin-rclone"},
	)
	if err != nil {
		return steps.Errored(err)
	}
	nodes, err := check.List[corev1.Node](ctx, e.Cluster, check.Nodes, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	if bad := failedPulls(slices.Concat(pods, drivers)); len(bad) > 0 {
		return steps.Warned(
			strings.Join(bad, "; "),
			e.Kubectl()+" -n "+sessionsNamespace(e)+
				" get events --field-selector type=Warning    # check the firewall, proxy, pull limit and pull secret",
		)
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		for _, image := range n.Status.Images {
			for _, name := range image.Names {
				seen[registryOf(name)] = true
			}
		}
	}
	var have, yet []string
	for _, r := range registries {
		if seen[r] {
			have = append(have, r)
		} else {
			yet = append(yet, r)
		}
	}
	switch {
	case len(have) == 0:
		return steps.Skipped(
			"the nodes have no image from %s yet. A test session (session.test) pulls such images", strings.Join(yet, ", "),
		)
	case len(yet) > 0:
		return steps.Passed(
			"the nodes have images from %s, but not yet from %s", strings.Join(have, ", "), strings.Join(yet, ", "),
		)
	}
	return steps.Passed("the nodes have images from %s", strings.Join(have, ", "))
}

// failedPulls describes at most three pods whose images cannot be pulled.
func failedPulls(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := s.State.Waiting; w != nil && slices.Contains(pullFailures, w.Reason) {
				out = append(
					out,
					fmt.Sprintf("pod %s/%s cannot pull %s from %s: %s", p.Namespace, p.Name, s.Image, registryOf(s.Image), w.Message),
				)
			}
		}
	}
	if more := len(out) - 3; more > 0 {
		out = append(out[:3], fmt.Sprintf("and %d more", more))
	}
	return out
}

// registryOf returns the registry of an image. Image names without a registry belong to docker.io.
func registryOf(image string) string {
	first, _, slash := strings.Cut(image, "/")
	switch {
	case !slash || (!strings.ContainsAny(first, ".:") && first != "localhost"), first == "index.docker.io":
		return "docker.io"
	}
	return first
}
