package diff

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"carrick/cluster/clean"
)

// Objects returns a unified diff from before to after, without a file header. It returns "" if they are equal. If
// before is nil, the object is created. If after is nil, the object is deleted. The diff omits fields that servers set
// (status, managedFields, uid, resourceVersion, generation, creationTimestamp, selfLink) and AppliedAnnotations, which
// repeat the whole object. For a Secret, it shows only the sizes of the values and of other tools' annotations, and
// which of them differ. Objects does not change its arguments.
func Objects(before, after *unstructured.Unstructured) string {
	old, now := normalised(before), normalised(after)
	hideSecrets(old, now)
	from, to := yamlOf(old), yamlOf(now)
	if from == to {
		return ""
	}
	return clean.Text(Text(from, to))
}

// Text returns a unified diff of two texts without a file header. It returns "" if they are equal.
func Text(before, after string) string {
	lines := strings.SplitAfter(udiff.Unified("", "", before, after), "\n")
	return strings.Join(lines[min(2, len(lines)):], "") // the first two lines are the file header
}

// rolloutRevision is the annotation with the Deployment controller's count of rollouts (kubernetes/kubernetes:
// pkg/controller/deployment/util/deployment_util.go, RevisionAnnotation).
const rolloutRevision = "deployment.kubernetes.io/revision"

// AppliedAnnotations lists the annotations in which tools store the object that they applied, including the values of a
// Secret: kubectl, kapp (carvel-dev/kapp: pkg/kapp/resources/resource_original.go), Rancher's wrangler
// (rancher/wrangler: pkg/apply), Banzai Cloud's objectmatcher (banzaicloud/k8s-objectmatcher: patch/annotation.go).
var AppliedAnnotations = []string{
	corev1.LastAppliedConfigAnnotation, "kapp.k14s.io/original", "kapp.k14s.io/original-diff",
	"kapp.k14s.io/original-diff-full",
	"objectset.rio.cattle.io/applied", "banzaicloud.com/last-applied",
}

// openAnnotations lists prefixes of annotations that contain no secret values. The diff of a Secret shows their values.
var openAnnotations = []string{"carrick/", "meta.helm.sh/", "kubernetes.io/service-account."}

// normalised returns a copy of obj without fields that servers set. It returns nil for nil.
func normalised(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	obj = obj.DeepCopy()
	delete(obj.Object, "status")
	meta, _ := obj.Object["metadata"].(map[string]any)
	for _, key := range []string{
		"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink",
	} {
		delete(meta, key)
	}
	for _, key := range []string{"annotations", "labels"} {
		values, _ := meta[key].(map[string]any)
		delete(values, rolloutRevision)
		for _, repeats := range AppliedAnnotations {
			delete(values, repeats)
		}
		if len(values) == 0 {
			delete(meta, key)
		}
	}
	return obj
}

// hideSecrets replaces the values of Secrets with their sizes, and marks the values that differ.
func hideSecrets(old, now *unstructured.Unstructured) {
	oldData, newData := takeSecrets(old), takeSecrets(now)
	put(old, sizes(oldData, nil), "data")
	put(now, sizes(newData, oldData), "data")
	oldNotes, newNotes := takeAnnotations(old), takeAnnotations(now)
	put(old, sizes(oldNotes, nil), "metadata", "annotations")
	put(now, sizes(newNotes, oldNotes), "metadata", "annotations")
}

// takeAnnotations removes the annotations that can contain secret values from a Secret, and returns them.
func takeAnnotations(obj *unstructured.Unstructured) map[string]string {
	if !isSecret(obj) {
		return nil
	}
	hidden := map[string]string{}
	for key, value := range obj.GetAnnotations() {
		if !slices.ContainsFunc(openAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			hidden[key] = value
			unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", key)
		}
	}
	return hidden
}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj != nil && obj.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// takeSecrets removes the values from a Secret and returns them. Like the API server, it prefers stringData to data. It
// returns nil for other objects.
func takeSecrets(obj *unstructured.Unstructured) map[string]string {
	if !isSecret(obj) {
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

// sizes returns the size of each value, and marks the values that differ from before.
func sizes(values, before map[string]string) map[string]string {
	out := make(map[string]string, len(values))
	for key, value := range values {
		changed := ""
		if was, both := before[key]; both && was != value {
			changed = ", changed"
		}
		out[key] = fmt.Sprintf("(hidden, %d bytes%s)", len(value), changed)
	}
	return out
}

// put writes values into the map at the given path in obj.
func put(obj *unstructured.Unstructured, values map[string]string, path ...string) {
	for key, value := range values {
		_ = unstructured.SetNestedField(obj.Object, value, append(slices.Clone(path), key)...)
	}
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
