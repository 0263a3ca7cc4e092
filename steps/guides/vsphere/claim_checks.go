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
			Name: "rwx-class", Title: "The StorageClass of shared volumes exists", On: steps.Local,
			Needs:      []string{"signed-in"},
			FixedBy:    "nfs-chart",
			Why:        "A claim with a missing StorageClass stays Pending indefinitely, and only its events show the cause.",
			References: []string{page, chartSource}, Run: rwxClass,
		},
		{
			Name: "reclaim-policy", Title: "Deleting a claim does not erase data unexpectedly", On: steps.Local,
			Needs:      []string{"rwx-class"},
			Why:        "With reclaim policy Delete and no archive, deleting a notebook's claim also deletes its data.",
			References: []string{provisionerCode}, Run: classKeeps,
		},
		{
			Name: "claim-bound", Title: "The test claim is bound within a minute", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "claim", Timeout: time.Minute,
			Why: "A Pending claim does not show whether the provisioner is down, ignores the StorageClass, lacks permissions " +
				"or cannot write.",
			References: []string{page, claimSource}, Run: claimBound, Tried: claimedOn,
		},
		{
			Name: "claim-shared", Title: "Two pods on two nodes write to one volume", On: steps.Local, From: "the pods' logs",
			When: triesPods, Needs: []string{"claim-bound"}, FixedBy: "claim-pods", Timeout: 10 * time.Minute,
			Why: "A bound claim shows only that the directory exists. Pods also show that nodes can mount it and that " +
				"non-root users can write.",
			References: []string{page}, Run: claimShared, Tried: claimedOn,
		},
		{
			Name: "claim-events", Title: "The test claim and pods have no warning events", On: steps.Local,
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
		return steps.NotTried("the test claim does not exist yet")
	}
	if err != nil {
		return steps.Errored(err)
	}
	got := clean.Text(claimClass(c))
	remove := fmt.Sprintf(
		"%s -n %s delete persistentvolumeclaim %s    # then %s", e.Kubectl(), c.Namespace, c.Name, e.ApplyStep("claim"),
	)
	switch asked := clean.Text(c.Annotations[requestedClassAnnotation]); {
	case asked != sharedClassName(e):
		return steps.Failed(
			fmt.Sprintf("the test claim requested StorageClass %s, but storage.class is now %s", asked, sharedClassName(e)),
			remove,
		)
	case asked != got:
		return steps.Failed(
			fmt.Sprintf("the test claim requested StorageClass %s, but admission changed the StorageClass to %s", asked, got),
			e.Kubectl()+" get mutatingwebhookconfigurations\n# then "+remove,
		)
	case isBound(c):
		return boundIn(ctx, e, c)
	}
	return unbound(ctx, e, c)
}

// claimedOn returns the creation times of the test claim and of its StorageClass. The results of the claim and of its
// pods depend on that StorageClass.
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
		return t, nil // check rwx-class reports the missing StorageClass
	}
	if err != nil {
		return t, err
	}
	t.On = []steps.Dependency{{What: "StorageClass " + s.Name + " was created", Since: s.CreationTimestamp.Time}}
	return t, nil
}

// tryAgain returns the command that deletes the test objects and repeats the test.
func tryAgain(e steps.Env) string {
	return fmt.Sprintf("%s -n %s delete pods -l %s; %s -n %s delete persistentvolumeclaim %s && %s",
		e.Kubectl(), trialNamespace(e), e.OwnedBy("claim-pods").Labels, e.Kubectl(), trialNamespace(e), triedName(e, "claim"),
		e.ApplyStep("claim"))
}

// boundIn returns the verdict on a bound claim. It returns Pass with the time that binding took, or a warning if the
// volume is not on the configured NFS export.
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
					"claim %s/%s is bound to PersistentVolume %s on %s, but the answers configure %s", c.Namespace, c.Name, v.Name, at,
					clean.Text(nfsExported(e)),
				),
				tryAgain(e),
			)
		}
		where = " on " + at
	}
	return steps.Passed(
		"claim %s/%s is bound to PersistentVolume %s%s (after %s)", c.Namespace, c.Name, v.Name, where,
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
			fmt.Sprintf(
				"StorageClass %s binds a claim only when a pod uses the claim, so the test claim stays Pending", claimClass(c),
			),
			answer(e, "claim.pods", "yes"),
		)
	}
	said := eventMessage(events, "ExternalProvisioning")
	if said == "" {
		said = "no event shows the cause"
	}
	fix := look
	if usesNFS(e) {
		fix = fmt.Sprintf(
			"carrick check %s --only provisioner-ready,provisioner-name,provisioner-rights,nfs-export\n%s", e.LinkFile(), look,
		)
	}
	return steps.Waits(c.CreationTimestamp.Time, "the test claim is %s: %s", c.Status.Phase, said).Or(fix)
}

func claimShared(ctx context.Context, e steps.Env) steps.Result {
	seen := map[string]string{} // logs by pod
	nodes := map[string]string{}
	pods := map[string]*corev1.Pod{}
	for _, own := range []string{"a", "b"} {
		e.Cluster.StartGet(check.Pods, trialNamespace(e), triedName(e, own))
	}
	for _, own := range []string{"a", "b"} {
		p, err := check.Get[corev1.Pod](ctx, e.Cluster, check.Pods, trialNamespace(e), triedName(e, own))
		if err != nil && !apierrors.IsNotFound(err) {
			return steps.Errored(err)
		}
		if err == nil {
			pods[own] = p
		}
	}
	for own, other := range map[string]string{"a": "b", "b": "a"} {
		if late(pods[own], pods[other]) {
			how := "does not exist"
			if pods[own] != nil {
				how = "was created after that, and waits for it"
			}
			return steps.Failed(
				fmt.Sprintf("pod %s completed, but pod %s %s", triedName(e, other), triedName(e, own), how), podsAgain(e),
			).WithoutAction()
		}
	}
	for _, own := range []string{"a", "b"} {
		p := pods[own]
		if p == nil {
			return steps.NotTried("the test pods have not run yet")
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
						"pod %s succeeded, but its log does not contain %q. The last line is %q", triedName(e, own), line, lastLine(text),
					),
				)
			}
		}
	}
	if nodes["a"] == nodes["b"] {
		return steps.Warned(
			"both pods ran on node "+nodes["a"]+", so no other node was tested", e.Kubectl()+" get nodes",
		)
	}
	return steps.Passed("the pods on nodes %s and %s each read the file of the other pod", nodes["a"], nodes["b"])
}

func podWaits(e steps.Env, p *corev1.Pod) steps.Result {
	look := fmt.Sprintf("%s -n %s describe pod %s", e.Kubectl(), p.Namespace, p.Name)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return steps.Waits(
				p.CreationTimestamp.Time, "pod %s cannot be scheduled: %s", p.Name, clean.Text(c.Message),
			).Or(look + "    # the test requires two nodes that can run pods")
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

// late reports whether a test pod waits in vain for the other pod, because the other pod completed before. A pod that
// does not exist would wait, too.
func late(p, other *corev1.Pod) bool {
	if other == nil || other.Status.Phase != corev1.PodSucceeded {
		return false
	}
	for _, c := range other.Status.ContainerStatuses {
		if t := c.State.Terminated; p != nil && t != nil {
			return !check.Ended(p) && p.CreationTimestamp.After(t.FinishedAt.Time)
		}
	}
	return p == nil
}

// podsAgain returns the commands that run both test pods again.
func podsAgain(e steps.Env) string {
	return e.Kubectl() + " -n " + steps.Quoted(trialNamespace(e)) +
		" delete pods -l app.kubernetes.io/name=carrick-rwx    # then " + e.ApplyStep("claim")
}

func podFailed(e steps.Env, p *corev1.Pod, log string) steps.Result {
	fix := podsAgain(e)
	if said := refusedWrite(log); said != "" {
		if usesNFS(e) {
			fix = writeFix(e, said) + "\n# then " + fix
		}
		return steps.Failed(fmt.Sprintf("pod %s on node %s cannot write: %s", p.Name, p.Spec.NodeName, said), fix)
	}
	return steps.Failed(fmt.Sprintf("pod %s on node %s failed: %q", p.Name, p.Spec.NodeName, lastLine(log)), fix)
}

// waiting is a test pod that has not started, or a test claim that is not bound. Its events might show the cause.
type waiting struct {
	kind, name string
	uid        types.UID
}

// trialsWaiting returns the existing test pods that have not started, and the test claim if it is
// not bound.
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
				r.Again = time.Now().Add(time.Minute) // updates the age in the finding
				return r
			}
		}
	}
	return steps.Passed("none of the waiting test claims and pods has a warning event")
}

// ago formats the time that has passed since at.
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
