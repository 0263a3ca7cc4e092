package vsphere

import (
	"time"

	"carrick/steps"
)

// References of the checks.
const (
	mountCode = "kubernetes/kubernetes: pkg/volume/nfs, staging/src/k8s.io/mount-utils/mount_linux.go (the message of " +
		"a mount helper that is not there)"
	exportsPage = "https://man7.org/linux/man-pages/man5/exports.5.html (insecure, root_squash, subtree_check)"
	selfLink    = "kubernetes-sigs/nfs-subdir-external-provisioner: issue 25 (selfLink was empty, from Kubernetes 1.20 on)"
)

func nfsChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "nfs-port", Title: "The NFS server accepts connections", On: steps.Local, From: "this machine",
			Needs: []string{"signed-in"},
			Why: "NFS 4 needs only port 2049. Only a mount, not a connection from this machine, shows what firewalls allow " +
				"from the guest's nodes.",
			References: []string{page}, Run: nfsPort,
		},
		{
			Name: "nfs-export", Title: "The guest's nodes can mount the export", On: steps.Local,
			From: "events and pods of the guest", Needs: []string{"signed-in"}, Timeout: 10 * time.Minute,
			Why: "With NSX, nodes reach the server from the Supervisor's egress addresses, and an export to the nodes' " +
				"own network rejects all nodes.",
			References: []string{page, exportsPage}, Run: nfsExport,
		},
		{
			Name: "nfs-writes", Title: "The provisioner can write to the export", On: steps.Local,
			From: "claims and the provisioner's log", Needs: []string{"rwx-class", "provisioner-ready"},
			Why: "The provisioner creates directories as root, and root_squash, which most servers use, maps root to a " +
				"user without write permission.",
			References: []string{page, exportsPage, provisionerCode}, Run: nfsWrites,
		},
		{
			Name: "nfs-mount-helper", Title: "The nodes have the NFS mount helper", On: steps.Local,
			From: "events and pods of the guest", Needs: []string{"signed-in"},
			Why: "The kubelet runs mount.nfs on its node. Without that helper (nfs-common, nfs-utils), mounts fail " +
				"with misleading errors.",
			References: []string{mountCode}, Run: nfsHelper,
		},
		{
			Name: "provisioner-ready", Title: "The NFS provisioner runs a version that creates volumes", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "nfs-chart", Timeout: 5 * time.Minute,
			Why: "Otherwise claims stay Pending. The published quay.io/external_storage/nfs-client-provisioner creates " +
				"nothing since Kubernetes 1.20.",
			References: []string{page, selfLink, "helm/charts: issues 24163, 24455 (archived)"}, Run: provisionerReady,
		},
		{
			Name: "provisioner-name", Title: "The StorageClass refers to this provisioner", On: steps.Local,
			Needs: []string{"rwx-class", "provisioner-ready"}, FixedBy: "nfs-chart",
			Why: "A provisioner creates volumes only for StorageClasses with its PROVISIONER_NAME, and silently " +
				"ignores all others.",
			References: []string{provisionerCode}, Run: provisionerNamed,
		},
		{
			Name: "provisioner-rights", Title: "The provisioner is allowed to create volumes", On: steps.Local,
			Needs: []string{"provisioner-ready"}, FixedBy: "nfs-chart",
			Why:        "Without its roles the provisioner only logs forbidden errors, and claims stay Pending.",
			References: []string{chartSource}, Run: provisionerMay,
		},
		{
			Name: "provisioner-level", Title: "The provisioner's namespace has the level baseline", On: steps.Local,
			Needs: []string{"signed-in"}, FixedBy: "nfs-namespace",
			Why: "The provisioner's pod runs as root and mounts the export, which restricted rejects. Tanzu enforces " +
				"restricted by default from 1.26 on.",
			References: []string{
				levelsSource, chartSource, "https://kubernetes.io/docs/concepts/security/pod-security-standards/",
			}, Run: provisionerLevel,
		},
	}
}
