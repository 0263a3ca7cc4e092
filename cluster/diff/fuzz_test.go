package diff

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/clustertest/hostile"
)

// A diff of Secrets contains no secret value, whatever field and type the value has.
func FuzzDiffOfSecrets(f *testing.F) {
	f.Add("key", "other", "data", "a", "b")
	f.Add("a\x1b[31m", "b", "stringData", "c\nd: e", "\u202e")
	f.Add("data", "stringData", "stringData", "kind: Secret", "---")
	f.Fuzz(func(t *testing.T, key, note, place, label, word string) {
		const mark = "s3cret-4711-value"
		if place != "data" && place != "stringData" || strings.Contains(key+note+label+word, mark[:6]) {
			return
		}
		object := func(value string) *unstructured.Unstructured {
			raw := value
			if place == "data" {
				raw = base64.StdEncoding.EncodeToString([]byte(value))
			}
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "type": word,
				"metadata": map[string]any{
					"name": note, "labels": map[string]any{label: word},
					"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": raw},
				},
				place: map[string]any{key: raw, note: word},
			}}
		}
		before, after := object(mark+" before "+word), object(mark+" after "+word)
		for _, pair := range [][2]*unstructured.Unstructured{{before, after}, {nil, after}, {before, nil}, {before, before}} {
			text := Objects(pair[0], pair[1])
			if strings.Contains(text, mark) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(mark))[:20]) {
				t.Errorf("the diff shows a value:\n%s", text)
			}
			if bad := hostile.Unfit(text); bad != "" {
				t.Error(bad)
			}
		}
	})
}
