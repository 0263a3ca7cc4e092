package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// packed returns a release in the format in which Helm stores it.
func packed(t *testing.T, release any) string {
	t.Helper()
	raw, err := json.Marshal(release)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(raw)
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

type tree = map[string]any

// renku is a release with the fields that Helm writes.
var renku = tree{
	"name": "renku", "namespace": "renku", "version": 7,
	"info": tree{
		"status": "deployed", "notes": "hello\x1b[2J", "last_deployed": "2026-08-01T10:00:00Z", "first_deployed": "",
	},
	"chart": tree{
		"metadata": tree{"name": "renku", "version": "2.19.3", "appVersion": "2.19", "dependencies": []any{
			tree{
				"name": "amalthea-sessions", "version": "0.30.2", "repository": "https://example.org/charts",
				"condition": "amalthea-sessions.enabled",
			},
		}},
		"values": tree{
			"dataService": tree{"secret": "", "image": tree{"tag": "1", "pull": "Always"}}, "dotted": tree{"a.b": 1},
			"gone": "default",
		},
	},
	"config":   tree{"dataService": tree{"secret": "correct-horse", "image": tree{"tag": "2"}}, "gone": nil, "flat": "x"},
	"manifest": "kind: Secret\nstringData: {password: correct-horse}\n",
	"hooks":    []any{tree{"manifest": "correct-horse"}},
}

func TestDecode(t *testing.T) {
	r, err := decode(packed(t, renku))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{r.Name, r.Chart, r.Version, r.AppVersion, r.Status, r.Revision, r.Notes, r.Dependencies}
	want := []any{"renku", "renku", "2.19.3", "2.19", Deployed, 7, "hello", []Dependency{{
		Name: "amalthea-sessions", Version: "0.30.2", Repository: "https://example.org/charts",
		Condition: "amalthea-sessions.enabled",
	}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for path, want := range map[string]any{
		"dataService.secret":    "correct-horse",
		"dataService.image":     tree{"tag": "2", "pull": "Always"},
		"dataService.image.tag": "2", "dataService.image.pull": "Always",
		`dotted.a\.b`: float64(1),
		"gone":        nil, "none": nil, "flat.under": nil, "dataService.none": nil, "": nil,
	} {
		got, ok := r.Value(path)
		if d := cmp.Diff(want, got); d != "" || ok != (want != nil) {
			t.Errorf("%s: ok %v, %s", path, ok, d)
		}
	}
	if _, ok := r.Given("dataService.image.pull"); ok {
		t.Error("a default counts as given")
	}
}

func TestAReleaseDoesNotShowItsValues(t *testing.T) {
	r, err := decode(packed(t, renku))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(r)
	texts := []string{string(raw), fmt.Sprintf("%v %+v %#v %v", r, *r, *r, []Release{*r})}
	for _, text := range texts {
		if strings.Contains(text, "correct-horse") || !strings.Contains(text, "2.19.3") {
			t.Error(text)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	enc := base64.StdEncoding.EncodeToString
	whole, _ := base64.StdEncoding.DecodeString(packed(t, renku))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range mostDecoded>>20 + 1 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	for name, c := range map[string]struct{ data, want string }{
		"text":       {"§", "not base64"},
		"empty":      {"", "JSON"},
		"no release": {enc([]byte(`{}`)), "has no release name"},
		"other JSON": {enc([]byte(`{"name": 1, "x": "correct-horse"}`)), "JSON"},
		"a command": {
			enc([]byte(`{"name":"a","chart":{"metadata":{"name":"b","version":"1.0.0 $(id)"}}}`)), "invalid in Helm",
		},
		"cut":  {enc(whole[:len(whole)/2]), "truncated"},
		"bomb": {enc(bomb.Bytes()), "larger than 64 MiB"},
	} {
		_, err := decode(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "correct-horse") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := decode(enc([]byte(`{"name":"a","chart":{"metadata":{"name":"b"}}}`))); err != nil || r.Chart != "b" {
		t.Errorf("a release that is not packed: %v", err)
	}
}

// Content changes with every field that affects the installation and with the salt, but not with the status.
func TestContent(t *testing.T) {
	content := func(change func(tree)) string {
		t.Helper()
		r := maps.Clone(renku)
		change(r)
		got, err := decode(packed(t, r))
		if err != nil {
			t.Fatal(err)
		}
		return got.Content()
	}
	same := content(func(tree) {})
	if got := content(func(r tree) { r["info"] = tree{"status": Failed} }); got != same || len(got) != 64 {
		t.Errorf("with another status it is %s, not %s", got, same)
	}
	for name, change := range map[string]func(tree){
		"manifest": func(r tree) { r["manifest"] = "kind: Secret\n" },
		"values":   func(r tree) { r["config"] = tree{"flat": "y"} },
		"definitions": func(r tree) {
			r["chart"] = tree{
				"metadata": tree{"name": "renku", "version": "2.19.3"},
				"files":    []any{tree{"name": "crds/a.yaml", "data": []byte("x")}},
			}
		},
		"version": func(r tree) { r["chart"] = tree{"metadata": tree{"name": "renku", "version": "2.19.4"}} },
	} {
		if content(change) == same {
			t.Errorf("another %s does not tell", name)
		}
	}
	r, err := decode(packed(t, renku))
	if err != nil {
		t.Fatal(err)
	}
	if r.inner.salt = "s"; r.Content() == same {
		t.Error("the salt does not tell")
	}
}

// A release that is written again with its stored salt has the same Content. An installation that resumes a release
// does this.
func TestTheSaltStaysTheSame(t *testing.T) {
	t.Parallel()
	secret := func(salt string) *unstructured.Unstructured {
		t.Helper()
		o, err := encode(
			&release.Release{
				Name: "tiny", Namespace: "there", Version: 1, Info: &release.Info{Status: Deployed}, Chart: &helmchart.Chart{
					Metadata: &helmchart.Metadata{Name: "tiny", Version: "0.1.0"},
				},
			}, salt,
		)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first, err := opened(secret("grains"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := opened(secret(first.inner.salt))
	if err != nil || again.Content() != first.Content() || first.inner.salt != "grains" {
		t.Errorf("%q, then %q: %v", first.inner.salt, again.inner.salt, err)
	}
}
