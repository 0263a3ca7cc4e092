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
			Name: "guest-cluster", Title: "the guest's context leads to a guest cluster", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "a login without the name of a guest cluster leads to the Supervisor: there everything would be made " +
				"in the wrong place, or refused",
			References: []string{page, tkcSource}, Run: guestCluster,
		},
		{
			Name: "supervisor-cluster", Title: "the Supervisor's context leads to the Supervisor that has this guest",
			On: steps.Remote, Needs: []string{"signed-in"},
			Why:        "what another Supervisor, or the guest itself, declares says nothing of this guest",
			References: []string{tkcSource}, Run: supervisorCluster,
		},
		{
			Name: "default-class", Title: "the guest has one default storage class", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "claims without a class get the newest default one; the Supervisor's declaration is written into the " +
				"guest again and again, so a default class that was set there does not stay",
			References: []string{page, defaultSource}, Run: defaultClass,
		},
		{
			Name: "declared-class", Title: "the Supervisor declares the default storage class that the guest has",
			On: steps.Remote, Needs: []string{"supervisor-cluster"},
			Why: "what the Supervisor declares wins: another default class in the guest is taken back at the next " +
				"reconcile, without a word",
			References: []string{page, tkcSource}, Run: declaredClass,
		},
		{
			Name: "upgrade-crosses", Title: "no planned upgrade leaves the profiles' pods outside", On: steps.Local,
			Needs: []string{"signed-in"},
			Why: "Kubernetes 1.25 has no PodSecurityPolicies any more, and Tanzu releases from 1.26 on hold a " +
				"namespace without a level to restricted: pods of Kubeflow's profiles don't start again after the upgrade",
			References: []string{levelsSource, "https://kubernetes.io/docs/concepts/security/pod-security-admission/"},
			Run:        upgradeCrosses,
		},
		{
			Name: "tools", Title: "the published guide's tools are at hand", On: steps.Local,
			Why: "it asks for zsh, go, cfssl and cfssljson, and calls a command k that it does not define " +
				"(kubectl is meant)",
			References: []string{page},
			NotChecked: "none of them is needed: carrick makes certificates and applies manifests by itself",
		},
	}
}

// asSupervisor returns the fact is-supervisor; known is false if the side does not exist.
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
	return "give each context to its side, with carrick " + e.LinkFile() +
		" on the screen of sides, or in the file: local is the guest, remote the Supervisor"
}

func guestCluster(_ context.Context, e steps.Env) steps.Result {
	own, _, err := asSupervisor(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	if !own {
		return steps.Passed("it serves neither %s: no Supervisor", strings.ReplaceAll(supervisorSigns, " or ", " nor "))
	}
	if peer, known, _ := asSupervisor(e.Peer); known && !peer { // an unknown fact of the other side changes nothing
		return steps.Failed(
			"this is a Supervisor (it serves "+supervisorSigns+"), and the other context leads to none: the two are swapped",
			swapped(e),
		)
	}
	return steps.Failed("this is a Supervisor, it serves "+supervisorSigns+": nothing of Kubeflow belongs here",
		"kubectl vsphere login --server=SERVER --tanzu-kubernetes-cluster-namespace=NAMESPACE "+
			"--tanzu-kubernetes-cluster-name=GUEST    # then take the context GUEST for the guest: carrick "+e.LinkFile())
}

func supervisorCluster(ctx context.Context, e steps.Env) steps.Result {
	own, _, err := asSupervisor(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	if !own {
		if peer, known, _ := asSupervisor(e.Peer); known && peer {
			return steps.Failed("this is no Supervisor, and the guest's context leads to one: the two are swapped", swapped(e))
		}
		return steps.Failed("this is no Supervisor: it serves no "+supervisorSigns,
			"kubectl vsphere login --server=SERVER    # then take the context that is called as the server for the "+
				"Supervisor, or leave that side out: carrick "+e.LinkFile())
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
		return steps.Errored(err).Or(answer(e, "supervisor.namespace", "the guest's namespace of vSphere"))
	}
	return sameGuest(e, g)
}

// sameGuest compares the Supervisor's address of a guest with that of the guest's context.
func sameGuest(e steps.Env, g guest) steps.Result {
	at := guestServer(e.Peer)
	switch {
	case at == "" || g.endpoint == "":
		return steps.Passed(
			"it declares %s; whether that is the guest of the other context can't be told: an address is not known", g,
		)
	case at != g.endpoint:
		return steps.Warned(
			fmt.Sprintf(
				"%s answers at %s by the Supervisor, and the guest's context leads to %s: another cluster, or another way to it",
				clean.Text(g.String()), clean.Text(g.endpoint), at,
			),
			"compare: "+e.PeerKubectl()+" get nodes    # and "+e.Kubectl()+" -n "+steps.Quoted(g.namespace)+
				" get virtualmachines; else answer supervisor.cluster",
		)
	}
	return steps.Passed("it declares %s, which answers at %s", clean.Text(g.String()), at)
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
		return steps.Failed("there is no default storage class: claims without a class stay Pending", declareFix(e, declared))
	case len(found) > 1:
		return manyDefaults(e, found, declared)
	case declared != "" && found[0].Name != declared:
		return steps.Warned(
			fmt.Sprintf(
				"the default class is %s, and the Supervisor declares %s: that is set back at its next reconcile", found[0].Name,
				declared,
			),
			"leave the default class alone: the step mutation gives shared claims their class. To change it: "+declareFix(e, ""),
		)
	case found[0].Provisioner != vSphereCSI:
		return steps.Warned(
			fmt.Sprintf(
				"the default class is %s, of provisioner %s: in a Tanzu guest that does not stay, the Supervisor's declaration "+
					"is written over it",
				found[0].Name, clean.Text(found[0].Provisioner),
			),
			"leave the default class alone: the step mutation gives shared claims their class. To change it: "+declareFix(e, ""),
		)
	}
	return steps.Passed(
		"%s, of provisioner %s; who changes it in the guest has it set back by the Supervisor", found[0].Name,
		found[0].Provisioner,
	)
}

// declareFix explains where a default class is declared; class may be "".
func declareFix(e steps.Env, class string) string {
	if class == "" {
		class = "CLASS"
	}
	return "on the Supervisor: " + e.PeerKubectl() +
		" -n NAMESPACE edit tanzukubernetescluster GUEST    # spec.settings.storage.defaultClass: " + class +
		"; of a Cluster: the variable defaultStorageClass"
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
			"%d classes are the default one: %s; a claim without a class gets %s, the newest", len(found), check.Some(names),
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
			fmt.Sprintf("it declares no default storage class for %s (%s)", clean.Text(g.String()), g.classField), edit,
		)
	}
	if len(g.classes) > 0 && !slices.Contains(g.classes, g.class) {
		return steps.Failed(
			fmt.Sprintf(
				"%s is to be the default one, and it is not among the classes that the guest is given: %s", class, classes,
			),
			edit,
		)
	}
	has, err := e.Peer.Text("default-class")
	switch absent := (*steps.AbsentError)(nil); {
	case errors.As(err, &absent):
		return steps.Passed("%s; what the guest has is not known: %s", class, absent)
	case err != nil:
		return steps.Errored(err)
	case has != g.class:
		return steps.Warned(
			fmt.Sprintf(
				"it declares %s, and the guest's default class is %s: that is set back at the next reconcile", class,
				clean.Text(has),
			),
			edit,
		)
	}
	return steps.Passed("%s, as in the guest; to change it, change it here", class)
}
