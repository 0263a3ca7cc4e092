package interlink

import (
	"context"

	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// configDoer edits one key of a ConfigMap that belongs to the chart.
type configDoer struct{ action.Edit }

func editsConfig() configDoer {
	return configDoer{action.Edit{
		Manifest: action.Manifest{File: "vk-config.yaml"},
		Key:      kubeletConfigKey,
		At: func(_ context.Context, e steps.Env) (string, string, error) {
			return vkNamespace(e), vkConfigMap(e), nil
		},
		Text:  wantedConfig,
		Again: "a helm upgrade",
		Hand:  func(_ context.Context, e steps.Env) string { return editByHand(e) },
	}}
}

// Plan adds a note if the edit corrects the CA that the chart indented incorrectly.
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

// Export returns chart values for users who install with their own tools, and the changes that values cannot express.
func (d configDoer) Export(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	return exportConfig(ctx, e)
}
