package interlink

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

func config() steps.Step {
	return steps.Step{
		Name: "config", Title: "Virtual kubelet",
		Map: steps.MapRow{Local: "virtual kubelet", Arrow: steps.Remote},
		Why: "The virtual kubelet gives each job the API's address and CA. It reads its configuration only at start. " +
			"carrick edits five keys in place, because the chart's own value for the CA breaks the file in every release " +
			"since 0.5.3. Each helm upgrade overwrites these keys: apply this step again afterwards.",
		Facts: []steps.Fact{
			{Name: "vk-config", Title: "the virtual kubelet's configuration", On: steps.Local, Learn: vkConfig},
		},
		Actions: []steps.Action{
			{
				Name: "config", Title: "Write the endpoint into the virtual kubelet's configuration", On: steps.Local,
				Needs: []string{"signed-in"},
				Doer:  editsConfig(),
			},
			{
				Name: "restart", Title: "Restart the virtual kubelet", On: steps.Local, Needs: []string{"signed-in"},
				Doer: restartDoer{action.Manifest{File: "vk-restart.yaml", Values: action.Values{
					"name":  func(_ context.Context, e steps.Env) (any, error) { return vkDeployment(e), nil },
					"mark":  func(_ context.Context, e steps.Env) (any, error) { return configAnnotation(e), nil },
					"cause": restartCause,
				}}},
			},
		},
		Checks: configChecks(),
	}
}

// currentConfig returns the current text of InterLinkConfig.yaml, the virtual kubelet's configuration.
func currentConfig(ctx context.Context, e steps.Env) (string, error) {
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, vkNamespace(e), vkConfigMap(e))
	if apierrors.IsNotFound(err) {
		return "", steps.Absent(
			"ConfigMap %s/%s does not exist; InterLink's chart creates it", vkNamespace(e), vkConfigMap(e),
		)
	}
	if err != nil {
		return "", err
	}
	text, ok := m.Data[kubeletConfigKey]
	if !ok {
		return "", steps.Absent("ConfigMap %s/%s has no key %s", vkNamespace(e), vkConfigMap(e), kubeletConfigKey)
	}
	return text, nil
}

// vkConfig returns the parsed InterLinkConfig.yaml.
func vkConfig(ctx context.Context, e steps.Env) (any, error) {
	text, err := currentConfig(ctx, e)
	if err != nil {
		return nil, err
	}
	values, err := parseConfig(text)
	if err != nil {
		return nil, steps.Absent("the configuration is not valid: %s", err)
	}
	return values, nil
}

// theEndpoint is the endpoint that the virtual kubelet's configuration must name. ca is the PEM certificate of the CA
// that signed the endpoint's certificate. ca is "" if this is the cluster's own CA, or if jobs need no CA. by is the
// fact endpoint-proved-by: own, kube or public.
type theEndpoint struct{ host, port, ca, by string }

func configuredEndpoint(e steps.Env) (theEndpoint, error) {
	at, err := e.Own.Text("endpoint")
	if err != nil {
		return theEndpoint{}, err
	}
	host, port, err := splitHostPort(at)
	if err != nil {
		return theEndpoint{}, err
	}
	by, err := e.Own.Text("endpoint-proved-by")
	if err != nil {
		return theEndpoint{}, err
	}
	out := theEndpoint{host: host, port: port, by: by}
	if by != "own" {
		return out, nil
	}
	ca, err := e.Own.Text("endpoint-ca")
	if err != nil {
		return theEndpoint{}, err
	}
	if out.ca = plainPEM(ca); out.ca == "" {
		return theEndpoint{}, fmt.Errorf("fact endpoint-ca contains no certificate")
	}
	return out, nil
}

// settings returns the keys that carrick sets in InterLinkConfig.yaml, with their required values.
func (t theEndpoint) settings() []vkSetting {
	return []vkSetting{{keyAddress, t.host}, {keyPort, t.port}, {keyCA, t.ca}, {keyDropped, false}, {keyVerbose, false}}
}

// wantedConfig returns the current text of InterLinkConfig.yaml with the required settings.
func wantedConfig(ctx context.Context, e steps.Env) (string, error) {
	text, err := currentConfig(ctx, e)
	if err != nil {
		return "", err
	}
	settings, err := wantedSettings(ctx, e, text)
	if err != nil {
		return "", err
	}
	out, err := editConfig(text, settings)
	if err != nil {
		return "", fmt.Errorf("ConfigMap %s/%s: %w", vkNamespace(e), vkConfigMap(e), err)
	}
	return out, nil
}

// wantedSettings returns the settings that text, an InterLinkConfig.yaml, must contain.
func wantedSettings(ctx context.Context, e steps.Env, text string) ([]vkSetting, error) {
	at, err := configuredEndpoint(e)
	if err != nil {
		return nil, err
	}
	if at.by == "public" {
		at.ca = provingCA(ctx, e, text)
	}
	return at.settings(), nil
}

// provingCA returns the CA that is set in text, an InterLinkConfig.yaml. It returns "" if the endpoint's certificate
// does not verify against this CA. carrick keeps a CA that verifies, for example a public CA that a user has set.
func provingCA(ctx context.Context, e steps.Env, text string) string {
	values, err := parseConfig(text)
	if err != nil {
		return ""
	}
	have := configText(values, keyCA)
	roots, err := probe.Pool([]byte(have))
	if have == "" || err != nil {
		return ""
	}
	chain, _, err := endpointCertificates(ctx, e)
	if err != nil {
		return ""
	}
	if kind, _ := probe.CertProblem(chain, roots, "", inDate(probe.TLSReport{Chain: chain})); kind != "" {
		return ""
	}
	return have
}

// splitHostPort splits HOST:PORT. It returns an IPv6 address without brackets, as the virtual kubelet requires.
func splitHostPort(at string) (host, port string, err error) {
	i := strings.LastIndex(at, ":")
	if i < 0 {
		return "", "", fmt.Errorf("fact endpoint %q has no port", at)
	}
	return strings.Trim(at[:i], "[]"), at[i+1:], nil
}
