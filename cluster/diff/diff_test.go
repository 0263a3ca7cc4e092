package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parsed returns the object in a YAML text, or nil for "".
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

const plainMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {a: "1", b: "1", c: "1", d: "1", e: "1", f: "1", g: "1", h: "1"}
`

func TestDiff(t *testing.T) {
	for _, tc := range []struct {
		situation, before, after, want string
	}{
		{situation: "nothing and nothing"},
		{situation: "the same", before: plainMap, after: plainMap},
		{
			situation: "only what servers write",
			before:    plainMap,
			after: plainMap + `
status: {phase: Active}
`,
		},
		{
			situation: "what servers write in metadata",
			before: "metadata: {name: a, uid: x, resourceVersion: '1', generation: 1, creationTimestamp: null, " +
				"managedFields: []}",
			after: `metadata: {name: a, uid: y, selfLink: /x, annotations: {
				kubectl.kubernetes.io/last-applied-configuration: secret}, labels: {}}`,
		},
		{
			situation: "one value, with three lines around it",
			before:    plainMap, after: strings.Replace(plainMap, `d: "1"`, `d: "2"`, 1),
			want: "@@ -3,7 +3,7 @@\n   a: \"1\"\n   b: \"1\"\n   c: \"1\"\n-  d: \"1\"\n+  d: \"2\"\n   e: \"1\"\n   f: " +
				"\"1\"\n   g: \"1\"\n",
		},
		{
			situation: "made", after: "{kind: A, metadata: {name: a}}",
			want: "@@ -0,0 +1,3 @@\n+kind: A\n+metadata:\n+  name: a\n",
		},
		{
			situation: "deleted", before: "{kind: A, metadata: {name: a}}",
			want: "@@ -1,3 +0,0 @@\n-kind: A\n-metadata:\n-  name: a\n",
		},
		{
			situation: "a Secret's values are hidden",
			before:    "{apiVersion: v1, kind: Secret, data: {same: c2VjcmV0, other: c2VjcmV0, gone: c2VjcmV0}}",
			after:     "{apiVersion: v1, kind: Secret, data: {same: c2VjcmV0, other: c2VjcmV1, new: c2VjcmV0cw==}}",
			want: "@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n-  gone: (hidden, 6 bytes)\n-  other: (hidden, 6 bytes)\n" +
				"+  new: (hidden, 7 bytes)\n+  other: (hidden, 6 bytes, changed)\n   same: (hidden, 6 bytes)\n kind: Secret\n",
		},
		{
			situation: "annotations that repeat the object are left out",
			before: "{kind: ConfigMap, metadata: {annotations: {kapp.k14s.io/original: a, kapp.k14s.io/original-diff: a, " +
				"banzaicloud.com/last-applied: a}}}",
			after: "{kind: ConfigMap, metadata: {annotations: {objectset.rio.cattle.io/applied: b}}}",
		},
		{
			situation: "other tools' annotations of a Secret are hidden",
			before: "{apiVersion: v1, kind: Secret, metadata: {annotations: {backup: c2VjcmV0, kapp.k14s.io/original: " +
				"c2VjcmV0}}}",
			after: "{apiVersion: v1, kind: Secret, metadata: {annotations: {backup: c2VjcmV1, carrick/created-by: paris}}}",
			want: "@@ -2,4 +2,5 @@\n kind: Secret\n metadata:\n   annotations:\n-    backup: (hidden, 8 bytes)\n" +
				"+    backup: (hidden, 8 bytes, changed)\n+    carrick/created-by: paris\n",
		},
		{
			situation: "stringData is data",
			before:    "{apiVersion: v1, kind: Secret, data: {same: c2VjcmV0}}",
			after:     "{apiVersion: v1, kind: Secret, stringData: {same: secret}}",
		},
		{
			situation: "another group's Secret is no Secret",
			before:    "{apiVersion: example.org/v1, kind: Secret}",
			after:     "{apiVersion: example.org/v1, kind: Secret, data: {a: b}}",
			want:      "@@ -1,2 +1,4 @@\n apiVersion: example.org/v1\n+data:\n+  a: b\n kind: Secret\n",
		},
		{
			situation: "escape sequences are cleaned", after: `{kind: "a\u001b[2Jb\u202e"}`,
			want: "@@ -0,0 +1 @@\n+kind: \"a\\e[2Jb\\u202E\"\n",
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			before, after := parsed(t, tc.before), parsed(t, tc.after)
			got := Objects(before, after)
			if tc.situation == "escape sequences are cleaned" {
				if strings.ContainsAny(got, "\x1b\u202e") {
					t.Errorf("got %q", got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(parsed(t, tc.after), after); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
			if strings.Contains(got, "c2VjcmV") {
				t.Error("a secret is shown")
			}
		})
	}
}
