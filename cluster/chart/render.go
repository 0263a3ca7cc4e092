package chart

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
)

// Rendered is the result of rendering a chart.
type Rendered struct {
	CRDs    []*unstructured.Unstructured // from the chart's crds directories; created first, never deleted by Helm
	Objects []*unstructured.Unstructured // in install order, with the namespaces in the templates
	Hooks   int                          // number of hook objects, which are not part of the release
	Notes   string                       // NOTES.txt, safe to display
	Unknown []string                     // values that were set and that the chart does not use

	chart    *chartv2.Chart // without disabled subcharts, as Helm stores it
	config   map[string]any
	manifest string
	hooks    []*release.Hook
}

// Render renders a chart without a cluster. Lookups find nothing, and the capabilities are those of the Kubernetes
// version that carrick is built with. Render validates the values against values.schema.json.
func Render(ctx context.Context, c *Chart, name, namespace string, values map[string]any) (*Rendered, error) {
	return render(ctx, nil, nil, c, options(name, namespace, 1), values)
}

func options(name, namespace string, revision int) common.ReleaseOptions {
	return common.ReleaseOptions{
		Name: name, Namespace: namespace, Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1,
	}
}

// render renders a chart. on is the cluster whose version and API resources the templates see. asked is the cluster
// that the template function lookup reads. Either can be nil.
func render(
	ctx context.Context, on, asked *cluster.Cluster, c *Chart, o common.ReleaseOptions, values map[string]any,
) (*Rendered, error) {
	quiet()
	if err := checkName(o.Namespace, o.Name); err != nil {
		return nil, err
	}
	r := &Rendered{}
	var err error
	if r.config, err = plain(values); err != nil {
		return nil, err
	}
	if r.chart, err = c.open(); err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	r.Unknown = unknown(r.chart, r.config)
	if err := chartutil.ProcessDependencies(r.chart, r.config); err != nil {
		return nil, fmt.Errorf("chart %s: its subcharts: %w", c.Name(), err)
	}
	caps, err := capabilities(ctx, on)
	if err != nil {
		return nil, err
	}
	if want := r.chart.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return nil, fmt.Errorf(
			"chart %s %s requires Kubernetes %s, but the cluster has %s", c.Name(), c.Version(), clean.Text(want),
			caps.KubeVersion.Version,
		)
	}
	const checkedHere = true // conform validates the values below without reading files or URLs
	all, err := util.ToRenderValuesWithSchemaValidation(r.chart, r.config, o, caps, checkedHere)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	merged, _ := all["Values"].(common.Values)
	if err := conform(r.chart, merged); err != nil {
		return nil, err
	}
	files, err := templates(ctx, asked, r.chart, all)
	if err != nil {
		return nil, fmt.Errorf(
			"chart %s %s cannot be rendered with these values: %s", c.Name(), c.Version(), clean.Text(err.Error()),
		)
	}
	return r, r.sort(files)
}

func templates(
	ctx context.Context, asked *cluster.Cluster, c *chartv2.Chart, values common.Values,
) (map[string]string, error) {
	if asked == nil {
		return engine.Engine{}.RenderWithContext(ctx, c, values)
	}
	return engine.RenderWithClientProvider(c, values, lookups{ctx, asked})
}

// sort sorts the rendered files into notes, hooks and objects.
func (r *Rendered) sort(files map[string]string) error {
	for name, text := range files {
		if !strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		if name == path.Join(r.chart.Name(), "templates", "NOTES.txt") {
			r.Notes = clean.Text(text)
		}
		delete(files, name)
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return fmt.Errorf("chart %s renders invalid YAML: %s", r.chart.Name(), clean.Text(err.Error()))
	}
	var all strings.Builder
	for _, m := range manifests {
		_, _ = fmt.Fprintf(&all, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	r.manifest, r.hooks, r.Hooks = all.String(), hooks, len(hooks)
	if r.Objects, err = objects(r.manifest); err != nil {
		return fmt.Errorf("chart %s: %w", r.chart.Name(), err)
	}
	for _, crd := range r.chart.CRDObjects() {
		made, err := objects(string(crd.File.Data))
		if err != nil {
			return fmt.Errorf("chart %s: %s: %w", r.chart.Name(), crd.Filename, err)
		}
		r.CRDs = append(r.CRDs, made...)
	}
	for _, o := range slices.Concat(r.CRDs, r.Objects) {
		if o.GetName() == "" {
			return fmt.Errorf(
				"chart %s creates a %s with a generated name, so each apply would create another one",
				r.chart.Name(), o.GetKind(),
			)
		}
	}
	return nil
}

// capabilities returns the cluster version and API resources that templates see.
func capabilities(ctx context.Context, on *cluster.Cluster) (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	if on == nil {
		return caps, nil
	}
	v, err := on.Version(ctx)
	if err != nil {
		return nil, err
	}
	parsed, err := common.ParseKubeVersion(v.Git)
	if err != nil {
		return nil, fmt.Errorf("the cluster's version %q cannot be parsed: %w", v.Git, err)
	}
	parsed.Major, parsed.Minor = strconv.Itoa(v.Major), strconv.Itoa(v.Minor)
	caps.KubeVersion = *parsed
	served, err := on.Served(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, k := range served {
		for _, name := range []string{k.GVK.GroupVersion().String(), k.GVK.GroupVersion().String() + "/" + k.GVK.Kind} {
			if !seen[name] {
				seen[name] = true
				caps.APIVersions = append(caps.APIVersions[:len(caps.APIVersions):len(caps.APIVersions)], name)
			}
		}
	}
	return caps, nil
}
