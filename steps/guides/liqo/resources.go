package liqo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

func resources() steps.Step {
	sliced := func(name, value string) func(steps.Env) (any, string) {
		return asItExists("slice", name, value, "Liqo's default")
	}
	return steps.Step{
		Name: "resources", Title: "Resources", When: servesConsumer,
		Map: steps.MapRow{Local: "ResourceSlice, node", Remote: "granted resources", Arrow: steps.Remote},
		Why: "The consumer requests resources in a ResourceSlice, which Liqo copies to the provider. Once the provider " +
			"accepts it, a virtual node represents the provider on the consumer.",
		Ask: []steps.Question{
			{
				Key: "resources.cpu", Title: "CPUs to request", Kind: steps.Quantity,
				Help: "A quantity, such as 4. Liqo grants any amount of the ResourceSlice class default; carrick compares the " +
					"amount with the free CPUs on the provider.",
				Default: sliced("cpu", "4"),
			},
			{
				Key: "resources.memory", Title: "Memory to request", Kind: steps.Quantity, Help: "A quantity, such as 8Gi.",
				Default: sliced("memory", "8Gi"),
			},
			{
				Key: "resources.pods", Title: "Pods to request", Kind: steps.Quantity, Opt: true,
				Help: "A number of pods. Empty: the provider's default, 110.", Default: sliced("pods", ""),
			},
			{
				Key: "resources.other", Title: "Other resources to request", Kind: steps.Label, Many: true, Opt: true,
				Help: "A resource and its amount, such as nvidia.com/gpu=1.", Default: moreAsItExists,
			},
			{
				Key: "resources.class", Title: "ResourceSlice class", Kind: steps.Name,
				Help: "Liqo grants requests of the class default. Any other class requires a controller that the provider's " +
					"admin has installed.",
				Default: sliced("class", "default"),
			},
		},
		Facts: []steps.Fact{
			{Name: "slice", Title: "the existing ResourceSlice", On: steps.Local, Shared: true, Learn: sliceFact},
			{
				Name: "slice-warning", Title: "Liqo's last warning about the copy of the ResourceSlice", On: steps.Remote,
				Shared: true,
				Learn:  sliceWarning,
			},
		},
		Actions: []steps.Action{{
			Name: "resource-slice", Title: "Request resources", On: steps.Local,
			Needs: []string{"control-plane", "peer/tenant"}, First: []string{"peer/signs-certificates"},
			Doer: sliceDoer{vanishing{action.Manifest{File: "resource-slice.yaml", Values: action.Values{
				"name":      sliceName,
				"resources": requested,
			}}, sliceChildren, []childKind{{namespaceMaps, "NamespaceMap"}, {virtualNodes, "VirtualNode"}}}},
		}},
		Checks: resourceChecks(),
	}
}

// ownSlices returns the ResourceSlices for the provider in the tenant namespace.
func ownSlices(ctx context.Context, e steps.Env) ([]*unstructured.Unstructured, error) {
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	all, err := living(ctx, e, resourceSlices, tenantNamespace(e), "")
	if err != nil {
		return nil, err
	}
	return slicesFor(all, tenantNamespace(e), id), nil
}

// slicesFor returns the slices in namespace whose labels or spec contain the provider's cluster id. One match is
// enough, because a missing label is a common mistake. slicesFor excludes the slices that the provider's Liqo copied
// here if the provider is also a consumer of this cluster.
func slicesFor(all []*unstructured.Unstructured, namespace, id string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, s := range all {
		labels := s.GetLabels()
		if s.GetNamespace() != namespace || labels[replicatedLabel] == "true" {
			continue
		}
		if labels[remoteIDLabel] == id || labels[destinationLabel] == id || text(s, "spec", "providerClusterID") == id {
			out = append(out, s)
		}
	}
	return out
}

// ownSlice returns the slice of the peering, or nil if there is none.
func ownSlice(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	found, err := ownSlices(ctx, e)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	id, err := peerID(e)
	if err != nil {
		return nil, err
	}
	name := existingName(found, id)
	for _, s := range found {
		if s.GetName() == name {
			return s, nil
		}
	}
	return nil, nil
}

func sliceName(ctx context.Context, e steps.Env) (any, error) {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return nil, err
	}
	if s != nil {
		return s.GetName(), nil
	}
	return e.Peer.Value("cluster-id")
}

// sliceFact describes the existing slice:
//
//   - name, class: its name and ResourceSlice class
//   - made: its creation time in RFC 3339
//   - cpu, memory, pods: the requested amounts
//   - more: the other requested resources, each as NAME=AMOUNT, like the answer resources.other
func sliceFact(ctx context.Context, e steps.Env) (any, error) {
	s, err := ownSlice(ctx, e)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, steps.Absent("the consumer has requested no resources yet")
	}
	m := map[string]any{"name": s.GetName()}
	set(m, "class", text(s, "spec", "class"))
	if made := s.GetCreationTimestamp(); !made.IsZero() {
		m["made"] = made.UTC().Format(time.RFC3339)
	}
	var more []string
	asked := sliceResources(s)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		switch name {
		case "cpu", "memory", "pods":
			set(m, name, asked[name])
		default:
			more = append(more, name+"="+asked[name])
		}
	}
	if len(more) > 0 {
		m["more"] = more
	}
	return m, nil
}

// sliceWarning returns the newest Warning event for the provider's copy of the consumer's slice. If Liqo's controllers
// deny the slice, only this event gives the reason.
//
// Source: liqotech/liqo pkg/liqo-controller-manager/authentication/remoteresourceslice-controller
// (handleAuthenticationStatus: AuthParamsFailed, InvalidCSR), 557c199cf.
func sliceWarning(ctx context.Context, e steps.Env) (any, error) {
	name := e.Peer.FieldText("slice", "name")
	if name == "" {
		return nil, steps.Absent("the consumer has requested no resources yet")
	}
	said := check.Warning(ctx, e.Cluster, tenantNamespace(e), "ResourceSlice", name)
	if said == "" {
		return nil, steps.Absent("Liqo has no warning about the request")
	}
	return clean.Text(said), nil
}

func sliceResources(s *unstructured.Unstructured) map[string]string {
	return quantities(s, "spec", "resources")
}

func quantities(o *unstructured.Unstructured, fields ...string) map[string]string {
	m, _, _ := unstructured.NestedMap(o.Object, fields...)
	out := map[string]string{}
	for name, v := range m {
		out[name] = quantityText(v)
	}
	return out
}

// moreAsItExists returns the resources other than CPU, memory and pods that the existing slice requests.
func moreAsItExists(e steps.Env) (any, string) {
	if more := e.Own.Field("slice", "more"); more != nil {
		return more, "from the ResourceSlice"
	}
	return nil, ""
}

// requested returns spec.resources for the slice. If a value in the existing slice is a number, it stays a number,
// because the API server would treat a string as a change.
func requested(ctx context.Context, e steps.Env) (any, error) {
	out := map[string]any{"cpu": e.Answers.Text("resources.cpu"), "memory": e.Answers.Text("resources.memory")}
	if pods := e.Answers.Text("resources.pods"); pods != "" {
		out["pods"] = pods
	}
	for _, more := range e.Answers.List("resources.other") {
		name, amount, _ := strings.Cut(more, "=")
		out[name] = amount
	}
	s, err := ownSlice(ctx, e)
	if err != nil || s == nil {
		return out, err
	}
	stands, _, _ := unstructured.NestedMap(s.Object, "spec", "resources")
	for name, v := range stands {
		if quantityText(v) == out[name] {
			out[name] = v
		}
	}
	return out, nil
}

// quantityText converts a quantity to a string. YAML can contain a quantity as a number, such as 4.
func quantityText(v any) string { return strings.TrimSpace(fmt.Sprint(v)) }

// otherAmounts lists the differences between actual and intended amounts, such as "cpu: 4 instead of 8".
func otherAmounts(are, meant map[string]string) []string {
	both := maps.Clone(meant)
	maps.Copy(both, are)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(both)) {
		is, err1 := resource.ParseQuantity(are[name])
		want, err2 := resource.ParseQuantity(meant[name])
		if are[name] != meant[name] && (err1 != nil || err2 != nil || is.Cmp(want) != 0) {
			out = append(out, fmt.Sprintf("%s: %s instead of %s", name, cmp.Or(are[name], "none"), cmp.Or(meant[name], "none")))
		}
	}
	return out
}
