package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// reportTimeout is how long carrick waits for a provisioner to report that it cannot create a volume. On a Supervisor
// without file volumes, pvCSI can take four minutes to report this, which is too long to wait
// (kubernetes-sigs/vsphere-csi-driver: issue 1658).
const reportTimeout = time.Minute

// nativeRWX returns the verdict on the test claim for the guest's own volumes. If shared volumes
// come from NFS, a failed test is a pass, because it only confirms that choice.
func nativeRWX(ctx context.Context, e steps.Env) steps.Result {
	c, err := check.Get[corev1.PersistentVolumeClaim](
		ctx, e.Cluster, check.VolumeClaims, trialNamespace(e), triedName(e, "native"))
	if apierrors.IsNotFound(err) {
		return steps.NotTried("the guest's own file volumes have not been tested yet")
	}
	if err != nil {
		return steps.Errored(err)
	}
	asked, got := clean.Text(c.Annotations[requestedClassAnnotation]), clean.Text(claimClass(c))
	if asked != got {
		return steps.Warned(
			fmt.Sprintf(
				"the test claim requested StorageClass %s, but admission changed the StorageClass to %s, so the guest's own "+
					"volumes were not tested",
				asked, got,
			),
			answer(e, "storage.test", "no"),
		)
	}
	if isBound(c) {
		return nativeWorks(e, got)
	}
	events, err := eventsOf(ctx, e, trialNamespace(e), "PersistentVolumeClaim", c.Name, c.UID)
	if err != nil {
		return steps.Errored(err)
	}
	return nativeFails(e, c, events)
}

func nativeWorks(e steps.Env, class string) steps.Result {
	works := "the test claim is Bound: StorageClass " + class +
		" provides shared volumes (vSAN File Service allows at most 100)"
	if e.Answers.Text("storage.source") != byNFS {
		return steps.Passed("%s", works)
	}
	fix := answer(e, "storage.source", native) + "\n# to use NFS anyway: " + answer(e, "storage.test", "no")
	if _, err := e.Own.Value("nfs-stands"); err == nil {
		return steps.Warned(works+". NFS is not needed", fix)
	}
	return steps.Failed(works+". carrick does not set up NFS", fix)
}

func nativeFails(e steps.Env, c *corev1.PersistentVolumeClaim, events []*corev1.Event) steps.Result {
	needed := e.Answers.Text("storage.source") == native
	said, late := eventMessage(events, "ProvisioningFailed"), eventMessage(events, "WaitForFirstConsumer")
	since := c.CreationTimestamp.Time
	fix := nativeFix(e)
	switch {
	case said != "" && needed:
		r := steps.Failed(fmt.Sprintf("StorageClass %s provides no shared volumes: %q", claimClass(c), said), fix)
		if lacksFileVolumes(said) {
			r = r.Permanently()
		}
		return r
	case said != "":
		return steps.Passed("StorageClass %s provides no shared volumes (%q)", claimClass(c), said)
	case late != "":
		return steps.Warned(
			fmt.Sprintf(
				"StorageClass %s binds a claim only when a pod uses the claim (WaitForFirstConsumer), so the test has no result",
				claimClass(c),
			),
			answer(e, "storage.class", "a StorageClass with volumeBindingMode Immediate")+"\n# "+answer(e, "storage.test", "no"),
		)
	case needed || time.Since(since) < reportTimeout:
		r := steps.Waits(
			since, "the test claim is %s, and no event shows the cause yet", c.Status.Phase,
		).Or(fmt.Sprintf("%s -n %s describe persistentvolumeclaim %s\n# %s", e.Kubectl(), c.Namespace, c.Name, fix))
		r.Again = since.Add(reportTimeout)
		return r
	}
	return steps.Passed(
		"StorageClass %s provided no shared volume within %s and reported no reason", claimClass(c), reportTimeout,
	)
}

// nativeFix returns how to go on without file volumes of the guest, or how to enable them.
func nativeFix(e steps.Env) string {
	return answer(e, "storage.source", byNFS) + "\n# or ask a vSphere admin to enable vSAN File Service and file volumes on " +
		"the Supervisor (vSphere 7.0U3 or later, TKr 1.22 or later, no NAT between the two networks)"
}

// lacksFileVolumes reports whether a message of pvCSI means that file volumes are not available.
// With the feature file-volume, which the manifests of all guests enable, pvCSI waits four minutes
// for the Supervisor's claim. Only without the feature does it reject the claim immediately
// (kubernetes-sigs/vsphere-csi-driver: manifests/guestcluster,
// pkg/csi/service/wcpguest/controller.go, CreateVolume, and controller_helper.go,
// validateGuestClusterCreateVolumeRequest).
func lacksFileVolumes(said string) bool {
	return strings.Contains(said, "failed to create volume on namespace: ") ||
		strings.Contains(said, "File volume provisioning is not supported")
}

// eventsOf returns the events about one object, oldest first.
func eventsOf(
	ctx context.Context, e steps.Env, namespace, kind, name string, uid types.UID,
) ([]*corev1.Event, error) {
	all, err := check.List[corev1.Event](
		ctx, e.Cluster, check.Events, namespace,
		cluster.Selector{Fields: fields.OneTermEqualSelector("involvedObject.name", name).String()},
	)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v *corev1.Event) bool {
		earlier := v.InvolvedObject.UID != "" && v.InvolvedObject.UID != uid // about a deleted object of the same name
		return v.InvolvedObject.Kind != kind || earlier
	})
	slices.SortStableFunc(all, func(a, b *corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	return all, nil
}

func lastSeen(v *corev1.Event) time.Time {
	out := v.CreationTimestamp.Time
	for _, at := range []time.Time{v.LastTimestamp.Time, v.EventTime.Time} {
		if at.After(out) {
			out = at
		}
	}
	if v.Series != nil && v.Series.LastObservedTime.After(out) {
		out = v.Series.LastObservedTime.Time
	}
	return out
}

// eventMessage returns the message of the newest event with the given reason, or "" if there is
// none.
func eventMessage(events []*corev1.Event, reason string) string {
	for _, v := range slices.Backward(events) {
		if v.Reason == reason {
			return clean.Text(cmp.Or(v.Message, reason))
		}
	}
	return ""
}
