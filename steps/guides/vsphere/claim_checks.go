package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

const claimSource = "kubernetes/kubernetes: pkg/controller/volume/persistentvolume/pv_controller.go (waiting for a " +
	"volume to be created)"

func claimChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "rwx-class", Title: "The storage class of shared volumes exists", On: steps.Local,
			Needs:      []string{"signed-in"},
			FixedBy:    "nfs-chart",
			Why:        "A claim that names a missing class stays Pending indefinitely, and only its events say so.",
			References: []string{page, chartSource}, Run: rwxClass,
		},
		{
			Name: "reclaim-policy", Title: "Deleting a claim does not erase data unexpectedly", On: steps.Local,
			Needs:      []string{"rwx-class"},
			Why:        "With reclaim policy Delete and no archive, deleting a notebook's claim also deletes its data.",
			References: []string{provisionerCode}, Run: classKeeps,
		},
		{
			Name: "claim-bound", Title: "A claim of the class is bound within a minute", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "claim", Timeout: time.Minute,
			Why: "A Pending claim hides the cause: the provisioner is down, ignores the class, lacks permissions or " +
				"cannot write.",
			References: []string{page, claimSource}, Run: claimBound, Tried: claimedOn,
		},
		{
			Name: "claim-shared", Title: "Two pods on two nodes write to one volume", On: steps.Local, From: "the pods' logs",
			When: triesPods, Needs: []string{"claim-bound"}, FixedBy: "claim-pods", Timeout: 10 * time.Minute,
			Why: "A bound claim only shows that the folder exists; only pods show that nodes mount it and non-root " +
				"users can write.",
			References: []string{page}, Run: claimShared, Tried: claimedOn,
		},
		{
			Name: "claim-events", Title: "No event warns about the test claim and pods", On: steps.Local,
			From:       "events of the guest",
			Needs:      []string{"signed-in"},
			Why:        "Nodes and provisioners report errors in events, which are deleted after an hour.",
			References: []string{page, mountCode}, Run: claimEvents,
		},
	}
}

func theClaim(ctx context.Context, e steps.Env) (*corev1.PersistentVolumeClaim, error) {
	return check.Get[corev1.PersistentVolumeClaim](
		ctx, e.Cluster, check.VolumeClaims, trialNamespace(e), triedName(e, "claim"))
}

func claimBound(ctx context.Context, e steps.Env) steps.Result {
	c, err := theClaim(ctx, e)
	if apierrors.IsNotFound(err) {
		return steps.NotTried("no claim of the class exists yet")
	}
	if err != nil {
		return steps.Errored(err)
	}
	got := clean.Text(claimClass(c))
	remove := fmt.Sprintf(
		"%s -n %s delete persistentvolumeclaim %s    # then %s", e.Kubectl(), c.Namespace, c.Name, e.ApplyStep("claim"),
	)
	switch asked := clean.Text(c.Annotations[askedNote]); {
	case asked != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf("the claim requested class %s, but shared volumes now have class %s", asked, sharedClassName(e)),
			remove,
		)
	case asked != got:
		return steps.Failed(
			fmt.Sprintf("the claim requested class %s, but admission changed it to %s", asked, got),
			e.Kubectl()+" get mutatingwebhookconfigurations\n# then "+remove,
		)
	case isBound(c):
		return boundIn(ctx, e, c)
	}
	return unbound(ctx, e, c)
}

// claimedOn returns the objects on which the claim, and therefore its pods, depended.
func claimedOn(ctx context.Context, e steps.Env) (steps.Tried, error) {
	c, err := theClaim(ctx, e)
	if apierrors.IsNotFound(err) {
		return steps.Tried{}, nil
	}
	if err != nil {
		return steps.Tried{}, err
	}
	t := steps.Tried{At: c.CreationTimestamp.Time, Again: tryAgain(e)}
	s, err := theClass(ctx, e)
	if apierrors.IsNotFound(err) {
		return t, nil // rwx-class reports it
	}
	if err != nil {
		return t, err
	}
	t.On = []steps.Dependency{{What: "class " + s.Name + " was created", Since: s.CreationTimestamp.Time}}
	return t, nil
}

// tryAgain returns the command that deletes the test objects and repeats the test.
func tryAgain(e steps.Env) string {
	return fmt.Sprintf("%s -n %s delete pods -l %s; %s -n %s delete persistentvolumeclaim %s && %s",
		e.Kubectl(), trialNamespace(e), e.OwnedBy("claim-pods").Labels, e.Kubectl(), trialNamespace(e), triedName(e, "claim"),
		e.ApplyStep("claim"))
}

// boundIn reports how long binding took.
func boundIn(ctx context.Context, e steps.Env, c *corev1.PersistentVolumeClaim) steps.Result {
	v, err := check.Get[corev1.PersistentVolume](ctx, e.Cluster, volumeKind, "", c.Spec.VolumeName)
	if err != nil {
		return check.Missing(
			err, "PersistentVolume "+clean.Text(c.Spec.VolumeName)+" of the claim",
			e.Kubectl()+" -n "+c.Namespace+" describe persistentvolumeclaim "+c.Name,
		)
	}
	where := ""
	if v.Spec.NFS != nil {
		at := clean.Text(v.Spec.NFS.Server + ":" + v.Spec.NFS.Path)
		if usesNFS(e) &&
			!strings.HasPrefix(v.Spec.NFS.Server+":"+v.Spec.NFS.Path+"/", strings.TrimSuffix(nfsExported(e), "/")+"/") {
			return steps.Warned(
				fmt.Sprintf(
					"%s/%s is bound to %s, which is %s, but the answers name %s", c.Namespace, c.Name, v.Name, at,
					clean.Text(nfsExported(e)),
				),
				tryAgain(e),
			)
		}
		where = ", which is " + at
	}
	return steps.Passed(
		"%s/%s is bound to %s%s (after %s)", c.Namespace, c.Name, v.Name, where,
		v.CreationTimestamp.Sub(c.CreationTimestamp.Time).Round(time.Second),
	)
}

// unbound returns the verdict on a claim that is not bound, with the cause if it is known.
func unbound(ctx context.Context, e steps.Env, c *corev1.PersistentVolumeClaim) steps.Result {
	events, err := eventsOf(ctx, e, c.Namespace, "PersistentVolumeClaim", c.Name, c.UID)
	if err != nil {
		return steps.Errored(err)
	}
	look := fmt.Sprintf("%s -n %s describe persistentvolumeclaim %s", e.Kubectl(), c.Namespace, c.Name)
	if said := eventMessage(events, "ProvisioningFailed"); said != "" {
		if refused := refusedWrite(said); refused != "" && usesNFS(e) {
			return steps.Failed(refused, writeFix(e, refused)+retryFix(ctx, e))
		}
		return steps.Failed("provisioning fails: "+said, look+retryFix(ctx, e))
	}
	if eventMessage(events, "WaitForFirstConsumer") != "" {
		return steps.Warned(
			fmt.Sprintf("class %s waits for a pod, so a claim alone stays Pending", claimClass(c)),
			answer(e, "claim.pods", "yes"),
		)
	}
	said := eventMessage(events, "ExternalProvisioning")
	if said == "" {
		said = "no event says why"
	}
	fix := look
	if usesNFS(e) {
		fix = fmt.Sprintf(
			"carrick check %s --only provisioner-ready,provisioner-name,provisioner-rights,nfs-export\n%s", e.LinkFile(), look,
		)
	}
	return steps.Waits(c.CreationTimestamp.Time, "the claim is %s: %s", c.Status.Phase, said).Or(fix)
}

func claimShared(ctx context.Context, e steps.Env) steps.Result {
	seen := map[string]string{} // output by pod
	nodes := map[string]string{}
	for _, own := range []string{"a", "b"} {
		e.Cluster.StartGet(check.Pods, trialNamespace(e), triedName(e, own))
	}
	for _, own := range []string{"a", "b"} {
		p, err := check.Get[corev1.Pod](ctx, e.Cluster, check.Pods, trialNamespace(e), triedName(e, own))
		if apierrors.IsNotFound(err) {
			return steps.NotTried("the pods have not run yet")
		}
		if err != nil {
			return steps.Errored(err)
		}
		if !check.Ended(p) {
			return podWaits(e, p)
		}
		text, err := check.PodLog(ctx, e.Cluster, p, "", 50, time.Minute)
		if err != nil {
			return steps.Errored(err)
		}
		nodes[own], seen[own] = p.Spec.NodeName, text
		if p.Status.Phase == corev1.PodFailed {
			return podFailed(e, p, text)
		}
	}
	for _, own := range []string{"a", "b"} {
		text := seen[own]
		for _, line := range []string{"a on " + nodes["a"], "b on " + nodes["b"]} {
			if !strings.Contains("\n"+text, "\n"+line) {
				return steps.Errored(
					fmt.Errorf(
						"pod %s succeeded, but its log has no %q: its last line is %q", triedName(e, own), line, lastLine(text),
					),
				)
			}
		}
	}
	if nodes["a"] == nodes["b"] {
		return steps.Warned(
			"both pods ran on node "+nodes["a"]+", which says nothing about other nodes", e.Kubectl()+" get nodes",
		)
	}
	return steps.Passed("the pods on %s and %s each read what the other wrote", nodes["a"], nodes["b"])
}

func podWaits(e steps.Env, p *corev1.Pod) steps.Result {
	look := fmt.Sprintf("%s -n %s describe pod %s", e.Kubectl(), p.Namespace, p.Name)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return steps.Waits(
				p.CreationTimestamp.Time, "pod %s cannot be scheduled: %s", p.Name, clean.Text(c.Message),
			).Or(look + "    # requires two nodes that run pods")
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && strings.Contains(w.Reason, "Image") {
			return steps.Failed(
				fmt.Sprintf("pod %s cannot pull image %s: %s", p.Name, clean.Text(s.Image), clean.Text(w.Message)),
				answer(e, "claim.image", "an image that the nodes can pull"),
			)
		}
	}
	return steps.Waits(p.CreationTimestamp.Time, "pod %s is %s", p.Name, p.Status.Phase).Or(look)
}

func podFailed(e steps.Env, p *corev1.Pod, log string) steps.Result {
	fix := fmt.Sprintf(
		"%s -n %s delete pods -l app.kubernetes.io/name=carrick-rwx    # then %s", e.Kubectl(), p.Namespace,
		e.ApplyStep("claim"),
	)
	if said := refusedWrite(log); said != "" {
		if usesNFS(e) {
			fix = writeFix(e, said) + "\n# then " + fix
		}
		return steps.Failed(fmt.Sprintf("pod %s on node %s cannot write: %s", p.Name, p.Spec.NodeName, said), fix)
	}
	return steps.Failed(fmt.Sprintf("pod %s on node %s failed: %q", p.Name, p.Spec.NodeName, lastLine(log)), fix)
}

// waiting is a test object whose events may explain why it waits.
type waiting struct {
	kind, name string
	uid        types.UID
}

// trialsWaiting returns the existing test pods and the test claim that are waiting.
func trialsWaiting(ctx context.Context, e steps.Env) ([]waiting, error) {
	var out []waiting
	for _, own := range []string{"a", "b"} {
		if !triesPods(e) {
			break
		}
		p, err := check.Get[corev1.Pod](ctx, e.Cluster, check.Pods, trialNamespace(e), triedName(e, own))
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil && !hasStarted(p) {
			out = append(out, waiting{"Pod", p.Name, p.UID})
		}
	}
	c, err := theClaim(ctx, e)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && !isBound(c) {
		out = append(out, waiting{"PersistentVolumeClaim", c.Name, c.UID})
	}
	return out, nil
}

func claimEvents(ctx context.Context, e steps.Env) steps.Result {
	all, err := trialsWaiting(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, w := range all {
		events, err := eventsOf(ctx, e, trialNamespace(e), w.kind, w.name, w.uid)
		if err != nil {
			return steps.Errored(err)
		}
		for _, v := range slices.Backward(causes(events)) { // newest first
			if v.Type == corev1.EventTypeWarning {
				said := causeLine(clean.Text(v.Message))
				fix := eventFix(e, w.kind, w.name, said)
				if v.Reason == "ProvisioningFailed" {
					fix += retryFix(ctx, e)
				}
				r := steps.Failed(fmt.Sprintf("%s %s: %s %s: %s", w.kind, w.name, v.Reason, ago(lastSeen(v)), said), fix)
				r.Again = time.Now().Add(time.Minute) // the age in the finding grows
				return r
			}
		}
	}
	return steps.Passed("no waiting test claim or pod has a warning event")
}

// ago formats how long ago a time is, in minutes.
func ago(at time.Time) string {
	if d := time.Since(at).Truncate(time.Minute); d > 0 {
		return d.String() + " ago"
	}
	return "less than a minute ago"
}

func eventFix(e steps.Env, kind, name, said string) string {
	look := fmt.Sprintf("%s -n %s describe %s %s", e.Kubectl(), trialNamespace(e), strings.ToLower(kind), name)
	switch {
	case e.Answers.Text("storage.source") == native && lacksFileVolumes(said):
		return nativeFix(e) + "\n# " + look
	case !usesNFS(e):
		return look
	case mountCause(said) == noHelper:
		return "use a node image with mount.nfs (Ubuntu: nfs-common, Photon OS: nfs-utils)\n# " + look
	case mountCause(said) != elseFailed:
		return mountFix(e, mountCause(said))
	case refusedWrite(said) != "":
		return writeFix(e, said)
	}
	return look
}
