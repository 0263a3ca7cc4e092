package liqo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

const (
	replicatorSource = "liqotech/liqo: internal/crdReplicator/reflection/manager.go (LocalResourcesLabelSelector)"
	sliceSource      = "liqotech/liqo: pkg/liqo-controller-manager/authentication/remoteresourceslice-controller"
	silentIssue      = "https://github.com/liqotech/liqo/issues/3046"
)

func resourceChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "slice", Title: "The ResourceSlice is valid", On: steps.Local, FixedBy: "resource-slice",
			Needs: []string{"control-plane"},
			Why: "Liqo copies the ResourceSlice only with three labels and reports no error if one is missing; the published " +
				"guide shows two.",
			References: []string{silentIssue, replicatorSource, page},
			Run:        sliceSound,
		},
		{
			Name: "slice-copied", Title: "The ResourceSlice is copied to the provider", On: steps.Remote,
			Needs: []string{"tenant-namespace", "peer/slice"}, Timeout: 30 * time.Second,
			Why: "The consumer's Liqo copies the ResourceSlice with its kubeconfig, and only logs an error if the " +
				"provider rejects the copy.",
			References: []string{replicatorSource},
			Run:        sliceCopied,
		},
		{
			Name: "slice-accepted", Title: "The provider has accepted the request", On: steps.Local, FixedBy: "resource-slice",
			Needs: []string{"slice"}, Timeout: 60 * time.Second,
			Why:        "The provider decides on authentication and resources separately; a virtual node needs both.",
			References: []string{sliceSource},
			Run:        sliceAccepted,
		},
		{
			Name: "provider-capacity", Title: "The requested resources are free on the provider", On: steps.Remote,
			Needs: []string{"signed-in"},
			Why: "In the ResourceSlice class default, Liqo grants any amount without checking nodes; pods that do not " +
				"fit stay Pending on the provider.",
			References: []string{sliceSource},
			Run:        providerRoom,
		},
		{
			Name: "virtual-node", Title: "The virtual node is ready", On: steps.Local, FixedBy: "resource-slice",
			Needs: []string{"slice-accepted"}, Timeout: 2 * time.Minute,
			Why: "Pods for the provider are scheduled on the virtual node; Liqo reports Running as soon as its Deployment " +
				"exists, so carrick also checks the node.",
			References: []string{
				"liqotech/liqo: pkg/liqo-controller-manager/offloading/virtualnode-controller, pkg/virtualKubelet/liqoNodeProvider",
			},
			Run: virtualNodeReady,
		},
		{
			Name: "quota-free", Title: "The consumer's quota on the provider has room", On: steps.Remote,
			Needs:      []string{"slice-copied"},
			Why:        "The provider rejects pods that exceed the quota; finished pods count until they are deleted.",
			References: []string{"liqotech/liqo: pkg/webhooks/shadowpod", "https://github.com/liqotech/liqo/issues/3137"},
			Run:        quotaRoom,
		},
		{
			Name: "foreign-cluster", Title: "Liqo reports the peering as healthy", On: steps.Both,
			Needs: []string{"tenant-namespace"}, Timeout: balancerWithin,
			Why:        "The ForeignCluster summarizes the state of each Liqo module, as shown by liqoctl info.",
			References: []string{"liqotech/liqo: pkg/liqo-controller-manager/core/foreigncluster-controller/status.go"},
			Run:        foreignClusterHealthy,
		},
	}
}

func sliceSound(ctx context.Context, e steps.Env) steps.Result {
	id, err := peerID(e)
	if err != nil {
		return steps.Errored(err)
	}
	var all, nodes []*unstructured.Unstructured
	err = check.Together(
		func() (err error) { all, err = living(ctx, e, resourceSlices, "", ""); return err },
		func() (err error) { nodes, err = e.Cluster.List(ctx, check.Nodes, "", cluster.Selector{}); return err },
	)
	if err != nil {
		return steps.Errored(err)
	}
	ours := slicesFor(all, tenantNamespace(e), id)
	if len(ours) == 0 {
		return noSlice(e, id, all, nodes)
	}
	s := objectNamed(ours, existingName(ours, id))
	bad := append(sliceFaults(s, id), sliceNameFaults(s.GetName(), s, id, all, nodes)...)
	if len(bad) > 0 {
		return steps.Failed(
			fmt.Sprintf("ResourceSlice %s/%s %s", s.GetNamespace(), s.GetName(), strings.Join(bad, "; it ")), "",
		)
	}
	asked := fmt.Sprintf(
		"ResourceSlice %s/%s for %s requests %s", s.GetNamespace(), s.GetName(), id, amounts(sliceResources(s)),
	)
	for _, other := range ours {
		if lacks := sliceFaults(other, id); len(lacks) > 0 {
			return steps.Warned(
				fmt.Sprintf("%s. Another ResourceSlice, %s, has no effect: it %s", asked, other.GetName(), lacks[0]),
				fmt.Sprintf(
					"%s -n %s delete resourceslices.authentication.liqo.io %s", e.Kubectl(), other.GetNamespace(),
					steps.Quoted(other.GetName()),
				),
			)
		}
	}
	if !makesNode(s) {
		return steps.Warned(
			asked+", but lacks the annotation "+virtualNodeNote+": \"true\", so Liqo creates no virtual node for it",
			e.ApplyStep("resources"),
		)
	}
	return steps.Passed("%s", asked)
}

// noSlice returns the verdict for the case where the tenant namespace has no slice for the provider.
func noSlice(e steps.Env, id string, all, nodes []*unstructured.Unstructured) steps.Result {
	found := "the consumer has requested no resources from " + id + ": no ResourceSlice for this provider exists in " +
		tenantNamespace(e)
	for _, s := range all {
		if s.GetLabels()[replicatedLabel] == "true" {
			continue
		}
		switch {
		case s.GetNamespace() == tenantNamespace(e):
			found += fmt.Sprintf(
				". ResourceSlice %s in that namespace is for %q", s.GetName(), text(s, "spec", "providerClusterID"),
			)
		case len(slicesFor(all, s.GetNamespace(), id)) > 0:
			found += fmt.Sprintf(
				". ResourceSlice %s is in namespace %s, which Liqo ignores", s.GetName(), s.GetNamespace(),
			)
		}
	}
	if bad := sliceNameFaults(id, nil, id, all, nodes); len(bad) > 0 {
		return steps.Failed(
			found+". A new ResourceSlice named "+id+" "+strings.Join(bad, "; it "),
			"create a ResourceSlice with another name and the labels of the example: "+page,
		)
	}
	return steps.Failed(found, "")
}

// sliceFaults lists the wrong or missing labels and fields of a slice. Liqo silently ignores a slice with such a fault.
// id is the provider's cluster id.
func sliceFaults(s *unstructured.Unstructured, id string) []string {
	var out []string
	for _, label := range []struct{ key, want string }{
		{replicationLabel, "true"}, {destinationLabel, id}, {remoteIDLabel, id},
	} {
		got, ok := s.GetLabels()[label.key]
		switch {
		case !ok && label.key == replicationLabel:
			out = append(
				out,
				fmt.Sprintf(
					"lacks the label %s: %q (missing in the published guide), so Liqo silently ignores it",
					label.key, label.want,
				),
			)
		case !ok:
			out = append(out, fmt.Sprintf("lacks the label %s: %s", label.key, label.want))
		case got != label.want:
			out = append(out, fmt.Sprintf("has the label %s: %q, not %q", label.key, got, label.want))
		}
	}
	if got := text(s, "spec", "providerClusterID"); got != id {
		out = append(out, fmt.Sprintf("has spec.providerClusterID %q, not %q", got, id))
	}
	return out
}

// longestSlice is the maximum length of a slice's name. The common name in the slice's certificate consists of the
// slice's name, a dash and twelve digits. X.509 allows 64 characters.
const longestSlice = 51

// sliceNameFaults lists the problems with a slice's name, which is also the name of the virtual node. s is nil if the
// slice does not exist yet.
func sliceNameFaults(
	name string, s *unstructured.Unstructured, id string, all, nodes []*unstructured.Unstructured,
) []string {
	var out []string
	if len(name) > longestSlice {
		out = append(
			out, fmt.Sprintf("has a name of %d characters, but Liqo's certificate allows at most %d", len(name), longestSlice),
		)
	}
	if strings.Trim(name, "0123456789") == "" {
		out = append(out, "has a numeric name, which Liqo's templates cannot use")
	}
	for _, other := range all {
		if other.GetName() == name && other.GetNamespace() != namespaceOf(s) &&
			other.GetLabels()[replicationLabel] == "true" && other.GetLabels()[replicatedLabel] != "true" {
			out = append(
				out, "has the same name as a ResourceSlice in namespace "+other.GetNamespace()+", so Liqo rejects it",
			)
		}
	}
	if n := objectNamed(nodes, name); n != nil {
		switch of := n.GetLabels()[remoteIDLabel]; {
		case n.GetLabels()[nodeTypeLabel] != virtualNodeType:
			out = append(out, "has the name of a node of this cluster, "+name+", so Liqo cannot create its virtual node")
		case of != "" && of != id:
			out = append(out, "has the name of the virtual node of "+of)
		}
	}
	return out
}

func namespaceOf(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	return o.GetNamespace()
}

func objectNamed(all []*unstructured.Unstructured, name string) *unstructured.Unstructured {
	if i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// makesNode reports whether Liqo creates a virtual node for a slice.
func makesNode(s *unstructured.Unstructured) bool {
	v := s.GetAnnotations()[virtualNodeNote]
	return v != "" && !strings.EqualFold(v, "false")
}

// amounts formats resources for a sentence: "cpu 4, memory 8Gi".
func amounts(m map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name+" "+m[name])
	}
	return check.OrNone(out)
}
