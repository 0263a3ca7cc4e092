package profiles

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAProfileIsLetGoWithItsNamespaceAlone(t *testing.T) {
	for owner, goes := range map[string]bool{"bob@example.com": true, "carol@example.com": false} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": "Profile",
			"metadata": map[string]any{"name": "bob", "finalizers": []any{finalizer}},
		}}
		p := &Player{
			client: fake.NewClientset(
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bob", Annotations: map[string]string{ownerKey: owner}}},
			),
			dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
				runtime.NewScheme(), map[schema.GroupVersionResource]string{kind: "ProfileList"}, object,
			),
		}
		one := &profile{
			ObjectMeta: metav1.ObjectMeta{
				Name: "bob", Finalizers: []string{finalizer}, DeletionTimestamp: &metav1.Time{Time: time.Now()},
			},
		}
		one.Spec.Owner = rbacv1.Subject{Kind: rbacv1.UserKind, Name: "bob@example.com"}
		if err := p.keep(t.Context(), one, nil); err != nil {
			t.Fatalf("%s: %v", owner, err)
		}
		now, err := p.dynamic.Resource(kind).Get(t.Context(), "bob", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(now.GetFinalizers(), finalizer) == goes {
			t.Errorf("the namespace is %s's: finalizers %v", owner, now.GetFinalizers())
		}
	}
}

func TestScalarsOfTheFileAreTexts(t *testing.T) {
	labels, err := parse("text: a\nbare: true\nnumber: 1.0\nempty: \"\"\nnothing:\n")
	want := map[string]string{"text": "a", "bare": "true", "number": "1.0", "empty": "", "nothing": ""}
	if err != nil || !maps.Equal(labels, want) {
		t.Errorf("%v, %v", labels, err)
	}
	if _, err := parse("- a list\n"); err == nil {
		t.Error("a list is accepted")
	}
}
