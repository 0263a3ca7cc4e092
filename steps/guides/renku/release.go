package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/chart"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
	"carrick/steps"
)

// releaseFacts returns the facts about Renku on the local cluster. Most facts come from the Helm
// release. If there is no release, as with Argo CD, some facts come from labels and Deployments.
// Each fact extracts only one value, because a release's values can contain passwords.
//
// Source: SwissDataScienceCenter/renku helm-chart/renku/values.yaml and templates.
func releaseFacts() []steps.Fact {
	fact := func(name, title string, learn func(context.Context, steps.Env) (any, error)) steps.Fact {
		return steps.Fact{Name: name, Title: title, On: steps.Local, Shared: true, Learn: learn}
	}
	return []steps.Fact{
		fact("release", "Renku's Helm release", releaseItself),
		fact("renku-domain", "Renku's domain", releaseFact(helmText, "global.renku.domain")),
		fact("chart-repository", "the chart repository of Renku's release", chartRepository),
		fact("kubeconfigs-secret", "the Secret that Renku reads kubeconfigs from", kubeconfigsSecret),
		fact("kubeconfigs-value", "the Helm value that names the kubeconfigs Secret",
			releaseFact(helmText, kubeconfigsPath)),
		fact("oidc-client", "the Keycloak client of sessions", releaseFact(helmText, clientPath)),
		fact("redirect-uris", "the extra redirect URIs of the Keycloak client", releaseFact(helmList, redirectsPath)),
		fact("web-origins", "the extra web origins of the Keycloak client", releaseFact(helmList, originsPath)),
		fact("redirect-host", "the session host that Renku's login allows", redirectHost),
		fact("redirect-port", "the session port that Renku's login allows", redirectPort),
		fact("custom-cas", "the CA certificates that sessions mount", customCAs),
		fact("renku-ca", "the additional CA certificates that Renku trusts", renkuCA),
		fact("session-affinity", "the node affinity of every session", sessionAffinity),
		fact("session-tolerations", "the taints that every session tolerates", sessionTolerations),
		fact("session-cas", "the CA Secrets that every session mounts", sessionCAs),
	}
}

const renkuChart = "renku"

func renkuNamespace(e steps.Env) string { return e.Answers.Text("renku.namespace") }

// releasesKept is how long carrick caches an unpacked release while its Secret does not change.
// Unpacking takes about 10 ms, and a dozen facts read the same release.
const releasesKept = 24 * time.Hour

func releases(ctx context.Context, e steps.Env, namespace string) ([]chart.Release, error) {
	key := "helm-releases/" + string(e.Side) + "/" + namespace
	return tracked.Look(ctx, key, releasesKept, func(ctx context.Context) ([]chart.Release, error) {
		return chart.Releases(ctx, e.Cluster, namespace)
	})
}

// renkuRelease returns the release of Renku's chart. It returns an AbsentError if there is none.
func renkuRelease(ctx context.Context, e steps.Env) (*chart.Release, error) {
	ns := renkuNamespace(e)
	found, err := releases(ctx, e, ns)
	var ours []*chart.Release
	for i := range found {
		if found[i].Chart == renkuChart {
			ours = append(ours, &found[i])
		}
	}
	switch {
	case len(ours) == 1:
		return ours[0], nil
	case err != nil:
		return nil, err
	case len(ours) == 0:
		return nil, steps.Absent("no Helm release of chart %s exists in namespace %s", renkuChart, ns)
	}
	return nil, fmt.Errorf(
		"namespace %s has %d releases of chart %s, but carrick expects exactly one release", ns, len(ours), renkuChart,
	)
}

// valued returns Renku's release for facts that only provide defaults. It returns an AbsentError if
// the user is not allowed to read the release. carrick then has no default, but the fact does not
// fail.
func valued(ctx context.Context, e steps.Env) (*chart.Release, error) {
	r, err := renkuRelease(ctx, e)
	if apierrors.IsForbidden(err) {
		return nil, steps.Absent("you cannot read Renku's Helm release: %s", failure.Explain(err))
	}
	return r, err
}

func releaseItself(ctx context.Context, e steps.Env) (any, error) {
	r, err := renkuRelease(ctx, e)
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": r.Name, "version": r.Version}, nil
}

// helmText returns the Helm value at path in Renku's release. It returns an AbsentError unless the
// value is a non-empty string.
func helmText(ctx context.Context, e steps.Env, path string) (string, error) {
	r, err := valued(ctx, e)
	if err != nil {
		return "", err
	}
	v, _ := r.Value(path)
	text, ok := v.(string)
	if text = strings.TrimSpace(clean.Text(text)); !ok || text == "" {
		return "", steps.Absent("Renku's Helm value %s is empty", path)
	}
	return text, nil
}

// releaseFact returns the Learn function of a fact that reads the Helm value at path. read is
// helmText or helmList.
func releaseFact[T any](
	read func(context.Context, steps.Env, string) (T, error), path string,
) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) { return read(ctx, e, path) }
}

const kubeconfigsPath = "dataService.remoteClustersKubeconfigSecretName"

// kubeconfigsVolume is the name of the volume with the kubeconfigs in Renku's pods.
const kubeconfigsVolume = "remote-cluster-kubeconfigs"

// kubeconfigsSecret returns the name of the Secret that Renku's services mount. If they mount none,
// it returns the name in the Helm values.
func kubeconfigsSecret(ctx context.Context, e steps.Env) (any, error) {
	services, err := dataServices(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, d := range services {
		if name := mountedKubeconfigs(d); name != "" {
			return name, nil
		}
	}
	name, err := helmText(ctx, e, kubeconfigsPath)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return nil, steps.Absent(
			"Renku mounts no kubeconfigs: no Deployment with label app=renku-data-service in %s has the volume %s, and %s",
			renkuNamespace(e), kubeconfigsVolume, absent.Why,
		)
	}
	return name, err
}

func dataServices(ctx context.Context, e steps.Env) ([]*appsv1.Deployment, error) {
	all, err := serviceDeployments(ctx, e)
	return slices.DeleteFunc(all, func(d *appsv1.Deployment) bool { return d.Labels["app"] != dataServiceApp }), err
}

// releaseName returns the name of Renku's release. If the release cannot be read, it returns the
// name in the labels of Renku's Deployments.
func releaseName(ctx context.Context, e steps.Env) (string, error) {
	r, unread := valued(ctx, e)
	if unread == nil {
		return r.Name, nil
	}
	services, err := dataServices(ctx, e)
	if err != nil {
		return "", err
	}
	for _, d := range services {
		if name := d.Labels["release"]; name != "" {
			return name, nil
		}
	}
	if absent := (*steps.AbsentError)(nil); errors.As(unread, &absent) {
		return "", steps.Absent("%s, and no Deployment with label app=renku-data-service names a release", absent.Why)
	}
	return "", unread
}

// chartRepository returns the repository of the operator's chart, which is a dependency of Renku's
// chart.
func chartRepository(ctx context.Context, e steps.Env) (any, error) {
	r, err := valued(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, d := range r.Dependencies {
		if d.Name == operatorChart && isRemoteSource(d.Repository) {
			return d.Repository, nil
		}
	}
	return nil, steps.Absent("Renku's release has no repository for its chart %s", operatorChart)
}

func isRemoteSource(s string) bool {
	for _, scheme := range []string{"https://", "http://", "oci://"} {
		if strings.HasPrefix(s, scheme) {
			return true
		}
	}
	return false
}
