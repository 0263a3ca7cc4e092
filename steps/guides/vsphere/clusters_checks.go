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

// These are the sources of the rules that these checks apply.
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
			Why: "A login without a guest cluster name leads to the Supervisor, where objects would be created in the wrong " +
				"place or rejected.",
			References: []string{page, tkcSource}, Run: guestCluster,
		},
		{
			Name: "supervisor-cluster", Title: "The Supervisor's context points to this guest's Supervisor",
			On: steps.Remote, Needs: []string{"signed-in"},
			Why:        "The declarations of another Supervisor, or of the guest itself, do not apply to this guest.",
			References: []string{tkcSource}, Run: supervisorCluster,
		},
		{
			Name: "default-class", Title: "The guest has one default storage class", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Claims without a class get the newest default class, and the Supervisor reverts a default class that " +
				"was set in the guest.",
			References: []string{page, defaultSource}, Run: defaultClass,
		},
		{
			Name: "declared-class", Title: "The Supervisor declares the guest's default storage class",
			On: steps.Remote, Needs: []string{"supervisor-cluster"},
			Why: "The Supervisor's declaration wins: the next reconcile silently reverts another default class " +
				"in the guest.",
			References: []string{page, tkcSource}, Run: declaredClass,
		},
		{
			Name: "upgrade-crosses", Title: "No planned upgrade stops profile pods from starting", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Kubernetes 1.25 has no PodSecurityPolicies and Tanzu from 1.26 on enforces restricted by default, so " +
				"profile pods would not start again.",
			References: []string{levelsSource, "https://kubernetes.io/docs/concepts/security/pod-security-admission/"},
			Run:        upgradeCrosses,
		},
		{
			Name: "tools", Title: "The published guide's tools are installed", On: steps.Local,
			Why:        "The guide requires zsh, go, cfssl and cfssljson, and calls an undefined command k (kubectl is meant).",
			References: []string{page},
			NotChecked: "none of them is needed: carrick creates certificates and applies manifests",
		},
	}
}

// asSupervisor returns the fact is-supervisor. known is false if the side does not exist.
func asSupervisor(f steps.Facts) (is, known bool, err error) {
	v, err := f.Value("is-supervisor")
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return false, false, nil
	}
	return v == true, err == nil, err
}

const supervisorSigns = "VirtualMachines or TanzuKubernetesClusters"

// swapped explains how to assign contexts to the sides.
func swapped(e steps.Env) string {
	return "assign each context to its side with carrick " + e.LinkFile() +
		" on the sides screen, or in the file: local is the guest, remote is the Supervisor"
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
	if peer, known, _ := asSupervisor(e.Peer); known && !peer { // an unknown fact of the other side changes nothing
		return steps.Failed(
			"the cluster is a Supervisor (it serves "+supervisorSigns+
				"), but the other context's cluster is not: the contexts are swapped",
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
				"leave that side out: carrick "+e.LinkFile())
	}
	g, err := theGuest(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Failed(
			absent.Error(),
			fmt.Sprintf(
				"%s get %s.%s,%s.%s -A    # then answer supervisor.namespace and supervisor.cluster: carrick %s", e.Kubectl(),
				tkcResource, tkcGroup, capiResource, capiGroup, e.LinkFile(),
			),
		)
	}
	if err != nil {
		return steps.Errored(err).Or(answer(e, "supervisor.namespace", "the guest's vSphere namespace"))
	}
	return sameGuest(e, g)
}

// sameGuest compares the Supervisor's address of a guest with that of the guest's context.
func sameGuest(e steps.Env, g guest) steps.Result {
	at := guestServer(e.Peer)
	switch {
	case at == "" || g.endpoint == "":
		return steps.Passed(
			"the Supervisor declares %s. An address is unknown, so carrick cannot tell whether that is the guest of the "+
				"other context", g,
		)
	case at != g.endpoint:
		return steps.Warned(
			fmt.Sprintf(
				"%s has address %s on the Supervisor, but the guest's context points to %s: another cluster, or another "+
					"address of it",
				clean.Text(g.String()), clean.Text(g.endpoint), at,
			),
			"compare: "+e.PeerKubectl()+" get nodes    # and "+e.Kubectl()+" -n "+steps.Quoted(g.namespace)+
				" get virtualmachines; if they differ, answer supervisor.cluster",
		)
	}
	return steps.Passed("the Supervisor declares %s, which answers at %s", clean.Text(g.String()), at)
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
			"the guest has no default storage class, so claims without a class stay Pending", declareFix(e, declared),
		)
	case len(found) > 1:
		return manyDefaults(e, found, declared)
	case declared != "" && found[0].Name != declared:
		return steps.Warned(
			fmt.Sprintf(
				"the default class is %s, but the Supervisor declares %s, and restores it at its next reconcile", found[0].Name,
				declared,
			),
			"keep the default class: step mutation sets the class of shared claims. To change it: "+declareFix(e, ""),
		)
	case found[0].Provisioner != vSphereCSI:
		return steps.Warned(
			fmt.Sprintf(
				"the default class is %s, of provisioner %s. In a Tanzu guest the Supervisor overwrites it with its declaration",
				found[0].Name, clean.Text(found[0].Provisioner),
			),
			"keep the default class: step mutation sets the class of shared claims. To change it: "+declareFix(e, ""),
		)
	}
	return steps.Passed(
		"%s, of provisioner %s. The Supervisor reverts changes in the guest", found[0].Name,
		found[0].Provisioner,
	)
}

// declareFix explains where to declare a default class. class may be "".
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
				notes, fmt.Sprintf("%s annotate storageclass %s %s=false --overwrite", e.Kubectl(), name, defaultNotes[0]),
			)
		}
	}
	return steps.Failed(
		fmt.Sprintf(
			"%d classes are marked as default: %s. A claim without a class gets %s, the newest", len(found), check.Some(names),
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
			fmt.Sprintf("the Supervisor declares no default storage class for %s (%s)", clean.Text(g.String()), g.classField),
			edit,
		)
	}
	if len(g.classes) > 0 && !slices.Contains(g.classes, g.class) {
		return steps.Failed(
			fmt.Sprintf(
				"%s is declared as default, but is not among the classes assigned to the guest: %s", class, classes,
			),
			edit,
		)
	}
	has, err := e.Peer.Text("default-class")
	switch absent := (*steps.AbsentError)(nil); {
	case errors.As(err, &absent):
		return steps.Passed("%s. The guest's own default class is unknown: %s", class, absent)
	case err != nil:
		return steps.Errored(err)
	case has != g.class:
		return steps.Warned(
			fmt.Sprintf(
				"the Supervisor declares %s, but the guest's default class is %s, which the next reconcile reverts", class,
				clean.Text(has),
			),
			edit,
		)
	}
	return steps.Passed("%s, as in the guest. To change it, change it on the Supervisor", class)
}
