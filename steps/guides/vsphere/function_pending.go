package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

func claimsPending(ctx context.Context, e steps.Env) steps.Result {
	var claims []*corev1.PersistentVolumeClaim
	var classes []*storagev1.StorageClass
	err := check.Together(
		func() (err error) {
			claims, err = check.List[corev1.PersistentVolumeClaim](ctx, e.Cluster, check.VolumeClaims, "", cluster.Selector{})
			return err
		},
		func() (err error) {
			classes, err = allClasses(ctx, e)
			return err
		},
	)
	if err != nil {
		return steps.Errored(err)
	}
	var names, fixes []string
	for _, c := range claims {
		if !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) || c.Status.Phase != corev1.ClaimPending ||
			c.Spec.VolumeName != "" || ofThisLink(e, c.Labels) {
			continue
		}
		if c.Spec.StorageClassName != nil && *c.Spec.StorageClassName == sharedClassName(e) {
			if r := notProvisioned(ctx, e, c); r != nil {
				return *r
			}
			continue
		}
		if !sharedElsewhere(e) || c.Spec.StorageClassName == nil || !cannotShare(e, *c.Spec.StorageClassName, classes) {
			continue
		}
		names = append(names, fmt.Sprintf("%s/%s (%s)", c.Namespace, c.Name, clean.Text(*c.Spec.StorageClassName)))
		fixes = append(fixes, recreate(e, c))
	}
	if len(names) == 0 {
		return steps.Passed(
			"of %d claims, no ReadWriteMany claim is Pending with a StorageClass other than %s", len(claims), sharedClassName(e),
		)
	}
	r := steps.Warned(
		"ReadWriteMany claims are Pending with an unsuitable StorageClass: "+check.Some(names), strings.Join(fixes, "\n"),
	)
	r.Lines = names
	return r
}

// notProvisioned returns the verdict on a user's Pending claim with the shared StorageClass. It
// returns nil if no event reports that provisioning fails.
func notProvisioned(ctx context.Context, e steps.Env, c *corev1.PersistentVolumeClaim) *steps.Result {
	events, err := eventsOf(ctx, e, c.Namespace, "PersistentVolumeClaim", c.Name, c.UID)
	if err != nil {
		r := steps.Errored(err)
		return &r
	}
	said := eventMessage(events, "ProvisioningFailed")
	if said == "" || strings.HasSuffix(said, `"`+sharedClassName(e)+`" not found`) { // check rwx-class reports this
		return nil
	}
	fix := fmt.Sprintf("%s -n %s describe persistentvolumeclaim %s", e.Kubectl(), c.Namespace, steps.Quoted(c.Name))
	switch refused := refusedWrite(said); {
	case refused != "" && usesNFS(e):
		said, fix = refused, writeFix(e, refused)+retryFix(ctx, e)
	case !sharedElsewhere(e):
		fix = nativeFix(e) + "\n# " + fix
	}
	r := steps.Failed(
		fmt.Sprintf(
			"provisioning fails for claim %s/%s with StorageClass %s: %s", c.Namespace, c.Name, sharedClassName(e), said,
		), fix,
	)
	return &r
}

// ofThisLink reports whether labels include this link's ownership label.
func ofThisLink(e steps.Env, labels map[string]string) bool {
	return labels["carrick/link."+e.Link] != ""
}

// cannotShare reports whether ReadWriteMany claims with StorageClass name stay Pending. This is the case if
// mutation.replaces contains the StorageClass, or if the StorageClass has the provisioner of the guest's own volumes.
func cannotShare(e steps.Env, name string, classes []*storagev1.StorageClass) bool {
	return slices.Contains(e.Answers.List("mutation.replaces"), name) ||
		slices.ContainsFunc(
			classes, func(c *storagev1.StorageClass) bool { return c.Name == name && c.Provisioner == vSphereCSI },
		)
}

// recreate returns the command that recreates an empty claim with the shared StorageClass.
func recreate(e steps.Env, c *corev1.PersistentVolumeClaim) string {
	at := e.Kubectl() + " -n " + c.Namespace
	return fmt.Sprintf(
		"%s get pvc %s -o yaml | sed 's/^  storageClassName: .*/  storageClassName: %s/' | %s replace --force -f -", at,
		steps.Quoted(c.Name), sharedClassName(e), at,
	)
}
