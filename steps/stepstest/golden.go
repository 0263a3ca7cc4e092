package stepstest

import (
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"carrick/steps"
	"carrick/steps/action"
)

// Golden renders every asset of a guide. It uses the answers and facts of the state "healthy" in dir, and additional
// answers. It decodes built-in kinds into their types. It compares each asset with the file of the same name under
// dir/golden. The files omit values of Secrets and certificates.
func Golden(t *testing.T, g *steps.Guide, assets fs.FS, dir string, answers map[string]any) {
	t.Helper()
	found := map[string]string{}
	for _, r := range rendered(t, g, assets, dir, answers) {
		for _, obj := range r.objects {
			if err := decodeStrictly(obj); err != nil {
				t.Errorf("asset %s: %v", r.file, err)
			}
			b, err := yaml.Marshal(shown(obj))
			if err != nil {
				t.Fatal(err)
			}
			text := ownHash.ReplaceAllString(r.scrub.Replace(string(b)), "$1(hash)")
			text = ownTime.ReplaceAllString(text, "(time)")
			if found[r.file] != "" {
				text = "---\n" + text
			}
			found[r.file] += text
		}
	}
	if len(found) == 0 {
		t.Fatal("the guide renders nothing")
	}
	compareFiles(t, filepath.Join(dir, "golden"), found)
}

type asset struct {
	file    string
	side    steps.Side
	objects []*unstructured.Unstructured
	scrub   *strings.Replacer
}

// rendered returns all assets of a guide in apply order.
func rendered(t *testing.T, g *steps.Guide, assets fs.FS, dir string, answers map[string]any) []asset {
	t.Helper()
	s, _, scrub := open(t, g, assets, dir, "healthy", answers)
	var out []asset
	for _, step := range g.Steps {
		for _, a := range step.Actions {
			written, ok := a.Doer.(interface{ Asset() action.Manifest })
			if !ok {
				continue
			}
			r := asset{file: written.Asset().File, side: a.On, scrub: scrub}
			var err error
			if r.objects, err = s.Render(t.Context(), a.Name); err != nil {
				t.Errorf("action %s: %v", a.Name, err)
			} else if len(r.objects) == 0 {
				t.Errorf("action %s renders nothing with these answers", a.Name)
			}
			out = append(out, r)
		}
	}
	return out
}

// ownTime matches the time of a trial in its record.
var ownTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// ownHash matches an annotation of carrick that contains a hash. The hashed text can contain a certificate, which
// differs in each run. YAML quotes a hash that is all digits.
var ownHash = regexp.MustCompile(`(?m)^( *carrick/[\w.-]+: )"?[0-9a-f]{12}"?$`)

var pemBlock = regexp.MustCompile(`-----BEGIN ([A-Z ]+)-----[^-]*-----END [A-Z ]+-----\n?`)

// shown removes the values that a golden file must not contain, which are the values of Secrets. It also removes
// certificates, because they differ from run to run.
func shown(obj *unstructured.Unstructured) any {
	if obj.GetKind() == "Secret" && obj.GetAPIVersion() == "v1" {
		for _, field := range []string{"data", "stringData"} {
			values, _ := obj.Object[field].(map[string]any)
			for key := range values {
				values[key] = "(hidden)"
			}
		}
	}
	return withoutPEM(obj.Object)
}

func withoutPEM(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withoutPEM(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutPEM(v[i])
		}
	case string:
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil && pemBlock.Match(raw) {
			return "(base64 of " + pemBlock.ReplaceAllString(string(raw), "$1") + ")"
		}
		return pemBlock.ReplaceAllString(v, "($1)")
	}
	return v
}

// compareFiles compares the files in a directory with found, by file name. With -update it writes them instead.
func compareFiles(t *testing.T, dir string, found map[string]string) {
	t.Helper()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range found {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	have, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("no goldens (-update writes them): %v", err)
	}
	for _, f := range have {
		if _, ok := found[f.Name()]; !ok {
			t.Errorf("%s/%s belongs to no asset (-update removes it)", dir, f.Name())
		}
	}
	var names []string
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%v (-update writes it)", err)
			continue
		}
		if d := cmp.Diff(string(want), found[name]); d != "" {
			t.Errorf("%s/%s (-want +got):\n%s", dir, name, d)
		}
	}
}
