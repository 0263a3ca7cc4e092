package interlink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/chart"
	"carrick/cluster/clean"
	"carrick/steps"
)

func kubeletImage(ctx context.Context, e steps.Env) steps.Result {
	_, c, err := theKubelet(ctx, e)
	switch {
	case apierrors.IsNotFound(err):
		return noKubelet(e)
	case err != nil:
		return steps.Errored(err)
	case c == nil:
		return steps.Failed(
			fmt.Sprintf("Deployment %s has no container %s", vkDeployment(e), kubeletName),
			"check that InterLink's chart created the Deployment: "+e.Kubectl()+" -n "+vkNamespace(e)+" get deploy "+
				vkDeployment(e)+" -o yaml",
		)
	}
	image := clean.Text(c.Image)
	tag := tagOf(c.Image)
	pin := pinFix(ctx, e, c.Image)
	if strings.Contains(c.Image, "@sha256:") {
		return steps.Warned(
			"the image is pinned by digest, so it is unknown whether it is 0.4.0 or newer: "+image,
			"find out the version: "+e.Kubectl()+" -n "+vkNamespace(e)+" logs deploy/"+vkDeployment(e)+" -c "+kubeletName+
				" | head",
		)
	}
	v, err := version.ParseGeneric(tag)
	switch {
	case strings.ContainsAny(c.Image, "[] "):
		return steps.Failed(
			image+" is not an image name: a value of the chart is not a string", pin,
		)
	case err != nil:
		return steps.Warned(
			image+" has no release tag, so it may be older than 0.4.0 and can change at any time", pin,
		)
	case v.LessThan(firstKubelet):
		return steps.Failed(image+" passes no token to the plugin", pin)
	}
	return steps.Passed("%s", image)
}

// onHelm4 is appended to each helm upgrade command. Helm 4 uses server-side apply, as carrick does, and fails on fields
// that another field manager owns.
const onHelm4 = "    # with Helm 4 add --force-conflicts, because carrick has set some of the fields"

// pinFix returns the helm command that sets the virtual kubelet's image to a release. The chart value virtualNode.image
// is a string. In older charts it was a mapping with the key tag (interlink-hq/interlink-helm-chart: values.yaml).
func pinFix(ctx context.Context, e steps.Env, image string) string {
	name, at, _ := strings.Cut(image, "@")
	name = strings.TrimSuffix(name, ":"+tagOf(name))
	if at != "" || steps.Quoted(name) != name || strings.Contains(name, "=") {
		name = "ghcr.io/interlink-hq/interlink/virtual-kubelet-inttw"
	}
	release, chartVersion, set := "RELEASE", "", "virtualNode.image="+name+":0.6.1"
	if r, err := theRelease(ctx, e); err == nil && r != nil {
		release, chartVersion = r.Name, " --version "+r.Version
		if v, _ := r.Value("virtualNode.image"); v != nil {
			if _, parts := v.(map[string]any); parts {
				set = "virtualNode.image.tag=0.6.1"
			}
		}
	}
	return fmt.Sprintf(
		"set the chart's image to a release: %s -n %s upgrade %s %s%s --reuse-values --set %s%s", e.Helm(), vkNamespace(e),
		release,
		chartAt, chartVersion, set, onHelm4,
	)
}

// tagOf returns the tag of the given image, or latest if the image has no tag.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	last := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(last, ":"); ok {
		return tag
	}
	return "latest"
}

// theRelease returns the Helm release of InterLink's chart for the virtual node, or nil if there is no such release.
func theRelease(ctx context.Context, e steps.Env) (*chart.Release, error) {
	all, err := chart.Releases(ctx, e.Cluster, vkNamespace(e))
	if err != nil {
		return nil, err
	}
	for i := range all {
		r := &all[i]
		if r.Chart == chartName {
			if node, ok := r.Value("nodeName"); !ok || node == nodeName(e) {
				return r, nil
			}
		}
	}
	return nil, nil
}

// breaksCA reports whether version v of the chart renders an invalid configuration if a CA is set.
func breaksCA(v string) bool {
	have, err := version.ParseGeneric(v)
	return err != nil || lastGood.LessThan(have)
}

func chartRelease(ctx context.Context, e steps.Env) steps.Result {
	r, err := theRelease(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if r == nil {
		return steps.Skipped(
			"Helm has no release of chart %s with node %s in namespace %s", chartName, nodeName(e), vkNamespace(e),
		)
	}
	given, _ := r.Value("interlink.kubernetesApiCaCrt")
	ca, _ := given.(string)
	what := fmt.Sprintf("release %s (chart %s)", r.Name, r.Version)
	switch {
	case ca == "" || !breaksCA(r.Version):
		if breaksCA(r.Version) {
			what += ": this version renders invalid YAML if a CA is set, so carrick writes the CA into the ConfigMap"
		}
		return steps.Passed("%s", what)
	}
	return steps.Failed(what+" has interlink.kubernetesApiCaCrt set, so each upgrade breaks the configuration",
		fmt.Sprintf(
			"%s -n %s upgrade %s %s --version %s --reuse-values --set interlink.kubernetesApiCaCrt=%s, then %s",
			e.Helm(), vkNamespace(e), r.Name, chartAt, r.Version, onHelm4, e.ApplyStep("config"),
		))
}

// chartValues verifies that the helm upgrade command that set the endpoint kept all other values of the previous
// revision. With --set alone, helm upgrade drops the other values.
func chartValues(ctx context.Context, e steps.Env) steps.Result {
	r, err := theRelease(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if r == nil {
		return steps.Skipped(
			"Helm has no release of chart %s with node %s in namespace %s", chartName, nodeName(e), vkNamespace(e),
		)
	}
	old, err := chart.Before(ctx, e.Cluster, r)
	if errors.Is(err, chart.ErrNoRelease) {
		return steps.Passed("release %s, revision %d: Helm has no earlier revision", r.Name, r.Revision)
	}
	if err != nil {
		return steps.Errored(err)
	}
	lost := slices.DeleteFunc(
		r.Lost(old), func(path string) bool { return strings.HasPrefix(path, "interlink.kubernetesApi") },
	)
	if _, told := r.Given("interlink.kubernetesApiAddr"); len(lost) == 0 || !told {
		return steps.Passed("release %s, revision %d, has all values of revision %d", r.Name, r.Revision, old.Revision)
	}
	return steps.Failed(
		clean.Text(fmt.Sprintf(
			"release %s, revision %d, was created with --set only and lost values of revision %d: %s", r.Name, r.Revision,
			old.Revision, strings.Join(lost, ", "),
		)),
		fmt.Sprintf(
			"%[1]s -n %[2]s get values %[3]s --revision %[4]d > site.yaml; %[1]s -n %[2]s upgrade %[3]s %[5]s --version %[6]s "+
				"-f site.yaml --set interlink.kubernetesApiCaCrt=%[7]s, then %[8]s",
			e.Helm(), vkNamespace(e), r.Name, old.Revision, chartAt, r.Version, onHelm4, e.ApplyStep("config"),
		),
	)
}
