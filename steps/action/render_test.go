package action

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/masked"
	"carrick/steps"
)

func renderOne(t *testing.T, asset string, answers map[string]any) (*unstructured.Unstructured, error) {
	t.Helper()
	env := steps.Env{
		Link: "l", Assets: fstest.MapFS{"a.yaml": {Data: []byte(asset)}},
		Answers: steps.Answers{Lookup: func(k string) any { return answers[k] }},
		Own: steps.Facts{Lookup: func(name string) (any, error) {
			if name == "token" {
				return masked.New("s3cret"), nil
			}
			return nil, steps.Absent("no fact %s", name)
		}},
	}
	objs, err := render(context.Background(), "a.yaml", scope{env: env, each: map[string]any{"name": "e"}})
	if err != nil {
		return nil, err
	}
	return objs[0], nil
}

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

func TestAnAnswerCannotInjectStructure(t *testing.T) {
	evil := "a\n  b: c\nkind: Secret # ${link.name}"
	obj, err := renderOne(
		t, head+"data: {k: 'x ${answers.a} y', '${answers.key}': v}\n", map[string]any{"a": evil, "key": "k: {z: 1}"},
	)
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(obj.Object, "data")
	if obj.GetKind() != "ConfigMap" || data["k"] != "x "+evil+" y" || data["k: {z: 1}"] != "v" || len(data) != 2 {
		t.Errorf("got %v", obj.Object)
	}
}

func TestAWholeScalarKeepsItsType(t *testing.T) {
	obj, err := renderOne(
		t, head+"n: '${answers.n}'\nl: '${answers.l}'\nb: '${answers.b}'\ne: '${each.name}'\n",
		map[string]any{"n": 30742, "l": []string{"a"}, "b": true},
	)
	if err != nil {
		t.Fatal(err)
	}
	if obj.Object["n"] != int64(30742) || obj.Object["b"] != true || obj.Object["e"] != "e" ||
		len(obj.Object["l"].([]any)) != 1 {
		t.Errorf("got %v", obj.Object)
	}
}

func TestAnEmptyAnswerDropsItsKey(t *testing.T) {
	obj, err := renderOne(
		t, head+"spec: {class: '${answers.none}', list: [a, '${answers.none}'], text: 'is ${link.name}'}\n", nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	spec := obj.Object["spec"].(map[string]any)
	if _, there := spec["class"]; there || len(spec["list"].([]any)) != 1 || spec["text"] != "is l" {
		t.Errorf("got %v", spec)
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, c := range map[string]struct{ asset, want string }{
		"an unknown name":           {head + "a: '${link.colour}'\n", "${link.colour} is not defined"},
		"an unknown scope":          {head + "a: '${env.HOME}'\n", "${env.HOME} is not defined"},
		"a secret outside a Secret": {head + "a: '${own.token}'\n", "is secret and the object is not a Secret"},
		"a secret in a Secret's label": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: x, labels: {a: '${own.token}'}}\n", "is secret",
		},
		"a secret as a Secret's key": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {'${own.token}': x}\n", "is secret",
		},
		"another kind called Secret": {
			"apiVersion: example.org/v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: '${own.token}'}\n", "is secret",
		},
		"a secret inside other text": {head + "a: 'x ${own.token}'\n", "is secret"},
		"a list inside other text":   {head + "a: 'x ${answers.l}'\n", "inside other text"},
		"a key that comes out twice": {head + "data: {a: 1, '${answers.k}': 2}\n", "occurs twice"},
		"an object without a name": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${answers.none}'}\n", "has no apiVersion, kind or name",
		},
		"a fact that is not there (yet)": {head + "a: '${own.id}'\n", "no fact id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderOne(t, c.asset, map[string]any{"l": []string{"a"}, "k": "a"})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestASecretMayHoldASecret(t *testing.T) {
	obj, err := renderOne(t, strings.Replace(head, "ConfigMap", "Secret", 1)+"stringData: {token: '${own.token}'}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	// stringData is not the server's own: what is in it conflicts with nothing.
	if v, _, _ := unstructured.NestedString(obj.Object, "data", "token"); v != "czNjcmV0" ||
		obj.Object["stringData"] != nil {
		t.Errorf("got %v", obj.Object)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("a: b", "x")
	f.Add("${answers.a}", "${link.name}")
	f.Fuzz(func(t *testing.T, key, value string) {
		obj, err := renderOne(t, head+"data: {k: '${answers.a}', j: 'x${answers.b}'}\n", map[string]any{"a": value, "b": key})
		if err != nil {
			t.Fatal(err)
		}
		data := obj.Object["data"].(map[string]any)
		if data["k"] != value || data["j"] != "x"+key || len(data) != 2 {
			t.Errorf("got %v", data)
		}
	})
}
