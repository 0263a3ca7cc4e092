package vsphere

import (
	"time"

	"carrick/steps"
)

// Where upstream says so.
const (
	mountCode = "kubernetes/kubernetes: pkg/volume/nfs, staging/src/k8s.io/mount-utils/mount_linux.go (the message of " +
		"a mount helper that is not there)"
	exportsPage = "https://man7.org/linux/man-pages/man5/exports.5.html (insecure, root_squash, subtree_check)"
	selfLink    = "kubernetes-sigs/nfs-subdir-external-provisioner: issue 25 (selfLink was empty, from Kubernetes 1.20 on)"
)

func nfsChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "nfs-port", Title: "the NFS server takes connections", On: steps.Local, From: "this machine",
			Needs: []string{"signed-in"},
			Why: "NFS 4 takes port 2049 alone. This looks from this machine: what a firewall lets through from the " +
				"guest's nodes, only a mount there shows",
			References: []string{page}, Run: nfsPort,
		},
		{
			Name: "nfs-export", Title: "the guest's nodes may mount the export", On: steps.Local,
			From: "events and pods of the guest", Needs: []string{"signed-in"}, Timeout: 10 * time.Minute,
			Why: "the server sees the nodes by the Supervisor's egress addresses where NSX is used: an export to the " +
				"nodes' own network refuses all of them",
			References: []string{page, exportsPage}, Run: nfsExport,
		},
		{
			Name: "nfs-writes", Title: "the provisioner may write into the export", On: steps.Local,
			From: "claims and the provisioner's log", Needs: []string{"rwx-class", "provisioner-ready"},
			Why: "it makes folders as root: a server with root_squash, as most have it, makes nobody of root, who may " +
				"write nothing",
			References: []string{page, exportsPage, provisionerCode}, Run: nfsWrites,
		},
		{
			Name: "nfs-mount-helper", Title: "the nodes can mount NFS at all", On: steps.Local,
			From: "events and pods of the guest", Needs: []string{"signed-in"},
			Why: "the kubelet calls mount.nfs of its node: an image without it (nfs-common, nfs-utils) mounts nothing, " +
				"and says so in words that are about something else",
			References: []string{mountCode}, Run: nfsHelper,
		},
		{
			Name: "provisioner-ready", Title: "the NFS provisioner runs, in a generation that makes volumes", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "nfs-chart", Timeout: 5 * time.Minute,
			Why: "claims wait for it and say no more than that. The published guide's image " +
				"(quay.io/external_storage/nfs-client-provisioner) needs a field that Kubernetes has not had since 1.20: it " +
				"runs, and makes nothing",
			References: []string{page, selfLink, "helm/charts: issues 24163, 24455 (archived)"}, Run: provisionerReady,
		},
		{
			Name: "provisioner-name", Title: "the class names this provisioner", On: steps.Local,
			Needs: []string{"rwx-class", "provisioner-ready"}, FixedBy: "nfs-chart",
			Why: "a provisioner makes volumes of the classes that have its PROVISIONER_NAME, and passes by all " +
				"others in silence",
			References: []string{provisionerCode}, Run: provisionerNamed,
		},
		{
			Name: "provisioner-rights", Title: "the provisioner may make volumes", On: steps.Local,
			Needs: []string{"provisioner-ready"}, FixedBy: "nfs-chart",
			Why:        "without its roles it logs forbidden, again and again, and claims wait",
			References: []string{chartSource}, Run: provisionerMay,
		},
		{
			Name: "provisioner-level", Title: "the provisioner's namespace has the level baseline", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "nfs-namespace",
			Why: "its pod runs as root and may have the export as a volume, which restricted refuses, and that is what " +
				"a Tanzu release from 1.26 on holds a namespace without a level to",
			References: []string{
				levelsSource, chartSource, "https://kubernetes.io/docs/concepts/security/pod-security-standards/",
			}, Run: provisionerLevel,
		},
	}
}
