package liqopeer

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Phases of a NamespaceOffloading and of a namespace mapping.
const (
	ready             = "Ready"
	noClusterSelected = "NoClusterSelected"
	inProgress        = "InProgress"
	someFailed        = "SomeFailed"
	allFailed         = "AllFailed"
	terminating       = "Terminating"
	loopBackOff       = "CreationLoopBackOff"
)

// offload fakes the NamespaceOffloading controller on the consumer. If a selector is invalid, the remote namespaces
// remain and the NamespaceOffloading gets an event.
//
// Source: liqotech/liqo v1.2.0, pkg/liqo-controller-manager/offloading/namespaceoffloading-controller (Reconcile,
// enforceClusterSelector, deletionLogic, setNamespaceOffloadingStatus).
func (l *look) offload(ctx context.Context) error {
	wanted := map[string]map[string]string{} // provider → local namespace → remote namespace
	var all []error
	for i := range l.offloadings {
		o := &l.offloadings[i]
		if o.Name != offloadingName {
			continue
		}
		if o.DeletionTimestamp != nil {
			all = append(all, l.enable(ctx, o.Namespace, false))
			continue
		}
		if err := l.hold(ctx, offloadings, o, offloadingFinalizer); err != nil {
			all = append(all, err)
			continue
		}
		chosen, err := l.choose(o)
		if err != nil {
			all = append(all, l.warn(ctx, refer(o), "Invalid", "Invalid ClusterSelector: "+err.Error()))
			chosen = l.mapped(o)
		}
		for provider, name := range chosen {
			if wanted[provider] == nil {
				wanted[provider] = map[string]string{}
			}
			wanted[provider][o.Namespace] = name
		}
		if err == nil {
			all = append(all, l.enable(ctx, o.Namespace, offloadsPods(&o.Spec)))
		}
	}
	for i := range l.maps {
		all = append(all, l.want(ctx, &l.maps[i], wanted))
	}
	for i := range l.offloadings {
		all = append(all, l.tell(ctx, &l.offloadings[i]))
	}
	return errors.Join(all...)
}

// remoteName returns the name of the namespace on the provider.
func remoteName(o *offloading, consumer string) string {
	switch o.Spec.NamespaceMappingStrategy {
	case "EnforceSameName":
		return o.Namespace
	case "SelectedName":
		return o.Spec.RemoteNamespaceName
	}
	return o.Namespace + "-" + consumer
}

// offloadsPods reports whether pods in the namespace can run remotely. If so, the namespace needs the label that
// enable sets.
func offloadsPods(spec *offloadingSpec) bool { return spec.PodOffloadingStrategy != "Local" }

// mapped returns the remote names of the namespace by provider, for all existing mappings.
func (l *look) mapped(o *offloading) map[string]string {
	out := map[string]string{}
	for i := range l.maps {
		if m := &l.maps[i]; l.mapFor(m.Name) == m && m.Spec.DesiredMapping[o.Namespace] != "" {
			out[m.Name] = m.Spec.DesiredMapping[o.Namespace]
		}
	}
	return out
}

// choose returns the remote names of the namespace by provider, for all providers whose virtual nodes match the
// selector. An empty selector matches all nodes.
func (l *look) choose(o *offloading) (map[string]string, error) {
	chosen := map[string]string{}
	for i := range l.nodes {
		node := &l.nodes[i]
		if node.DeletionTimestamp != nil || l.mapFor(node.Labels[remoteClusterID]) == nil {
			continue
		}
		fits, err := selects(&o.Spec.ClusterSelector, node)
		if err != nil {
			return nil, err
		}
		if fits {
			chosen[node.Labels[remoteClusterID]] = remoteName(o, l.id)
		}
	}
	return chosen, nil
}

func selects(selector *corev1.NodeSelector, node *corev1.Node) (bool, error) {
	if len(selector.NodeSelectorTerms) == 0 {
		return true, nil
	}
	parsed, err := nodeaffinity.NewNodeSelector(selector)
	if err != nil {
		return false, err
	}
	return parsed.Match(node), nil
}

// want updates the desired namespaces in a NamespaceMap.
func (l *look) want(ctx context.Context, m *nsMap, wanted map[string]map[string]string) error {
	if l.mapFor(m.Name) != m || m.DeletionTimestamp != nil || maps.Equal(m.Spec.DesiredMapping, wanted[m.Name]) {
		return nil
	}
	desired := wanted[m.Name]
	if desired == nil {
		desired = map[string]string{}
	}
	m.Spec.DesiredMapping = desired
	return l.put(ctx, namespaceMaps, m, "/spec/desiredMapping", desired)
}

// tell updates a NamespaceOffloading's status. It removes the finalizer when no provider has a namespace left.
func (l *look) tell(ctx context.Context, o *offloading) error {
	if o.Name != offloadingName {
		return nil
	}
	now, left := l.fares(o)
	if err := report(ctx, l.site, offloadings, o, now); err != nil {
		return err
	}
	if o.DeletionTimestamp == nil || left > 0 || !held(o, offloadingFinalizer) {
		return nil
	}
	return l.release(ctx, offloadings, o, offloadingFinalizer)
}

// fares returns a NamespaceOffloading's status, and how many providers still have one of its namespaces. The finalizer
// remains until this number is 0 (liqotech/liqo v1.2.0, namespaceoffloading-controller: lifecycle.go and status.go).
func (l *look) fares(o *offloading) (offloadingStatus, int) {
	now := offloadingStatus{
		ObservedGeneration: o.Generation, RemoteNamespaceName: remoteName(o, l.id), Conditions: map[string][]condition{},
	}
	var required, good, bad, left int
	for i := range l.maps {
		m := &l.maps[i]
		if l.mapFor(m.Name) != m {
			continue
		}
		_, asked := m.Spec.DesiredMapping[o.Namespace]
		phase := m.Status.CurrentMapping[o.Namespace].Phase
		if asked || phase != "" { // even if an admin has declared the provider unreachable
			left++
		}
		if asked {
			required++
		}
		switch phase {
		case accepted:
			good++
		case loopBackOff:
			bad++
		}
		all := with(o.Status.Conditions[m.Name], chosenCondition(asked))
		if asked || phase != "" {
			all = with(all, readyCondition(phase))
		}
		now.Conditions[m.Name] = all
	}
	now.OffloadingPhase = phaseOf(o.DeletionTimestamp != nil, required, good, bad)
	if len(now.Conditions) == 0 {
		now.Conditions = nil
	}
	return now, left
}

func phaseOf(going bool, required, good, bad int) string {
	switch {
	case going:
		return terminating
	case required == 0:
		return noClusterSelected
	case good == required:
		return ready
	case bad == required:
		return allFailed
	case bad > 0:
		return someFailed
	}
	return inProgress
}

func chosenCondition(asked bool) condition {
	if asked {
		return condition{
			Type: "OffloadingRequired", Status: "True", Reason: "ClusterSelected", Message: "the selector chooses this cluster",
		}
	}
	return condition{
		Type: "OffloadingRequired", Status: "False", Reason: "ClusterNotSelected",
		Message: "the selector does not choose this cluster",
	}
}

func readyCondition(phase string) condition {
	switch phase {
	case accepted:
		return condition{Type: ready, Status: "True", Reason: "NamespaceCreated", Message: "the namespace exists"}
	case loopBackOff:
		return condition{
			Type: ready, Status: "False", Reason: loopBackOff, Message: "the provider cannot create the namespace",
		}
	case terminating:
		return condition{Type: ready, Status: "False", Reason: terminating, Message: "the namespace is being deleted"}
	}
	return condition{Type: ready, Status: "False", Reason: "Creating", Message: "the provider has not answered yet"}
}

// enable sets the label of a namespace whose pods can run remotely. If on is false, it removes the label.
func (l *look) enable(ctx context.Context, name string, on bool) error {
	n := l.namespace(name)
	if n == nil || (n.Labels[schedulingEnabled] == yes) == on {
		return nil
	}
	patch := `{"metadata":{"labels":{"` + schedulingEnabled + `":null}}}`
	if on {
		patch = `{"metadata":{"labels":{"` + schedulingEnabled + `":"true"}}}`
	}
	_, err := l.client.CoreV1().Namespaces().Patch(
		ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: controllerManager},
	)
	return ignoreMissing(err)
}
