package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

func driverChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "driver-version", Title: "csi-rclone has the same version as on the local cluster", On: steps.Remote,
			When: mountsConnectors, Needs: []string{"signed-in"}, FixedBy: "driver",
			Why: "Renku creates volumes for the local driver version. The operator chart would install 0.3.5, so " +
				"deploy.csiRclone stays off (not in the published guide).",
			References: []string{page, "SwissDataScienceCenter/amalthea: helm-chart/amalthea-sessions/Chart.yaml"},
			Run:        driverSameVersion,
		},
		{
			Name: "pod-security-csi", Title: "The namespace of csi-rclone admits privileged pods", On: steps.Remote,
			When: mountsConnectors, Needs: []string{"signed-in"}, FixedBy: "driver-namespace",
			Why:        "The driver's node plugin mounts file systems, so its pods are privileged.",
			References: []string{"SwissDataScienceCenter/csi-rclone: deploy/csi-rclone"},
			Run:        podSecurityOfDriver,
		},
		{
			Name: "csi-on-nodes", Title: "csi-rclone runs on every session node", On: steps.Remote,
			When: mountsConnectors, Needs: []string{"nodes"}, FixedBy: "driver",
			Why: "A session with a data connector fails on a node without the driver: driver name not found in the " +
				"list of registered CSI drivers.",
			References: []string{page, "SwissDataScienceCenter/csi-rclone: deploy/csi-rclone"},
			Run:        driverOnNodes,
		},
		{
			Name: "csi-kubelet-dir", Title: "csi-rclone uses the kubelet's directory", On: steps.Remote, When: mountsConnectors,
			Needs: []string{"nodes"},
			Why: "On k0s and microk8s the kubelet does not use /var/lib/kubelet. It cannot reach a driver socket " +
				"there, and pods do not see volumes mounted there.",
			References: []string{"SwissDataScienceCenter/csi-rclone: deploy/csi-rclone/templates/csi-nodeplugin-rclone.yaml"},
			Run:        driverKubeletDir,
		},
	}
}

func driverSameVersion(ctx context.Context, e steps.Env) steps.Result {
	there, here, err, peerErr := seenOnBoth(e, "csi-rclone")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Undone(absent.Why)
	}
	if err != nil {
		return steps.Errored(err)
	}
	if peerErr != nil {
		return steps.Errored(peerErr)
	}
	return sameVersion(e, there, here, versionFix(e, "driver", driverChart), false)
}

func podSecurityOfDriver(ctx context.Context, e steps.Env) steps.Result {
	space := e.Answers.Text("driver.namespace")
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", space)
	if apierrors.IsNotFound(err) {
		return steps.Skipped("namespace %s does not exist yet: the driver is not installed", space)
	}
	if err != nil {
		return steps.Errored(err)
	}
	switch level := ns.GetLabels()[check.EnforceLabel]; level {
	case "privileged", "":
		if level == "" {
			return steps.Passed("namespace %s sets no Pod Security level, so the cluster's default applies", space)
		}
		return steps.Passed("namespace %s enforces level privileged", space)
	default:
		return steps.Failed(fmt.Sprintf("namespace %s enforces level %s, which rejects the driver's pods", space, level),
			e.Kubectl()+" label --overwrite namespace "+space+" "+check.EnforceLabel+"=privileged")
	}
}

func driverOnNodes(ctx context.Context, e steps.Env) steps.Result {
	d, err := driver(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if d == nil {
		return steps.Skipped(
			"csi-rclone is not installed yet: sessions run without csi-rclone, but data connectors do not work",
		)
	}
	var fit []*corev1.Node
	var registered []*storagev1.CSINode
	var pods []*corev1.Pod
	err = check.Together(
		func() (err error) { fit, _, err = sessionNodes(ctx, e); return err },
		func() (err error) {
			registered, err = check.List[storagev1.CSINode](ctx, e.Cluster, check.CSINodes, "", cluster.Selector{})
			return err
		},
		func() (err error) {
			pods, err = check.List[corev1.Pod](
				ctx, e.Cluster, check.Pods, "", cluster.Selector{Labels: "app=csi-nodeplugin-rclone"},
			)
			return err
		},
	)
	if err != nil {
		return steps.Errored(err)
	}
	with := map[string]bool{}
	for _, n := range registered {
		with[n.Name] = slices.ContainsFunc(
			n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == rcloneSpace },
		)
	}
	var without []*corev1.Node
	for _, n := range fit {
		if !with[n.Name] {
			without = append(without, n)
		}
	}
	if len(without) > 0 {
		return steps.Failed("the driver is not registered on "+someNodes(without), ourDriver(e, tolerating(e, fit)))
	}
	return driverPodsReady(e, fit, pods)
}

func driverPodsReady(e steps.Env, fit []*corev1.Node, pods []*corev1.Pod) steps.Result {
	ready := map[string]bool{}
	for _, p := range pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready[p.Spec.NodeName] = true
			}
		}
	}
	for _, n := range fit {
		if !ready[n.Name] {
			return steps.Failed(
				"no driver pod is ready on "+n.Name, e.Kubectl()+" get pods -A -l app=csi-nodeplugin-rclone -o wide",
			)
		}
	}
	return steps.Passed("the driver is registered and ready on %s", steps.Plural(len(fit), "node"))
}

func driverKubeletDir(ctx context.Context, e steps.Env) steps.Result {
	d, err := driver(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if d == nil {
		return steps.Skipped("csi-rclone is not installed yet")
	}
	fit, _, err := sessionNodes(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, n := range fit {
		dir := kubeletDir(n)
		if dir == usualKubeletDir {
			continue
		}
		if fields := outsideKubeletDir(d, dir); len(fields) > 0 {
			return steps.Warned(
				fmt.Sprintf("the kubelet of %s (%s) uses %s, but these fields of DaemonSet %s/%s do not: %s", n.Name,
					n.Status.NodeInfo.KubeletVersion, dir, d.Namespace, d.Name, strings.Join(fields, ", ")), moveDriver(e, d, dir),
			)
		}
	}
	if len(fit) > 0 && kubeletDir(fit[0]) != usualKubeletDir {
		return steps.Passed("csi-rclone registers and mounts in %s", kubeletDir(fit[0]))
	}
	return steps.Passed("no node runs k0s or microk8s, so all kubelets use %s", usualKubeletDir)
}

// registrationPath is the driver's flag for the path of the socket that the kubelet calls.
const registrationPath = "--kubelet-registration-path="

// outsideKubeletDir returns the fields of the driver's DaemonSet whose paths are outside dir, the
// kubelet's directory. A symbolic link on the node cannot replace a correct path, because the
// kubelet calls the socket path that the driver registers and tells the driver to mount below dir.
// The chart's kubeletDir sets only the hostPath volumes (csi-rclone v0.6.0
// deploy/csi-rclone/templates/csi-nodeplugin-rclone.yaml; kubernetes pkg/volume/csi/csi_plugin.go
// RegisterPlugin).
func outsideKubeletDir(d *appsv1.DaemonSet, dir string) []string {
	var hostPath, socket, mount bool
	spec := d.Spec.Template.Spec
	for _, v := range spec.Volumes {
		hostPath = hostPath || (v.HostPath != nil && v.HostPath.Path == dir+"/pods")
	}
	for _, c := range spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			socket = socket || strings.HasPrefix(arg, registrationPath+dir+"/")
		}
		for _, m := range c.VolumeMounts {
			mount = mount || m.MountPath == dir+"/pods"
		}
	}
	var out []string
	for _, f := range []struct {
		has  bool
		name string
	}{{hostPath, "hostPath"}, {socket, strings.TrimSuffix(registrationPath, "=")}, {mount, "mountPath"}} {
		if !f.has {
			out = append(out, f.name)
		}
	}
	return out
}

// moveDriver returns the fix for a driver with paths outside the kubelet's directory. The fix is a
// command that changes the paths in the DaemonSet. If carrick installed the driver, the next apply
// would revert that change. In this case the fix is to use other nodes or to disable data
// connectors.
func moveDriver(e steps.Env, d *appsv1.DaemonSet, dir string) string {
	if isOurs(e.Own, "driver-stands") {
		return "the chart cannot change these paths: set nodes.labels to labels of nodes whose kubelet uses " +
			usualKubeletDir +
			", or set sessions.data-connectors to no"
	}
	at := e.Kubectl() + " -n " + d.Namespace
	return at + " get daemonset " + d.Name + " -o yaml | sed 's#\\([ =]\\)" + usualKubeletDir + "#\\1" + dir + "#' | " +
		at +
		" replace -f -    # repeat after each upgrade: the chart's kubeletDir sets only the hostPath volumes"
}

// ourDriver returns the fix for a problem of the driver. If carrick installed the driver, the fix
// is "", which means the apply command. Otherwise the fix is the parameter otherwise.
func ourDriver(e steps.Env, otherwise string) string {
	if isOurs(e.Own, "driver-stands") {
		return ""
	}
	return otherwise
}
