package chart

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

func tiny(t *testing.T) *Chart {
	t.Helper()
	c, err := Load(t.Context(), "testdata/tiny", "tiny", "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRender(t *testing.T) {
	values := map[string]any{
		"message": "hi", "hook": tree{"enabled": true}, "widget": "w", "nodeSelector": tree{"any": "thing"}, "messages": 1,
		"extra": tree{"enable": true},
	}
	r, err := Render(t.Context(), tiny(t), "a", "ns", values)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range slices.Concat(r.CRDs, r.Objects) {
		got = append(got, describe(o))
	}
	want := "CustomResourceDefinition tinywidgets.tiny.example.org, Secret a, ConfigMap a, Deployment a, TinyWidget w"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if r.Hooks != 1 || r.Notes != "Installed a.\n" || strings.Join(r.Unknown, " ") != "extra.enable messages" {
		t.Errorf("%d hooks, notes %q, unknown %q", r.Hooks, r.Notes, r.Unknown)
	}
}

// A template can use a value that values.yaml contains only in a comment.
func TestAValueThatATemplateReadsIsKnown(t *testing.T) {
	c := &chartv2.Chart{
		Metadata: &chartv2.Metadata{Name: "tiny"},
		Values:   tree{"extra": tree{"enabled": false}},
		Templates: []*common.File{
			{Name: "templates/_more.tpl", Data: []byte(`{{ .Values.extra.name }}{{ .Values.extra.namespace }}`)},
		},
	}
	given := map[string]any{"extra": tree{"name": "a", "names": "b"}}
	if got := strings.Join(unknown(c, given), " "); got != "extra.names" {
		t.Errorf("unknown %q", got)
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]any
		want   string
	}{
		"schema": {
			tree{"replicas": "two"}, "chart tiny rejects these values: at replicas: got string, want integer",
		},
		"two":       {tree{"replicas": -1, "message": 1}, "at replicas"},
		"not plain": {tree{"message": func() {}}, "cannot be represented in YAML"},
	} {
		_, err := Render(t.Context(), tiny(t), "a", "ns", c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Render(t.Context(), tiny(t), "A_b", "ns", nil); err == nil ||
		!strings.Contains(err.Error(), "not a release name") {
		t.Error(err)
	}
}

// A schema must not make carrick read files or send requests.
func TestASchemaFetchesNothing(t *testing.T) {
	for _, ref := range []string{"file:///etc/hostname", "https://schema.invalid/x.json", "other.json"} {
		err := against([]byte(`{"$ref": "`+ref+`"}`), tree{})
		if err == nil || !strings.Contains(err.Error(), "carrick does not download schemas") {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
