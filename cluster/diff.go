package cluster

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Diff shows in unified form, without a file header, how after differs from before; "" when it does not. What servers
// write by themselves (status, managedFields, uid, resourceVersion, generation, creationTimestamp, selfLink) and
// kubectl's last-applied annotation are left out. Of Secrets only the sizes of values are shown, and which of them
// differ. A nil before is an object that is made, a nil after one that is deleted. Neither object is changed.
func Diff(before, after *unstructured.Unstructured) string {
	old, now := normalised(before), normalised(after)
	hideSecrets(old, now)
	from, to := yamlOf(old), yamlOf(now)
	if from == to {
		return ""
	}
	lines := strings.SplitAfter(udiff.Unified("", "", from, to), "\n")
	// The first two lines name the files.
	return Clean(strings.Join(lines[min(2, len(lines)):], ""))
}

// normalised returns a copy of obj without what servers write by themselves; nil for nil.
func normalised(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	obj = obj.DeepCopy()
	delete(obj.Object, "status")
	meta, _ := obj.Object["metadata"].(map[string]any)
	for _, key := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"} {
		delete(meta, key)
	}
	for _, key := range []string{"annotations", "labels"} {
		values, _ := meta[key].(map[string]any)
		delete(values, corev1.LastAppliedConfigAnnotation)
		if len(values) == 0 {
			delete(meta, key)
		}
	}
	return obj
}

// hideSecrets replaces the values of Secrets by their sizes, and says where the two differ.
func hideSecrets(old, now *unstructured.Unstructured) {
	oldData, newData := takeSecrets(old), takeSecrets(now)
	put(old, oldData, nil)
	put(now, newData, func(key string) bool {
		before, both := oldData[key]
		return both && before != newData[key]
	})
}

// takeSecrets returns a Secret's values and folds stringData into data, as the API server does; nil for other objects.
func takeSecrets(obj *unstructured.Unstructured) map[string]string {
	if obj == nil || obj.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return nil
	}
	out := map[string]string{}
	data, _ := obj.Object["data"].(map[string]any)
	for key, value := range data {
		out[key] = fmt.Sprint(value)
		if raw, err := base64.StdEncoding.DecodeString(out[key]); err == nil {
			out[key] = string(raw)
		}
	}
	text, _ := obj.Object["stringData"].(map[string]any)
	for key, value := range text {
		out[key] = fmt.Sprint(value)
	}
	delete(obj.Object, "stringData")
	delete(obj.Object, "data")
	return out
}

func put(obj *unstructured.Unstructured, values map[string]string, changed func(key string) bool) {
	if len(values) == 0 {
		return
	}
	shown := make(map[string]any, len(values))
	for key, value := range values {
		suffix := ""
		if changed != nil && changed(key) {
			suffix = ", changed"
		}
		shown[key] = fmt.Sprintf("(hidden, %d bytes%s)", len(value), suffix)
	}
	obj.Object["data"] = shown
}

func yamlOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	out, err := yaml.Marshal(obj.Object)
	if err != nil {
		return fmt.Sprintf("# can't be shown as YAML: %v\n", err)
	}
	return string(out)
}
