package vsphere

import (
	"context"
	"slices"
	"strings"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// nfsChart is the name of upstream's chart, and the default name of its release.
const nfsChart = "nfs-subdir-external-provisioner"

func nfs() steps.Step {
	return steps.Step{
		Name: "nfs", Title: "NFS provisioner",
		Map: steps.MapRow{Local: "NFS provisioner"},
		Why: "The provisioner creates a directory on the NFS server for each claim with the provisioner's StorageClass, " +
			"and nodes mount that directory. The export must allow root and the addresses from which the guest's nodes reach " +
			"the server, because the provisioner creates directories as root. The published guide's chart " +
			"(stable/nfs-client-provisioner) no longer exists, and its image creates no volumes from Kubernetes 1.20 on.",
		When: usesNFS,
		Ask:  nfsQuestions(),
		Facts: []steps.Fact{
			{Name: "nfs-there", Title: "the NFS provisioner that the answers configure", On: steps.Local, Learn: nfsThere},
			{Name: "node-addresses", Title: "the addresses of the nodes", On: steps.Local, Learn: nodeAddressesForNFS},
		},
		Actions: []steps.Action{
			{
				Name: "nfs-namespace", Title: "Create the provisioner's namespace", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster", "native-rwx"}, When: installsNFS,
				Doer: provisionerSpace{provisionerPrerequisite{action.Manifest{File: "nfs-namespace.yaml"}}},
			},
			{
				Name: "nfs-psp", Title: "Allow the provisioner's pod to use the PodSecurityPolicy", On: steps.Local,
				Reads: storageReads,
				Needs: []string{"guest-cluster"}, When: installsUnderPSP,
				Doer: provisionerPrerequisite{action.Manifest{File: "psp-space.yaml", Each: eachSpace(nfsSpace)}},
			},
			{
				Name: "nfs-chart", Title: "Install the NFS provisioner and its StorageClass", On: steps.Local, Reads: storageReads,
				Needs: []string{"guest-cluster", "native-rwx"}, First: []string{"nfs-port"}, When: installsNFS,
				Doer: provisionerChart{action.Chart{
					Release: "${answers.nfs.release}", Namespace: "${answers.nfs.namespace}", Chart: nfsChart,
					Source: check.ChartSource("nfs.source", nfsChart), Version: check.AnswerText("nfs.version"), Values: nfsValues,
				}},
			},
		},
		Checks: nfsChecks(),
	}
}

func nfsSpace(e steps.Env) string { return e.Answers.Text("nfs.namespace") }

// installsNFS reports whether carrick installs or upgrades the provisioner. carrick does not change an unmanaged
// provisioner in namespace nfs.namespace, unless a Helm release installed it from another version of the same chart.
func installsNFS(e steps.Env) bool {
	there, err := e.Own.Value("nfs-there")
	// if the fact cannot be read, the plan reports why
	if !usesNFS(e) || err != nil || e.Exporting || factField(there, "made") != "" {
		return usesNFS(e)
	}
	version, same := strings.CutPrefix(factField(there, "chart"), nfsChart+"-")
	return factField(there, "release") != "" && same && version != e.Answers.Text("nfs.version")
}

func installsUnderPSP(e steps.Env) bool { return installsNFS(e) && pspBranch(e) }

// eachSpace returns a func for Manifest.Each that lists a single namespace. The manifest allows the pods of that
// namespace to use the PodSecurityPolicy.
func eachSpace(of func(steps.Env) string) func(context.Context, steps.Env) ([]any, error) {
	return func(_ context.Context, e steps.Env) ([]any, error) { return []any{of(e)}, nil }
}

// provisionerName returns the name by which the StorageClass refers to the provisioner. The name must be unique in the
// cluster.
func provisionerName(e steps.Env) string { return "cluster.local/" + e.Answers.Text("nfs.release") }

// nfsValues returns the chart's values. With mount options, the chart creates a PersistentVolume and a claim for the
// root of the export. Without mount options, the pod mounts the export directly, which violates the restricted pod
// security level. PodSecurityPolicies are disabled, because Kubernetes 1.25 removed them.
func nfsValues(_ context.Context, e steps.Env) (map[string]any, error) {
	a := e.Answers
	export := map[string]any{"server": a.Text("nfs.server"), "path": a.Text("nfs.path"), "reclaimPolicy": "Retain"}
	if options := a.List("nfs.options"); len(options) > 0 {
		export["mountOptions"] = options
	}
	out := map[string]any{
		"nfs": export,
		"storageClass": map[string]any{
			"create": true, "name": sharedClassName(e), "defaultClass": false, "provisionerName": provisionerName(e),
			"reclaimPolicy": a.Text("nfs.reclaim"), "archiveOnDelete": a.Bool("nfs.archive"),
			"accessModes": "ReadWriteOnce", "volumeBindingMode": "Immediate", "allowVolumeExpansion": true,
		},
		"podSecurityPolicy": map[string]any{"enabled": false},
	}
	if image := a.Text("nfs.image"); image != "" {
		repository, tag := splitImage(image)
		out["image"] = map[string]any{"repository": repository, "tag": tag}
	}
	return out, nil
}

// splitImage splits an image reference into repository and tag. The default tag is latest.
func splitImage(image string) (repository, tag string) {
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i], image[i+1:]
	}
	return image, "latest"
}

func nfsPermissions(e steps.Env) []permission.Rule {
	if !installsNFS(e) {
		if usesNFS(e) {
			return watching(nfsSpace(e))
		}
		return nil
	}
	ns := nfsSpace(e)
	return slices.Concat(
		check.ToApply(
			"", check.Namespaces, check.ClusterRoles, check.ClusterRoleBindings, check.StorageClasses, volumeKind,
		),
		check.ToApply(
			ns, check.Deployments, check.ServiceAccounts, check.Roles, check.RoleBindings, check.VolumeClaims, check.Secrets,
		),
		provisionerPermissions(ns), nodePermissions(), // RBAC lets users grant only permissions that they have
		watching(ns),
	)
}

// watching returns the permissions to monitor the provisioner in the given namespace.
func watching(namespace string) []permission.Rule {
	return slices.Concat(
		check.ToFollow(namespace, check.Pods, check.Events), check.Verbs("", "pods/log", namespace, "get"),
		check.Verbs("authorization.k8s.io", "subjectaccessreviews", "", "create"), // to test the ServiceAccount
	)
}

// nodePermissions returns the permissions to read nodes, which the chart also grants from 4.0.10 on. For a StorageClass
// with WaitForFirstConsumer, the provisioner's library reads the node that was selected for the claim
// (sig-storage-lib-external-provisioner v6.0.0: controller/controller.go).
func nodePermissions() []permission.Rule { return check.ToFollow("", check.Nodes) }

// provisionerPermissions returns the permissions that the provisioner requires, cluster-wide and in
// its own namespace (upstream's chart: clusterrole.yaml, role.yaml).
func provisionerPermissions(namespace string) []permission.Rule {
	return slices.Concat(
		check.To([]string{"get", "list", "watch", "create", "delete"}, "", volumeKind),
		check.To([]string{"get", "list", "watch", "update"}, "", check.VolumeClaims),
		check.ToFollow("", check.StorageClasses),
		check.To([]string{"create", "update", "patch"}, "", check.Events),
		check.To([]string{"get", "list", "watch", "create", "update", "patch"}, namespace, endpointsKind),
	)
}

var endpointsKind = check.ConfigMaps.GroupVersion().WithResource("endpoints")
