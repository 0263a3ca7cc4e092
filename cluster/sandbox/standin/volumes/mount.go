package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/sandbox/standin"
	"carrick/cluster/sandbox/standin/shell"
)

// scriptWithin is the timeout for a script.
const scriptWithin = 5 * time.Minute

// mounted is a pod whose volumes are mounted.
type mounted struct {
	said standin.Text
	code *int32 // exit code; nil while the script runs
}

// volume is a pod's volume that this package mounts.
type volume struct {
	name    string // name in the pod
	object  string // name of the PersistentVolume; without one, the same as name
	server  string // NFS server; "" for a volume of pvCSI
	path    string
	options []string
}

// mountAll mounts the volumes of all pods, like the nodes' kubelets.
func (p *Player) mountAll(ctx context.Context, now *seen) error {
	there := map[types.UID]bool{}
	var faults []error
	for i := range now.pods {
		pod := &now.pods[i]
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			continue
		}
		volumes, all := p.volumesOf(now, pod)
		if len(volumes) == 0 || !all {
			continue
		}
		there[pod.UID] = true
		faults = append(faults, p.run(ctx, pod, volumes))
	}
	for uid := range p.mounts {
		if !there[uid] {
			delete(p.mounts, uid)
		}
	}
	return errors.Join(faults...)
}

// volumesOf returns the pod's volumes that this package mounts. all reports whether all of the pod's claims are bound.
func (p *Player) volumesOf(now *seen, pod *corev1.Pod) (out []volume, all bool) {
	all = true
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.NFS != nil:
			out = append(out, volume{name: v.Name, object: v.Name, server: v.NFS.Server, path: v.NFS.Path})
		case v.PersistentVolumeClaim != nil:
			made := now.boundTo(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
			switch {
			case made == nil:
				all = false
			case made.Spec.NFS != nil:
				out = append(
					out,
					volume{
						name: v.Name, object: made.Name, server: made.Spec.NFS.Server, path: made.Spec.NFS.Path,
						options: made.Spec.MountOptions,
					},
				)
			case made.Spec.CSI != nil && made.Spec.CSI.Driver == driver:
				out = append(out, volume{name: v.Name, object: made.Name})
			}
		}
	}
	return out, all
}

// boundTo returns the claim's volume, or nil if it is not bound.
func (now *seen) boundTo(namespace, name string) *corev1.PersistentVolume {
	for i := range now.claims {
		if c := &now.claims[i]; c.Namespace == namespace && c.Name == name && c.Status.Phase == corev1.ClaimBound {
			return now.volumes[c.Spec.VolumeName]
		}
	}
	return nil
}

// run updates a pod's status as a kubelet does.
func (p *Player) run(ctx context.Context, pod *corev1.Pod, volumes []volume) error {
	m := p.mounts[pod.UID]
	if m == nil && over(pod) {
		return nil
	}
	if m == nil {
		folders := map[string]string{}
		for _, v := range volumes {
			folder, err := p.mount(ctx, pod, v)
			if err != nil {
				return errors.Join(p.unmounted(ctx, pod, v, err), standin.Creating().Tell(ctx, p.client, pod))
			}
			folders[v.name] = folder
		}
		m = &mounted{}
		p.mounts[pod.UID] = m
		p.begin(pod, m, volumes, folders)
	}
	if m.code == nil {
		return standin.Running(true).Tell(ctx, p.client, pod)
	}
	return standin.Ended(*m.code).Tell(ctx, p.client, pod)
}

// over reports whether a pod has succeeded or failed.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// mountPoint returns the path where a kubelet mounts an NFS volume (pkg/volume/nfs/nfs.go).
func mountPoint(pod *corev1.Pod, v volume) string {
	return fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~nfs/%s", pod.UID, v.object)
}

// mount returns the directory for a volume. Its error is the output of mount(8).
func (p *Player) mount(ctx context.Context, pod *corev1.Pod, v volume) (string, error) {
	if v.server == "" {
		folder := filepath.Join(p.options.Dir, v.object)
		_, err := os.Stat(folder)
		return folder, err
	}
	if p.noHelper {
		//lint:ignore ST1005 verbatim message of mount(8), with its full stop
		return "", errors.New(
			"bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.",
		)
	}
	return p.options.Export.Mount(ctx, v.server, v.path, mountPoint(pod, v), v.options)
}

// unmounted records the event for a failed mount (pkg/volume/util/operationexecutor/operation_generator.go;
// k8s.io/mount-utils mount_linux.go, doMount). NFS is mounted without systemd-run.
func (p *Player) unmounted(ctx context.Context, pod *corev1.Pod, v volume, err error) error {
	at := mountPoint(pod, v)
	options := ""
	if len(v.options) > 0 {
		options = "-o " + strings.Join(v.options, ",") + " "
	}
	output := err.Error()
	if p.noHelper {
		output = "mount: " + at + ": " + output
	}
	return p.events.Say(ctx, p.client, standin.Event{
		Of: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion,
		},
		Component: "kubelet", Host: pod.Spec.NodeName, Type: corev1.EventTypeWarning, Reason: "FailedMount",
		Message: fmt.Sprintf(
			"MountVolume.SetUp failed for volume %q : mount failed: exit status 32\nMounting command: mount\nMounting "+
				"arguments: -t nfs %s%s:%s %s\nOutput: %s\n",
			v.object, options, v.server, v.path, at, output,
		),
	})
}

// begin starts the script of a pod that runs to completion. It does not run other commands.
func (p *Player) begin(pod *corev1.Pod, m *mounted, volumes []volume, folders map[string]string) {
	var where []string
	for _, v := range volumes {
		if v.server != "" {
			where = append(where, v.server+":"+v.path)
		}
	}
	if len(where) == 0 {
		where = append(where, "a volume of "+driver)
	}
	c := pod.Spec.Containers[0]
	script, ok := shell.Script(slices.Concat(c.Command, c.Args))
	if !ok || pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		fmt.Fprintf(&m.said, "stand-in: %s is mounted, but nothing runs in this pod\n", strings.Join(where, " and "))
		return
	}
	fmt.Fprintf(
		&m.said, "stand-in: no container runs; the sandbox runs its script in a directory that represents %s\n",
		strings.Join(where, " and "),
	)
	mounts := map[string]string{}
	for _, at := range c.VolumeMounts {
		if folder := folders[at.Name]; folder != "" {
			mounts[filepath.Clean(at.MountPath)] = filepath.Join(folder, filepath.Join("/", at.SubPath))
		}
	}
	box := &shell.Box{Mounts: mounts, Environment: standin.Environment(pod, c), Host: pod.Name, Out: &m.said}
	p.scripts.Go(func() {
		ctx, cancel := context.WithTimeout(p.life, scriptWithin)
		defer cancel()
		code := box.Run(ctx, script)
		p.mu.Lock()
		defer p.mu.Unlock()
		m.code = &code
	})
}

// Log returns the log of a provisioner, or of a pod with a volume that this package mounts.
func (p *Player) Log(namespace, name, container string) (string, bool) {
	pod, err := p.client.CoreV1().Pods(namespace).Get(p.life, name, metav1.GetOptions{})
	if err != nil || container != pod.Spec.Containers[0].Name {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.provisioners[pod.UID]; one != nil {
		return one.said.String(), true
	}
	if m := p.mounts[pod.UID]; m != nil {
		return m.said.String(), true
	}
	return "", false
}
