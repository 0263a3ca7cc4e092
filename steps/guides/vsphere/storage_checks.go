package vsphere

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// References of the checks.
const (
	fileVolumes     = "https://docs.vmware.com/en/VMware-vSphere/7.0/vmware-vsphere-with-tanzu/GUID-82AC812A-40E3-4563-9329-747634E1AB6E.html (requirements and limits)"
	provisionerCode = "kubernetes-sigs/nfs-subdir-external-provisioner: cmd/nfs-subdir-external-provisioner/provisioner.go"
	chartSource     = "kubernetes-sigs/nfs-subdir-external-provisioner: charts/nfs-subdir-external-provisioner"
)

func storageChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "native-rwx", Title: "The guest's own file volumes have been tested", On: steps.Local,
			Needs: []string{"signed-in"},
			When:  triesNative, FixedBy: "native-try", Timeout: 5 * time.Minute,
			Why: "With vSphere 7.0U3, TKr 1.22, vSAN File Service and file volumes on the Supervisor, you need no NFS server, " +
				"unmaintained provisioner or webhook.",
			References: []string{
				fileVolumes, "kubernetes-sigs/vsphere-csi-driver: pkg/csi/service/wcpguest/controller_helper.go",
			}, Run: nativeRWX,
		},
		{
			Name: "page-class", Title: "No claim waits for a StorageClass that does not exist", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "The published guide installs nfs-client, but its test claim names nfs and a missing volume, so the " +
				"claim stays Pending.",
			References: []string{page}, Run: pageClass,
		},
	}
}

func rwxClass(ctx context.Context, e steps.Env) steps.Result {
	source := e.Answers.Text("storage.source")
	c, err := theClass(ctx, e)
	if err != nil {
		fix := e.Kubectl() + " get storageclasses    # then " + answer(e, "storage.class", "one of them")
		if source == byNFS {
			fix = e.ApplyStep("nfs")
		}
		return check.Missing(err, "StorageClass "+sharedClassName(e), fix)
	}
	by := clean.Text(c.Provisioner)
	switch {
	case by == "kubernetes.io/no-provisioner":
		return steps.Failed(
			"StorageClass "+c.Name+" provisions no volumes: each volume must be created manually",
			answer(e, "storage.class", "a StorageClass with a provisioner"),
		)
	case source == byNFS && c.Provisioner == vSphereCSI:
		return steps.Failed(
			fmt.Sprintf("StorageClass %s has the vSphere provisioner %s, but storage.source is nfs", c.Name, by),
			answer(e, "storage.class", "nfs-client"),
		)
	case source == native && c.Provisioner != vSphereCSI:
		return steps.Warned(
			fmt.Sprintf("StorageClass %s has provisioner %s, which is not the vSphere CSI driver", c.Name, by),
			answer(e, "storage.source", "class")+"    # another tool manages that StorageClass",
		)
	}
	return steps.Passed("StorageClass %s, provisioner %s", c.Name, by)
}

func classKeeps(ctx context.Context, e steps.Env) steps.Result {
	c, err := theClass(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if waitsForPod(c) {
		return steps.Warned(
			"StorageClass "+c.Name+
				" binds a claim only when a pod uses it (WaitForFirstConsumer). A claim alone stays Pending, as in the published "+
				"guide's test",
			"use a StorageClass with volumeBindingMode Immediate: "+answer(e, "storage.class", "its name"),
		)
	}
	if c.ReclaimPolicy != nil && *c.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return steps.Passed(
			"StorageClass %s: a volume remains when its claim is deleted, until you delete the volume manually", c.Name,
		)
	}
	how, erases := onDelete(c)
	if erases {
		return steps.Warned(
			fmt.Sprintf("StorageClass %s: %s, so the data is deleted with the claim", c.Name, how), keepFix(e, c),
		)
	}
	return steps.Passed("StorageClass %s: %s", c.Name, how)
}

// keepFix returns the fix that makes a StorageClass keep the data of deleted claims. A StorageClass
// is immutable. If the next apply recreates the StorageClass, the fix deletes it. Otherwise the fix
// creates a copy with another name.
func keepFix(e steps.Env, c *storagev1.StorageClass) string {
	if usesNFS(e) && installsNFS(e) && c.Provisioner == provisionerName(e) {
		return fmt.Sprintf(
			"%s delete storageclass %s    # existing volumes remain. Then set nfs.archive to yes or nfs.reclaim to "+
				"Retain, and: %s",
			e.Kubectl(), c.Name, e.ApplyStep("nfs"),
		)
	}
	how := `parameters.archiveOnDelete: "true"`
	if c.Provisioner == csiNFS {
		how = "parameters.onDelete: archive"
	}
	return fmt.Sprintf(
		"%s get storageclass %s -o yaml    # create a copy with another name and %s; then %s", e.Kubectl(),
		c.Name, how, answer(e, "storage.class", "that name"),
	)
}

// onDelete describes what the provisioner of c does with the directory of a deleted claim, according to the parameters
// of c. erases reports whether it deletes the data.
func onDelete(c *storagev1.StorageClass) (how string, erases bool) {
	parameters := c.Parameters
	switch {
	case c.Provisioner == vSphereCSI:
		return "the volume is deleted with its claim, like all volumes of the vSphere CSI driver", false
	case c.Provisioner == csiNFS:
		if on := parameters["onDelete"]; on == "retain" || on == "archive" {
			return "onDelete is " + on, false
		}
		return "csi-driver-nfs deletes the directory (onDelete is neither retain nor archive)", true
	case parameters["onDelete"] == "retain":
		return "onDelete is retain: the directory is kept", false
	case parameters["onDelete"] == "delete":
		return "onDelete is delete", true
	case strings.EqualFold(parameters["archiveOnDelete"], "false"):
		return `archiveOnDelete is "false"`, true
	case c.Parameters["archiveOnDelete"] == "":
		return "reclaim policy Delete", false
	}
	return "the directory of a deleted claim is kept as archived-NAME", false
}

func pageClass(ctx context.Context, e steps.Env) steps.Result {
	var classes []*storagev1.StorageClass
	var claims []*corev1.PersistentVolumeClaim
	err := check.Together(
		func() (err error) { classes, err = allClasses(ctx, e); return err },
		func() (err error) {
			claims, err = check.List[corev1.PersistentVolumeClaim](ctx, e.Cluster, check.VolumeClaims, "", cluster.Selector{})
			return err
		},
	)
	if err != nil {
		return steps.Errored(err)
	}
	there := map[string]bool{"": true} // a claim without a StorageClass is bound manually or gets the default
	for _, c := range classes {
		there[c.Name] = true
	}
	var lost []string
	var first *corev1.PersistentVolumeClaim
	for _, c := range claims {
		if c.Status.Phase == corev1.ClaimPending && !there[claimClass(c)] {
			lost = append(lost, fmt.Sprintf("%s/%s (%s)", c.Namespace, c.Name, clean.Text(claimClass(c))))
			if first == nil {
				first = c
			}
		}
	}
	if len(lost) == 0 {
		return steps.Passed("none of %d claims names a StorageClass that does not exist", len(claims))
	}
	why := ""
	if v := first.Spec.VolumeName; v != "" {
		why = fmt.Sprintf("; claim %s also names volume %s", first.Name, clean.Text(v))
	}
	return steps.Warned(fmt.Sprintf("claims name a StorageClass that does not exist: %s%s", check.Some(lost), why),
		fmt.Sprintf(
			"%s -n %s delete persistentvolumeclaim %s    # the StorageClass of a claim is immutable: recreate the claim with "+
				"storageClassName: %s and without volumeName",
			e.Kubectl(), first.Namespace, first.Name, sharedClassName(e),
		))
}
