package renku

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/chart"
	"carrick/steps"
	"carrick/steps/check"
)

// kubeconfigsVolume is how the chart calls the volume of the kubeconfigs
// (SwissDataScienceCenter/renku helm-chart/renku/templates/data-service/deployment.yaml).
const kubeconfigsVolume = "remote-cluster-kubeconfigs"

// releaseFacts are what the local Renku says of itself.
func releaseFacts() []steps.Fact {
	return []steps.Fact{
		{Name: "release", Title: "the Helm release of Renku", On: steps.Local, Learn: theRelease},
		{Name: "renku-domain", Title: "Renku's domain", On: steps.Local, Learn: textValue("global.renku.domain")},
		{Name: "renku-ca", Title: "the CAs that Renku trusts besides the usual ones", On: steps.Local, Learn: renkuCA},
		{Name: "kubeconfigs-value", Title: "the kubeconfigs Secret in Renku's values", On: steps.Local, Learn: textValue("dataService.remoteClustersKubeconfigSecretName")},
		{Name: "kubeconfigs-secret", Title: "the Secret with the remote clusters' kubeconfigs", On: steps.Local, Learn: kubeconfigsSecret},
		{Name: "oidc-client", Title: "the Keycloak client of sessions", On: steps.Local, Learn: textValue("notebooks.oidc.clientId")},
		{Name: "redirect-uris", Title: "where logins may come back to", On: steps.Local, Learn: listValue("notebooks.oidc.extraRedirectUris")},
		{Name: "web-origins", Title: "the web origins of sessions", On: steps.Local, Learn: listValue("notebooks.oidc.extraWebOrigins")},
	}
}

// release is the deployed release of Renku's chart.
func release(ctx context.Context, e steps.Env) (*chart.Release, error) {
	ns := e.Answers.Text("renku.namespace")
	all, err := chart.Releases(ctx, e.Cluster, ns)
	for i := range all {
		if all[i].Chart == "renku" {
			return &all[i], nil
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, steps.Absent("no Helm release of chart renku is in namespace %s (Argo CD leaves none)", ns)
}

func theRelease(ctx context.Context, e steps.Env) (any, error) {
	r, err := release(ctx, e)
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": r.Name, "version": r.Version}, nil
}

func textValue(path string) func(context.Context, steps.Env) (any, error) {
	return func(ctx context.Context, e steps.Env) (any, error) {
		r, err := release(ctx, e)
		if err != nil {
			return nil, err
		}
		v, _ := r.Value(path)
		text, ok := v.(string)
		if !ok || text == "" {
			return nil, steps.Absent("Renku's value %s is not set", path)
		}
		return text, nil
	}
}

// listValue is a value that is a string holding a JSON list.
func listValue(path string) func(context.Context, steps.Env) (any, error) {
	text := textValue(path)
	return func(ctx context.Context, e steps.Env) (any, error) {
		v, err := text(ctx, e)
		if err != nil {
			return nil, err
		}
		list := []string{}
		if err := json.Unmarshal([]byte(v.(string)), &list); err != nil {
			return nil, fmt.Errorf("the value %s of Renku must be a string that holds a JSON list of strings, and is not", path)
		}
		return list, nil
	}
}

func renkuCA(ctx context.Context, e steps.Env) (any, error) {
	r, err := release(ctx, e)
	if err != nil {
		return nil, err
	}
	value, _ := r.Value("global.certificates.customCAs")
	list, _ := value.([]any)
	var out []string
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m["secret"].(string)
		if name == "" {
			continue
		}
		s, err := e.Cluster.Secret(ctx, e.Answers.Text("renku.namespace"), name)
		if err != nil {
			return nil, err
		}
		var keys []string
		for key := range s.Keys {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		if s, err = e.Cluster.Secret(ctx, e.Answers.Text("renku.namespace"), name, keys...); err != nil {
			return nil, err
		}
		for _, key := range keys {
			if text := s.Data[key].Reveal(); strings.Contains(text, "BEGIN CERTIFICATE") && !strings.Contains(text, "PRIVATE KEY") {
				out = append(out, text)
			}
		}
	}
	if len(out) == 0 {
		return nil, steps.Absent("Renku's values name no CA of their own")
	}
	return strings.Join(out, "\n"), nil
}

// kubeconfigsSecret is what the data service really mounts, else what the
// values name.
func kubeconfigsSecret(ctx context.Context, e steps.Env) (any, error) {
	all, err := check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, e.Answers.Text("renku.namespace"), cluster.Selector{Labels: "app=renku-data-service"})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, d := range all {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == kubeconfigsVolume && v.Secret != nil {
				return v.Secret.SecretName, nil
			}
		}
	}
	return e.Own.Value("kubeconfigs-value")
}
