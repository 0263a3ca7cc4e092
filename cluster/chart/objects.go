package chart

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// Labels and annotations that Helm sets on every object of a release. Helm checks them before it deletes an object
// (helm.sh/helm/v4/pkg/action/validate.go).
const (
	managedBy        = "app.kubernetes.io/managed-by"
	managedByHelm    = "Helm"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
	resourcePolicy   = "helm.sh/resource-policy" // "keep": not deleted with the release
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// objects parses a stream of YAML documents. It replaces each List with its items.
func objects(manifest string) ([]*unstructured.Unstructured, error) {
	docs := releaseutil.SplitManifests(manifest)
	keys := make([]string, 0, len(docs))
	for k := range docs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if releaseutil.BySplitManifestsOrder([]string{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	var out []*unstructured.Unstructured
	for _, k := range keys {
		raw, err := yaml.YAMLToJSON([]byte(docs[k]))
		if err != nil {
			return nil, errors.New("an object is not valid YAML")
		}
		if string(raw) == "null" {
			continue // the document contains only comments
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			return nil, errors.New("an object has no apiVersion or kind")
		}
		if !o.IsList() {
			out = append(out, o)
			continue
		}
		err = o.EachListItem(func(item runtime.Object) error {
			out = append(out, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// placed returns the objects with their namespaces and with Helm's labels and annotations.
func placed(
	ctx context.Context, c *cluster.Cluster, objs, crds []*unstructured.Unstructured, name, namespace string,
) ([]*unstructured.Unstructured, error) {
	out, err := unmarked(ctx, c, objs, crds, name, namespace)
	for _, o := range out {
		own(o, name, namespace)
	}
	return out, err
}

// unmarked returns the objects with their namespaces, without Helm's labels and annotations. If the chart itself
// defines a kind, the CustomResourceDefinition determines whether the kind is namespaced.
func unmarked(
	ctx context.Context, c *cluster.Cluster, objs, crds []*unstructured.Unstructured, name, namespace string,
) ([]*unstructured.Unstructured, error) {
	brought := map[schema.GroupKind]bool{} // for each kind that the chart defines, whether it is namespaced
	for _, o := range slices.Concat(crds, objs) {
		if o.GroupVersionKind().GroupKind() == crdKind {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
			brought[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
		}
	}
	out := make([]*unstructured.Unstructured, 0, len(objs))
	for _, o := range objs {
		o = o.DeepCopy()
		namespaced, ours := brought[o.GroupVersionKind().GroupKind()]
		if !ours {
			var err error
			if _, namespaced, err = c.Resource(ctx, o.GroupVersionKind()); err != nil {
				return nil, fmt.Errorf("release %s creates a %s %s: %w", name, o.GetKind(), o.GetName(), err)
			}
		}
		switch {
		case !namespaced:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(namespace)
		}
		if err := fold(o); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// fold moves a Secret's stringData into its data. Otherwise the API server would record only stringData as owned by the
// manager. It would then report false conflicts and keep keys that the new version does not have.
func fold(o *unstructured.Unstructured) error {
	open, found := o.Object["stringData"].(map[string]any)
	if !found || o.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return nil
	}
	data, _ := o.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for k, v := range open {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s: the value of %q is not a string", describe(o), clean.Text(k))
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	delete(o.Object, "stringData")
	o.Object["data"] = data
	return nil
}

// own sets Helm's labels and annotations on an object.
func own(o *unstructured.Unstructured, name, namespace string) {
	put(o, map[string]string{managedBy: managedByHelm}, map[string]string{releaseName: name, releaseNamespace: namespace})
}

func put(o *unstructured.Unstructured, labels, annotations map[string]string) {
	l, a := o.GetLabels(), o.GetAnnotations()
	if l == nil {
		l = map[string]string{}
	}
	if a == nil {
		a = map[string]string{}
	}
	for k, v := range labels {
		l[k] = v
	}
	for k, v := range annotations {
		a[k] = v
	}
	o.SetLabels(l)
	o.SetAnnotations(a)
}

// owned reports whether an object's annotations assign it to the release.
func owned(o *unstructured.Unstructured, name, namespace string) bool {
	a := o.GetAnnotations()
	return a[releaseName] == name && a[releaseNamespace] == namespace
}

// describe returns the kind, namespace and name of an object for display: "Role renku-sessions/renku".
func describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() != "" {
		return clean.Text(o.GetKind() + " " + o.GetNamespace() + "/" + clean.Name(o.GetName()))
	}
	return clean.Text(o.GetKind() + " " + clean.Name(o.GetName()))
}

// same reports whether a and b have the same kind, namespace and name.
func same(a, b *unstructured.Unstructured) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.GetNamespace() == b.GetNamespace() &&
		a.GetName() == b.GetName()
}
