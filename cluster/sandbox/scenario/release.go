package scenario

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"carrick/cluster/sandbox/standin/charts"
)

// release represents a chart that a user installed with Helm. Scenarios declare it in their YAML, but it is never sent
// to an API server.
type release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Chart   string         `json:"chart"`
		Version string         `json:"version"`
		Values  map[string]any `json:"values"`
		// Before is the previous revision. It can have an older chart version. Only Helm's Secret remains of it.
		Before *struct {
			Version string         `json:"version"`
			Values  map[string]any `json:"values"`
		} `json:"before"`
		// If Only is not empty, only objects of these kinds exist, and the release Secret does not. This looks like
		// leftovers from an uninstalled chart.
		Only []string `json:"only"`
	} `json:"spec"`
}

// fails is the annotation of objects that never become ready. It is also valid on a Release. Stage.Seed does not wait
// for annotated objects.
const fails = "sandbox.carrick/fails"

func isRelease(o *unstructured.Unstructured) bool {
	return o.GetAPIVersion() == "sandbox.carrick/v1" && o.GetKind() == "Release"
}

// expand returns the objects that Helm would create for a Release.
func (p *Play) expand(o *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var r release
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &r, true); err != nil {
		return nil, err
	}
	if p.Charts == nil {
		return nil, errNoCharts
	}
	chart, err := p.Charts.Find(r.Spec.Chart, r.Spec.Version)
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", r.Name, err)
	}
	this := charts.Release{Name: r.Name, Namespace: r.Namespace, Values: r.Spec.Values, At: p.began}
	var old []*unstructured.Unstructured
	if before := r.Spec.Before; before != nil {
		that := this
		that.Values, that.Revision, that.Replaced = before.Values, 1, before.Version
		kept, err := chart.Before(that)
		if err != nil {
			return nil, err
		}
		old, this.Revision = append(old, kept), 2
	}
	objects, err := chart.Objects(this)
	objects = append(objects, old...)
	if err != nil || len(r.Spec.Only) == 0 {
		return objects, err
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return !slices.Contains(r.Spec.Only, o.GetKind())
	}), nil
}
