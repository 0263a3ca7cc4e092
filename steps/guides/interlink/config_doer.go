package interlink

import (
	"context"
	"maps"
	"slices"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// configDoer edits InterLinkConfig.yaml in the ConfigMap that the chart creates.
type configDoer struct{ action.Edit }

func editsConfig() configDoer {
	return configDoer{action.Edit{
		Manifest: action.Manifest{File: "vk-config.yaml"},
		Key:      kubeletConfigKey,
		At: func(_ context.Context, e steps.Env) (string, string, error) {
			return vkNamespace(e), vkConfigMap(e), nil
		},
		Text: wantedConfig,
		Settings: func(ctx context.Context, e steps.Env, text string) (map[string]any, error) {
			settings, err := wantedSettings(ctx, e, text)
			return asMap(settings), err
		},
		Read: parseRepaired,
		Set: func(text string, settings map[string]any) (string, error) {
			var all []vkSetting
			for _, key := range slices.Sorted(maps.Keys(settings)) {
				value := settings[key]
				if value == nil {
					value = ""
				}
				all = append(all, vkSetting{key, value})
			}
			return editConfig(text, all)
		},
		Again: "a helm upgrade",
		Hand:  func(_ context.Context, e steps.Env) string { return editByHand(e) },
	}}
}

func asMap(settings []vkSetting) map[string]any {
	out := map[string]any{}
	for _, s := range settings {
		out[s.key] = s.value
	}
	return out
}

// Plan adds a note if the edit also corrects the indentation of the CA.
func (d configDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Edit.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	m, err := check.Get[corev1.ConfigMap](ctx, e.Cluster, check.ConfigMaps, vkNamespace(e), vkConfigMap(e))
	if err != nil && !apierrors.IsNotFound(err) {
		return c, err
	}
	if err == nil && chartBug(m.Data[kubeletConfigKey]) {
		c.Items[0].Note = steps.JoinNotes(c.Items[0].Note, "corrects the CA, which the chart indented incorrectly")
	}
	return c, nil
}

// Export returns a values file for InterLink's chart, and the command for the settings that chart values cannot
// express.
func (d configDoer) Export(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	return exportConfig(ctx, e)
}
