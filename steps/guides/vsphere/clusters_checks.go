package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// References of the checks.
const (
	tkcSource     = "https://docs.vmware.com/en/VMware-vSphere/8.0/vsphere-with-tanzu-tkg/GUID-69E52B31-6DEC-412D-B60E-FE733156F708.html (ClusterClass variables)"
	defaultSource = "kubernetes/kubernetes: pkg/volume/util/storageclass.go (the newest default class is the one " +
		"that counts)"
	levelsSource = "https://docs.vmware.com/en/VMware-vSphere/8.0/vsphere-with-tanzu-tkg/GUID-B57DA879-89FD-4C34-8ADB-B21CB3AE67F6.html (TKr 1.25 warns, 1.26 enforces restricted)"
)

func clusterChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "guest-cluster", Title: "The guest's context points to a guest cluster", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "A login without a guest cluster name selects the Supervisor, which stores these objects in the wrong place " +
				"or rejects them.",
			References: []string{page, tkcSource}, Run: guestCluster,
		},
		{
			Name: "supervisor-cluster", Title: "The Supervisor's context points to this guest's Supervisor",
			On: steps.Remote, Needs: []string{"signed-in"},
			Why:        "If the context points to another cluster, carrick reads declarations that do not apply to this guest.",
			References: []string{tkcSource}, Run: supervisorCluster,
		},
		{
			Name: "default-class", Title: "The guest has one default StorageClass", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Claims without a StorageClass get the newest default StorageClass. The Supervisor reverts a default " +
				"that was set in the guest.",
			References: []string{page, defaultSource}, Run: defaultClass,
		},
		{
			Name: "declared-class", Title: "The Supervisor declares the guest's default StorageClass",
			On: steps.Remote, Needs: []string{"supervisor-cluster"},
			Why: "The Supervisor's declaration takes precedence: the next reconcile silently reverts any other default " +
				"StorageClass in the guest.",
			References: []string{page, tkcSource}, Run: declaredClass,
		},
		{
			Name: "upgrade-crosses", Title: "No planned upgrade stops profile pods from starting", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Kubernetes 1.25 removes PodSecurityPolicies, and Tanzu enforces restricted by default from 1.26 on, " +
				"so profile pods would not start again.",
			References: []string{levelsSource, "https://kubernetes.io/docs/concepts/security/pod-security-admission/"},
			Run:        upgradeCrosses,
		},
		{
			Name: "tools", Title: "The published guide's tools are installed", On: steps.Local,
			Why: "The published guide requires zsh, go, cfssl and cfssljson, and calls an undefined command k instead " +
				"of kubectl.",
			References: []string{page},
			NotChecked: "carrick needs none of these tools: it creates certificates and applies manifests",
		},
	}
}

// asSupervisor returns the fact is-supervisor in f. known is false if the fact does not exist.
func asSupervisor(f steps.Facts) (is, known bool, err error) {
	v, err := f.Value("is-supervisor")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return false, false, nil
	}
	return v == true, err == nil, err
}

const supervisorSigns = "VirtualMachines or TanzuKubernetesClusters"

// swapped returns the fix for contexts that are assigned to the wrong sides.
func swapped(e steps.Env) string {
	return "assign each context to its side with carrick " + e.LinkFile() +
		" on the sides screen, or in the file: local is the guest, and remote is the Supervisor"
}

func guestCluster(_ context.Context, e steps.Env) steps.Result {
	own, _, err := asSupervisor(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	if !own {
		return steps.Passed(
			"the cluster serves neither %s, so it is not a Supervisor", strings.ReplaceAll(supervisorSigns, " or ", " nor "),
		)
	}
	if peer, known, _ := asSupervisor(e.Peer); known && !peer { // unknown: no swap can be detected
		return steps.Failed(
			"the cluster is a Supervisor (it serves "+supervisorSigns+
				"), but the other context's cluster is not a Supervisor: the contexts are swapped",
			swapped(e),
		)
	}
	return steps.Failed(
		"the cluster is a Supervisor (it serves "+supervisorSigns+"), but Kubeflow belongs in a guest cluster",
		"kubectl vsphere login --server=SERVER --tanzu-kubernetes-cluster-namespace=NAMESPACE "+
			"--tanzu-kubernetes-cluster-name=GUEST    # then select the context GUEST for the guest: carrick "+e.LinkFile(),
	)
}

func supervisorCluster(ctx context.Context, e steps.Env) steps.Result {
	own, _, err := asSupervisor(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	if !own {
		if peer, known, _ := asSupervisor(e.Peer); known && peer {
			return steps.Failed(
				"the cluster is not a Supervisor, but the guest's context points to one: the contexts are swapped", swapped(e),
			)
		}
		return steps.Failed("the cluster is not a Supervisor: it serves no "+supervisorSigns,
			"kubectl vsphere login --server=SERVER    # then select the context named after the server for the Supervisor, or "+
				"leave the Supervisor out: carrick "+e.LinkFile())
	}
	g, err := theGuest(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Failed(
			absent.Error(),
			fmt.Sprintf(
				"%s get %s.%s,%s.%s -A    # then set supervisor.namespace and supervisor.cluster: carrick %s", e.Kubectl(),
				tkcResource, tkcGroup, capiResource, capiGroup, e.LinkFile(),
			),
		)
	}
	if err != nil {
		return steps.Errored(err).Or(answer(e, "supervisor.namespace", "the guest's vSphere namespace"))
	}
	return sameGuest(e, g)
}

// sameGuest returns a warning if the address that the Supervisor declares for g differs from the address in the guest's
// context. Otherwise it returns Pass.
func sameGuest(e steps.Env, g guest) steps.Result {
	at := guestServer(e.Peer)
	switch {
	case at == "" || g.endpoint == "":
		return steps.Passed(
			"the Supervisor declares %s. One of the two addresses is unknown, so carrick cannot tell whether the guest's "+
				"context points to this cluster", g,
		)
	case at != g.endpoint:
		return steps.Warned(
			fmt.Sprintf(
				"%s has address %s on the Supervisor, but the guest's context points to %s, which is another cluster or another "+
					"address of this cluster",
				clean.Text(g.String()), clean.Text(g.endpoint), at,
			),
			"compare: "+e.PeerKubectl()+" get nodes    # and "+e.Kubectl()+" -n "+steps.Quoted(g.namespace)+
				" get virtualmachines; if the nodes differ, set supervisor.cluster",
		)
	}
	return steps.Passed("the Supervisor declares %s, with address %s", clean.Text(g.String()), at)
}

func defaultClass(ctx context.Context, e steps.Env) steps.Result {
	found, err := defaultClasses(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	declared := ""
	if v, err := e.Peer.Text("declared-class"); err == nil {
		declared = v
	}
	switch {
	case len(found) == 0:
		return steps.Failed(
			"the guest has no default StorageClass, so claims without a StorageClass stay Pending", declareFix(e, declared),
		)
	case len(found) > 1:
		return manyDefaults(e, found, declared)
	case declared != "" && found[0].Name != declared:
		return steps.Warned(
			fmt.Sprintf(
				"the default StorageClass is %s, but the Supervisor declares %s, which its next reconcile restores", found[0].Name,
				declared,
			),
			"keep the default StorageClass: step mutation sets the StorageClass of ReadWriteMany claims. To change "+
				"the default: "+declareFix(e, ""),
		)
	case found[0].Provisioner != vSphereCSI:
		return steps.Warned(
			fmt.Sprintf(
				"the default StorageClass is %s, with provisioner %s. In a Tanzu guest, the Supervisor overwrites the default "+
					"with its declaration",
				found[0].Name, clean.Text(found[0].Provisioner),
			),
			"keep the default StorageClass: step mutation sets the StorageClass of ReadWriteMany claims. To change the default: "+declareFix(e, ""),
		)
	}
	return steps.Passed(
		"%s, with provisioner %s. The Supervisor reverts changes to the default in the guest", found[0].Name,
		found[0].Provisioner,
	)
}

// declareFix returns the fix that declares a default StorageClass on the Supervisor. If class is
// "", the fix contains a placeholder.
func declareFix(e steps.Env, class string) string {
	if class == "" {
		class = "CLASS"
	}
	return "on the Supervisor: " + e.PeerKubectl() +
		" -n NAMESPACE edit tanzukubernetescluster GUEST    # spec.settings.storage.defaultClass: " + class +
		"; in a Cluster, the variable defaultStorageClass"
}

func manyDefaults(e steps.Env, found []*storagev1.StorageClass, declared string) steps.Result {
	var names, notes []string
	keep := declared
	for _, c := range found {
		names = append(names, c.Name)
		if keep == "" && c.Provisioner == vSphereCSI {
			keep = c.Name
		}
	}
	if !slices.Contains(names, keep) {
		keep = found[0].Name
	}
	for _, name := range names {
		if name != keep {
			notes = append(
				notes, fmt.Sprintf("%s annotate storageclass %s %s=false --overwrite", e.Kubectl(), name, defaultAnnotations[0]),
			)
		}
	}
	return steps.Failed(
		fmt.Sprintf(
			"%d StorageClasses are marked as default: %s. A claim without a StorageClass gets %s, the newest", len(found),
			check.Some(names),
			found[0].Name,
		),
		strings.Join(notes, "\n"),
	)
}

func declaredClass(ctx context.Context, e steps.Env) steps.Result {
	g, err := theGuest(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	edit := fmt.Sprintf(
		"%s -n %s edit %s %s    # %s", e.Kubectl(), steps.Quoted(g.namespace), g.resource, steps.Quoted(g.name), g.classField,
	)
	class, classes := clean.Text(g.class), clean.Text(strings.Join(g.classes, ", "))
	if class == "" {
		return steps.Failed(
			fmt.Sprintf("the Supervisor declares no default StorageClass for %s (%s)", clean.Text(g.String()), g.classField),
			edit,
		)
	}
	if len(g.classes) > 0 && !slices.Contains(g.classes, g.class) {
		return steps.Failed(
			fmt.Sprintf(
				"the Supervisor declares %s as default, but assigns only these StorageClasses to the guest: %s", class, classes,
			),
			edit,
		)
	}
	has, err := e.Peer.Text("default-class")
	switch absent := (*steps.AbsentError)(nil); {
	case errors.As(err, &absent):
		return steps.Passed("%s. The default StorageClass in the guest is unknown: %s", class, absent)
	case err != nil:
		return steps.Errored(err)
	case has != g.class:
		return steps.Warned(
			fmt.Sprintf(
				"the Supervisor declares %s, but the guest's default StorageClass is %s, which the next reconcile reverts", class,
				clean.Text(has),
			),
			edit,
		)
	}
	return steps.Passed("%s, as in the guest. Change the default only on the Supervisor", class)
}
