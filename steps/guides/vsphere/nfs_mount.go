package vsphere

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster/failure"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

// Causes of a failed mount.
const (
	noExport   = "export"  // the server does not export the directory to this address
	noFolder   = "folder"  // the server exports no such directory
	noWay      = "network" // the server does not answer
	noVersion  = "version" // the server does not support the NFS version
	noHelper   = "helper"  // the node has no mount helper for NFS
	elseFailed = "other"
)

// mountWords maps parts of the messages of mount.nfs and the kubelet to causes (linux-nfs:
// utils/mount/error.c; mount-utils).
var mountWords = []struct{ part, cause string }{
	{"access denied by server", noExport},
	{"/sbin/mount.", noHelper},
	{"no such file or directory", noFolder},
	{"timed out", noWay},
	{"no route to host", noWay},
	{"connection refused", noWay},
	{"network is unreachable", noWay},
	{"failed to resolve server", noWay},
	{"protocol not supported", noVersion},
	{"requested nfs version or transport protocol", noVersion},
}

// Start and end of the event message in which an older kubelet reports that a pod's volumes are not
// mounted yet. The message does not contain the cause (kubernetes/kubernetes:
// pkg/kubelet/kubelet.go, SyncPod).
const (
	mountSummary = "Unable to attach or mount volumes: "
	mountWaited  = "timed out waiting for the condition"
)

func mountCause(message string) string {
	message = strings.ReplaceAll(strings.ToLower(message), mountWaited, "")
	for _, w := range mountWords {
		if strings.Contains(message, w.part) {
			return w.cause
		}
	}
	return elseFailed
}

// mountHint is the start of the last line that mount(8) of util-linux prints if the mount system
// call failed (sys-utils/mount.c, since 2.38).
const mountHint = "dmesg(1) may have more information"

// causeLine returns the line of a mount's output that explains why the mount failed. The lines before it repeat the
// arguments.
func causeLine(message string) string {
	cause, last := mountCause(message), ""
	for _, line := range strings.Split(message, "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "Output: ")
		switch {
		case line == "", strings.HasPrefix(line, mountHint):
		case cause != elseFailed && mountCause(line) == cause:
			return line
		default:
			last = line
		}
	}
	return last
}

// mountFault is a pod whose volume could not be mounted.
type mountFault struct{ pod, node, message, cause string }

// mounts lists the pods that mount the export: the provisioner's pods and the test pods.
type mounts struct {
	done    []string      // descriptions of pods that have mounted the export
	waiting []*corev1.Pod // pods that have not mounted the export, without a known cause
	faults  []mountFault
}

func mountsOf(ctx context.Context, e steps.Env) (mounts, error) {
	var out mounts
	pods, err := mountingPods(ctx, e)
	if err != nil {
		return out, err
	}
	for _, p := range pods {
		if hasStarted(p) {
			out.done = append(out.done, fmt.Sprintf("pod %s on node %s", p.Name, p.Spec.NodeName))
			continue
		}
		events, err := eventsOf(ctx, e, p.Namespace, "Pod", p.Name, p.UID)
		if err != nil {
			return out, err
		}
		said := eventMessage(causes(events), "FailedMount")
		if said == "" || (mountCause(said) == elseFailed && !strings.Contains(said, nfsServer(e))) { // about another volume
			out.waiting = append(out.waiting, p)
			continue
		}
		out.faults = append(
			out.faults, mountFault{p.Namespace + "/" + p.Name, p.Spec.NodeName, causeLine(said), mountCause(said)},
		)
	}
	return out, nil
}

// causes omits the kubelet's summary events if another event gives the cause of a failed mount.
func causes(events []*corev1.Event) []*corev1.Event {
	out := slices.DeleteFunc(slices.Clone(events), func(v *corev1.Event) bool {
		return strings.HasPrefix(v.Message, mountSummary)
	})
	if eventMessage(out, "FailedMount") == "" {
		return events
	}
	return out
}

// mountingPods returns the provisioner's pods and this link's test pods.
func mountingPods(ctx context.Context, e steps.Env) ([]*corev1.Pod, error) {
	pods, err := check.List[corev1.Pod](ctx, e.Cluster, check.Pods, trialNamespace(e), e.OwnedBy("claim-pods"))
	if err != nil {
		return nil, err
	}
	p, err := theProvisioner(ctx, e)
	if err != nil || p == nil {
		return pods, err
	}
	own, err := check.PodsOf(ctx, e.Cluster, p.Deployment)
	return slices.Concat(own, pods), err
}

// hasStarted reports whether a container of the pod has started. Containers start only when all
// volumes of the pod are mounted.
func hasStarted(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil
	})
}

func lastLine(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	return lines[len(lines)-1]
}

func nfsServer(e steps.Env) string { return e.Answers.Text("nfs.server") }
func nfsExported(e steps.Env) string {
	return nfsServer(e) + ":" + e.Answers.Text("nfs.path")
}

func nfsPort(ctx context.Context, e steps.Env) steps.Result {
	at := net.JoinHostPort(nfsServer(e), "2049")
	took, err := tracked.Look(ctx, "tcp/"+at, 30*time.Second, func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return probe.TCP(ctx, at)
	})
	if err == nil {
		return steps.Passed("%s answers in %d ms. The nodes reach the server over another route", at, took.Milliseconds())
	}
	if ctx.Err() != nil {
		return steps.Errored(err)
	}
	fix := fmt.Sprintf(
		"on a machine in the nodes' network: nc -vz %s 2049\n# on the server: sudo systemctl status nfs-server && sudo ss "+
			"-ltn 'sport = :2049'",
		nfsServer(e),
	)
	seen, mountErr := mountsOf(ctx, e)
	switch {
	case mountErr == nil && len(seen.done) > 0:
		return steps.Warned(
			fmt.Sprintf(
				"no connection to %s from this machine (%s), but %s has mounted the export", at, failure.Explain(err), seen.done[0],
			),
			"no action is needed if a firewall intentionally blocks this machine; otherwise "+fix,
		)
	case errors.Is(err, syscall.ECONNREFUSED):
		return steps.Failed("nothing listens on "+at, fix)
	}
	return steps.Failed("no connection to "+at+": "+failure.Explain(err), fix)
}

func nfsExport(ctx context.Context, e steps.Env) steps.Result {
	seen, err := mountsOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, f := range seen.faults {
		if f.cause != noHelper {
			return steps.Failed(
				fmt.Sprintf("pod %s on node %s cannot mount %s: %s", f.pod, f.node, nfsExported(e), f.message),
				mountFix(e, f.cause),
			)
		}
	}
	switch {
	case len(seen.done) > 0:
		return steps.Passed("%s has mounted %s. Other nodes were not tested", seen.done[0], nfsExported(e))
	case len(seen.faults) > 0:
		return steps.Skipped("node %s has no NFS mount helper (see check nfs-mount-helper)", seen.faults[0].node)
	case len(seen.waiting) > 0:
		p := seen.waiting[0]
		return steps.Waits(
			p.CreationTimestamp.Time, "pod %s/%s has not mounted the export yet", p.Namespace, p.Name,
		).Or(e.Kubectl() + " -n " + p.Namespace + " describe pod " + p.Name + "\n# " + manualMount(e))
	}
	return steps.Skipped(
		"no pod has tried to mount %s yet, and this machine cannot test mounts for the nodes. showmount -e %s lists the "+
			"NFS 3 exports",
		nfsExported(e), nfsServer(e),
	)
}

func nfsHelper(ctx context.Context, e steps.Env) steps.Result {
	seen, err := mountsOf(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	for _, f := range seen.faults {
		if f.cause == noHelper {
			return steps.Failed(fmt.Sprintf("node %s has no mount.nfs: pod %s reports %q", f.node, f.pod, f.message),
				"use a node image with mount.nfs (Ubuntu: nfs-common, Photon OS: nfs-utils). To see which image the nodes have: "+
					e.Kubectl()+" get nodes -o wide")
		}
	}
	if len(seen.done) > 0 {
		return steps.Passed("%s has mounted NFS", seen.done[0])
	}
	return steps.Skipped("no pod has mounted NFS yet")
}

// exportLine returns the line of /etc/exports that allows the guest to mount the directory. The
// line contains the option insecure, because NAT uses source ports above 1023.
func exportLine(e steps.Env) string {
	networks := e.Answers.List("nfs.networks")
	if len(networks) == 0 {
		networks, _ = e.Own.List("node-addresses")
	}
	if len(networks) == 0 {
		networks = []string{"CIDR"}
	}
	line := e.Answers.Text("nfs.path")
	for _, n := range networks {
		line += " " + n + "(rw,sync,no_subtree_check,insecure,no_root_squash)"
	}
	return line
}

// exportFix returns the fix for the NFS server's admin.
func exportFix(e steps.Env) string {
	why := "with NSX, use the Supervisor's Egress CIDRs: vSphere Client > Hosts and Clusters > the cluster > Configure " +
		"> Namespaces > Network > Workload Network"
	if len(e.Answers.List("nfs.networks")) == 0 {
		why = "these are the nodes' own addresses; " + why + " (set nfs.networks)"
	}
	return fmt.Sprintf(
		"on the NFS server: echo %s | sudo tee -a /etc/exports && sudo exportfs -ra    # %s\n# %s",
		steps.Quoted(exportLine(e)), why, manualMount(e),
	)
}

// manualMount returns the troubleshooting commands from the published guide.
func manualMount(e steps.Env) string {
	options := ""
	if list := e.Answers.List("nfs.options"); len(list) > 0 {
		options = "-o " + strings.Join(list, ",") + " "
	}
	return fmt.Sprintf(
		"the server's log: sudo journalctl --since=-15min | grep -iE 'mountd|nfsd'; manually, from a machine that the "+
			"export allows: sudo mount -t nfs %s%s /mnt",
		options, steps.Quoted(nfsExported(e)),
	)
}

func mountFix(e steps.Env, cause string) string {
	switch cause {
	case noExport:
		return exportFix(e)
	case noFolder:
		return fmt.Sprintf(
			"on the NFS server: sudo exportfs -v | grep %s && ls -ld %s    # directories below the export must be mountable, "+
				"too; or set nfs.path",
			steps.Quoted(e.Answers.Text("nfs.path")), steps.Quoted(e.Answers.Text("nfs.path")),
		)
	case noWay:
		return fmt.Sprintf(
			"on a machine in the nodes' network: nc -vz %s 2049    # check the firewall, the route and the name\n# %s",
			nfsServer(e),
			manualMount(e),
		)
	case noVersion:
		return fmt.Sprintf(
			"on the NFS server: cat /proc/fs/nfsd/versions    # then set nfs.options to nfsvers=VERSION: carrick %s",
			e.LinkFile(),
		)
	}
	return manualMount(e)
}
