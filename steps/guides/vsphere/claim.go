package vsphere

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

func claim() steps.Step {
	return steps.Step{
		Name: "claim", Title: "Claim",
		Map: steps.MapRow{Local: "shared claim"},
		Why: "A claim with the shared StorageClass tests the storage before carrick changes the StorageClass of any claim. " +
			"The claim replaces the published guide's test, whose YAML is malformed and has neither access modes nor a size. " +
			"Optionally, two pods on two nodes write to the same volume.",
		Ask: []steps.Question{
			{
				Key: "claim.pods", Title: "Test with two pods on two nodes", Kind: steps.YesNo, Adopt: adoptPods,
				Help: "Each pod writes a file and waits nine minutes for the other pod's file. Both pods comply with the pod " +
					"security level restricted, as notebooks should.",
				Default: steps.Fixed(false, "default; a bound claim is usually sufficient, and pods need an image"),
			},
			{
				Key: "claim.image", Title: "Image of the test pods", Kind: steps.Text, NotFromPeer: true, When: triesPods,
				Check: checkPodImage, Adopt: adoptPodImage,
				Help:    "An image with sh, cat and sleep that the nodes can pull, such as docker.io/library/busybox:stable.",
				Default: steps.Fixed("docker.io/library/busybox:stable", "upstream"),
			},
		},
		Actions: []steps.Action{
			{
				Name: "claim", Title: "Create a claim with the shared StorageClass", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster", "rwx-class"},
				Doer:  trialClaim{action.Manifest{File: "claim.yaml", Values: action.Values{"class": askedClass}}, "claim"},
			},
			{
				Name: "claim-psp", Title: "Allow the test pods to use the PodSecurityPolicy", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster"}, When: triesPodsUnderPSP,
				Doer: action.Manifest{File: "psp-space.yaml", Each: eachSpace(trialNamespace)},
			},
			{
				Name: "claim-pods", Title: "Write to the volume from two nodes", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster", "claim-bound"}, When: triesPods,
				Doer: trialPods{action.Manifest{File: "claim-pods.yaml", Each: bothPods}},
			},
		},
		Checks: claimChecks(),
	}
}

func triesPods(e steps.Env) bool { return e.Answers.Bool("claim.pods") }

func triesPodsUnderPSP(e steps.Env) bool { return triesPods(e) && pspBranch(e) }

func askedClass(_ context.Context, e steps.Env) (any, error) { return sharedClassName(e), nil }

// bothPods returns the manifest values of the two test pods. Each pod writes its own file and waits
// for the other pod's file.
func bothPods(context.Context, steps.Env) ([]any, error) {
	return []any{map[string]any{"own": "a", "other": "b"}, map[string]any{"own": "b", "other": "a"}}, nil
}

func adoptPods(ctx context.Context, e steps.Env) (any, string, error) {
	pods, err := inventory.MadeBy(ctx, e, check.Pods, "claim-pods")
	if err != nil || len(pods) == 0 {
		return nil, "", err
	}
	return true, "pod " + pods[0].Namespace + "/" + pods[0].Name, nil
}

func adoptPodImage(ctx context.Context, e steps.Env) (any, string, error) {
	pods, err := inventory.MadeBy(ctx, e, check.Pods, "claim-pods")
	if err != nil || len(pods) == 0 {
		return nil, "", err
	}
	pod, err := check.Get[corev1.Pod](ctx, e.Cluster, check.Pods, pods[0].Namespace, pods[0].Name)
	if err != nil || len(pod.Spec.Containers) == 0 {
		return nil, "", err
	}
	return pod.Spec.Containers[0].Image, "pod " + pod.Namespace + "/" + pod.Name, nil
}

type trialPods struct{ action.Manifest }

// Export omits the test pods.
func (t trialPods) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{{Hand: trialHand}}, nil
}

func checkPodImage(v string) error {
	if v == "" {
		return errors.New("must be the name of an image")
	}
	return validNFSImage(v)
}

func claimPermissions(e steps.Env) []permission.Rule {
	out := slices.Concat(
		check.ToApply(trialNamespace(e), check.VolumeClaims), check.ToFollow(trialNamespace(e), check.Events),
		check.ToFollow("", volumeKind),
	)
	if triesPods(e) {
		out = slices.Concat(out, check.ToApply(trialNamespace(e), check.Pods),
			check.Verbs("", "pods/log", trialNamespace(e), "get"))
	}
	if triesPodsUnderPSP(e) {
		out = append(out, check.ToApply(trialNamespace(e), check.RoleBindings)...)
	}
	return out
}
