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

// releaseFacts returns the facts about Renku itself on the local cluster. They come from the
// Helm release, or, if there is none (Argo CD renders charts without a release), from labels and
// Deployments. Values of a release can contain passwords, so each fact extracts only the one
// value in its name.
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
		fact("redirect-uris", "the extra redirect URIs of that client", releaseFact(helmList, redirectsPath)),
		fact("web-origins", "the extra web origins of that client", releaseFact(helmList, originsPath)),
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

// releasesKept is how long an unpacked release is cached while its Secret does not change.
// Unpacking one takes some 10 ms, and a dozen facts are read from it.
const releasesKept = 24 * time.Hour

// releases returns the deployed releases of a namespace.
func releases(ctx context.Context, e steps.Env, namespace string) ([]chart.Release, error) {
	key := "helm-releases/" + string(e.Side) + "/" + namespace
	return tracked.Look(ctx, key, releasesKept, func(ctx context.Context) ([]chart.Release, error) {
		return chart.Releases(ctx, e.Cluster, namespace)
	})
}

// renkuRelease returns the release of Renku's chart. It returns an AbsentError if there is none,
// and another error if it cannot be determined.
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
		"namespace %s has %d releases of chart %s: it is unclear which one is meant", ns, len(ours), renkuChart,
	)
}

// valued returns Renku's release for a fact that is only a default. If the user is not allowed
// to read the release, it returns an AbsentError with the reason.
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

// helmText returns a value of Renku's release that is a non-empty string.
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

// releaseFact returns the Learn function of a fact that reads a value of Renku's release with
// helmText or helmList.
func releaseFact[T any](
	read func(context.Context, steps.Env, string) (T, error), path string,
) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) { return read(ctx, e, path) }
}

const kubeconfigsPath = "dataService.remoteClustersKubeconfigSecretName"

// kubeconfigsVolume is the volume through which Renku's services mount kubeconfigs.
const kubeconfigsVolume = "remote-cluster-kubeconfigs"

// kubeconfigsSecret returns the name of the Secret that running services mount, or else the name
// in the release's values.
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

// releaseName returns the name of Renku's release, or else the name in the labels of its
// Deployments.
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

// chartRepository returns the repository from which Renku's own release got the operator's
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
