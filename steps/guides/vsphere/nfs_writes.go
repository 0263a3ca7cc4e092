package vsphere

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// refusedWrites lists, in lower case, the errors that the provisioner reports if the NFS server rejects a write.
var refusedWrites = []string{"permission denied", "operation not permitted", "read-only file system"}

// refusedWrite returns the first line of text that reports a rejected write, or "" if no line does.
func refusedWrite(text string) string {
	for _, line := range strings.Split(text, "\n") {
		low := strings.ToLower(line)
		for _, words := range refusedWrites {
			if strings.Contains(low, words) {
				if _, after, ok := strings.Cut(line, "] "); ok { // the prefix of a log line
					line = after
				}
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

// nfsWrites checks whether the provisioner can write to the export. An existing volume proves that
// the provisioner created a directory. While the test claim is not bound, its events and the
// provisioner's log show rejected writes. Once the claim is bound, these events and the log are
// outdated and ignored.
func nfsWrites(ctx context.Context, e steps.Env) steps.Result {
	own, err := check.Get[corev1.PersistentVolumeClaim](
		ctx, e.Cluster, check.VolumeClaims, trialNamespace(e), triedName(e, "claim"))
	if err != nil && !apierrors.IsNotFound(err) {
		return steps.Errored(err)
	}
	if err == nil && !isBound(own) {
		said, err := whyUnbound(ctx, e, own)
		switch {
		case err != nil:
			return steps.Errored(err)
		case said != "":
			return steps.Failed("the provisioner cannot write: "+said, writeFix(e, said)+retryFix(ctx, e))
		}
		return steps.Skipped(
			"claim %s/%s is not bound yet, and no event or log reports a rejected write", own.Namespace, own.Name,
		)
	}
	volumes, err := check.List[corev1.PersistentVolume](ctx, e.Cluster, volumeKind, "", cluster.Selector{})
	if err != nil {
		return steps.Errored(err)
	}
	for _, v := range volumes {
		if v.Spec.StorageClassName == sharedClassName(e) && v.Spec.NFS != nil {
			return steps.Passed("the provisioner created %s:%s", clean.Text(v.Spec.NFS.Server), clean.Text(v.Spec.NFS.Path))
		}
	}
	return steps.Skipped("the provisioner has not created a volume of StorageClass %s yet", sharedClassName(e))
}

// whyUnbound looks for a rejected write in the events of c and in the provisioner's log. It returns the message, or ""
// if there is none.
func whyUnbound(ctx context.Context, e steps.Env, c *corev1.PersistentVolumeClaim) (string, error) {
	events, err := eventsOf(ctx, e, c.Namespace, "PersistentVolumeClaim", c.Name, c.UID)
	if err != nil {
		return "", err
	}
	if said := refusedWrite(eventMessage(events, "ProvisioningFailed")); said != "" {
		return said, nil
	}
	p, err := theProvisioner(ctx, e)
	if err != nil || p == nil {
		return "", err
	}
	log, err := provisionerLog(ctx, e, p)
	return refusedWrite(log), err
}

// retryFix returns the command that makes the provisioner retry, or "" if no NFS provisioner is
// used or found. The provisioner doubles the delay between retries from 15 s to 1000 s, and gives
// up after 15 failures (sig-storage-lib-external-provisioner v6.0.0: controller/controller.go,
// processNextClaimWorkItem). Until the next retry, the last event of the claim remains.
func retryFix(ctx context.Context, e steps.Env) string {
	if !usesNFS(e) {
		return ""
	}
	p, err := theProvisioner(ctx, e)
	if err != nil || p == nil {
		return ""
	}
	return fmt.Sprintf(
		"\n%s -n %s rollout restart deployment %s    # after you fix the cause: the next retry can be 17 minutes away, and "+
			"the provisioner gives up after 15 failures",
		e.Kubectl(), p.Namespace, p.Name,
	)
}

func writeFix(e steps.Env, said string) string {
	path := steps.Quoted(e.Answers.Text("nfs.path"))
	if strings.Contains(strings.ToLower(said), "read-only") {
		return fmt.Sprintf(
			"on the NFS server: sudo grep -n %s /etc/exports    # change ro to rw in the existing line: a second line for the "+
				"same network is ignored. Then: sudo exportfs -ra\n# the line should read: %s",
			path, exportLine(e),
		)
	}
	return fmt.Sprintf(
		"on the NFS server: sudo exportfs -v | grep -A1 %s && ls -ld %s    # root_squash maps root to an unprivileged "+
			"user: set no_root_squash in the existing line of /etc/exports (a second line for the same network is ignored), "+
			"then sudo exportfs -ra; or sudo chown nobody:nogroup %s && sudo chmod 2777 %s\n# the line should read: %s",
		path, path, path, path, exportLine(e),
	)
}
