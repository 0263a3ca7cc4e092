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

// Where upstream says so.
const (
	fileVolumes     = "https://docs.vmware.com/en/VMware-vSphere/7.0/vmware-vsphere-with-tanzu/GUID-82AC812A-40E3-4563-9329-747634E1AB6E.html (what it takes, and its limits)"
	provisionerCode = "kubernetes-sigs/nfs-subdir-external-provisioner: cmd/nfs-subdir-external-provisioner/provisioner.go"
	chartSource     = "kubernetes-sigs/nfs-subdir-external-provisioner: charts/nfs-subdir-external-provisioner"
)

func storageChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "native-rwx", Title: "the guest's own file volumes were tried", On: steps.Local, Needs: []string{"signed-in"},
			When: triesNative, FixedBy: "native-try", Timeout: 5 * time.Minute,
			Why: "since vSphere 7.0U3, with vSAN File Service and file volumes enabled on the Supervisor, a guest (TKr " +
				"1.22 and newer) has volumes that many pods write to: an NFS server, a provisioner that nobody maintains and a " +
				"webhook are then parts that can only fail",
			References: []string{
				fileVolumes, "kubernetes-sigs/vsphere-csi-driver: pkg/csi/service/wcpguest/controller_helper.go",
			}, Run: nativeRWX,
		},
		{
			Name: "page-class", Title: "no claim waits for a class that is not there", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "the published guide installs the class nfs-client and tests with one called nfs, and its test names " +
				"a volume that is not there: such a claim stays Pending whatever is right with the rest",
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
		return check.Missing(err, "storage class "+sharedClassName(e), fix)
	}
	by := clean.Text(c.Provisioner)
	switch {
	case by == "kubernetes.io/no-provisioner":
		return steps.Failed(
			c.Name+" makes no volumes: somebody makes each by hand", answer(e, "storage.class", "a class with a provisioner"),
		)
	case source == byNFS && c.Provisioner == vSphereCSI:
		return steps.Failed(
			fmt.Sprintf("%s is a class of the guest's own (%s), and shared volumes are to come from NFS", c.Name, by),
			answer(e, "storage.class", "nfs-client"),
		)
	case source == native && c.Provisioner != vSphereCSI:
		return steps.Warned(
			fmt.Sprintf("%s is of provisioner %s, no class of the guest's own", c.Name, by),
			answer(e, "storage.source", "class")+"    # it is somebody else's",
		)
	}
	return steps.Passed("%s, of provisioner %s", c.Name, by)
}

func classKeeps(ctx context.Context, e steps.Env) steps.Result {
	c, err := theClass(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if waitsForPod(c) {
		return steps.Warned(
			c.Name+
				" binds a claim when the first pod uses it (WaitForFirstConsumer): a claim alone stays Pending, as in the "+
				"published guide's test",
			"take a class that binds at once: "+answer(e, "storage.class", "its name"),
		)
	}
	if c.ReclaimPolicy != nil && *c.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		return steps.Passed("%s: a volume stays when its claim is deleted, until somebody deletes it", c.Name)
	}
	how, erases := onDelete(c)
	if erases {
		return steps.Warned(fmt.Sprintf("%s: %s: who deletes a claim deletes its data", c.Name, how), keepFix(e, c))
	}
	return steps.Passed("%s: %s", c.Name, how)
}

// keepFix is how a class comes to keep data: it can't be changed. It is deleted only where
// the next apply makes it again.
func keepFix(e steps.Env, c *storagev1.StorageClass) string {
	if usesNFS(e) && installsNFS(e) && c.Provisioner == provisionerName(e) {
		return fmt.Sprintf(
			"%s delete storageclass %s    # volumes that it has made stay. Then, with nfs.archive yes or nfs.reclaim Retain: %s",
			e.Kubectl(), c.Name, e.ApplyStep("nfs"),
		)
	}
	how := `parameters.archiveOnDelete: "true"`
	if c.Provisioner == csiNFS {
		how = "parameters.onDelete: archive"
	}
	return fmt.Sprintf(
		"%s get storageclass %s -o yaml    # make a second one of it, under a name of its own, with %s; then %s", e.Kubectl(),
		c.Name, how, answer(e, "storage.class", "that name"),
	)
}

// onDelete says what a class does with a folder whose claim is deleted, as its provisioner reads the parameters.
func onDelete(c *storagev1.StorageClass) (how string, erases bool) {
	parameters := c.Parameters
	switch {
	case c.Provisioner == vSphereCSI:
		return "the volume goes with its claim, as any of the guest's own does", false
	case c.Provisioner == csiNFS:
		if on := parameters["onDelete"]; on == "retain" || on == "archive" {
			return "onDelete is " + on, false
		}
		return "csi-driver-nfs deletes the folder (onDelete is neither retain nor archive)", true
	case parameters["onDelete"] == "retain":
		return "onDelete is retain: the folder stays", false
	case parameters["onDelete"] == "delete":
		return "onDelete is delete", true
	case strings.EqualFold(parameters["archiveOnDelete"], "false"):
		return `archiveOnDelete is "false"`, true
	case c.Parameters["archiveOnDelete"] == "":
		return "reclaim policy Delete", false
	}
	return "the folder of a deleted claim is kept as archived-NAME", false
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
	there := map[string]bool{"": true} // a claim without one is bound by hand, or gets the default one
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
		return steps.Passed("each of %d claims names a class that is there, or none", len(claims))
	}
	why := ""
	if v := first.Spec.VolumeName; v != "" {
		why = fmt.Sprintf("; %s also names volume %s", first.Name, clean.Text(v))
	}
	return steps.Warned(fmt.Sprintf("claims name a class that is not there: %s%s", check.Some(lost), why),
		fmt.Sprintf(
			"%s -n %s delete persistentvolumeclaim %s    # the class of a claim can't be changed: make it anew with "+
				"storageClassName: %s, and without volumeName",
			e.Kubectl(), first.Namespace, first.Name, sharedClassName(e),
		))
}
