package extension

import (
	"errors"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

var rule = Rule{Class: "nfs-client", From: []string{"vsphere-policy", "vsan"}}

// asked returns an AdmissionReview for an object, changed by the given functions.
func asked(object string, change ...func(*admissionv1.AdmissionReview)) []byte {
	r := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u-1", Operation: admissionv1.Create, Resource: claims, Namespace: "alice",
			Object: runtime.RawExtension{Raw: []byte(object)},
		},
	}
	for _, c := range change {
		c(r)
	}
	out, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return out
}

// of returns the JSON of a claim with a spec.
func of(spec string) string {
	return `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"alice"},"spec":{` +
		spec + `}}`
}

func TestReview(t *testing.T) {
	const many, once, asks = `"accessModes":["ReadWriteMany"]`, `"accessModes":["ReadWriteOnce"]`, `,"resources":{"requests":{"storage":"1Gi"}}`
	update := func(r *admissionv1.AdmissionReview) { r.Request.Operation = admissionv1.Update }
	for _, tc := range []struct {
		situation string
		body      []byte
		class     string // "-": no patch
		came      Outcome
	}{
		{"no class", asked(of(many + asks)), "nfs-client", Changed},
		{
			"the default class, as DefaultStorageClass has filled in",
			asked(of(many + asks + `,"storageClassName":"vsphere-policy"`)), "nfs-client", Changed,
		},
		{"another class that is exchanged", asked(of(many + asks + `,"storageClassName":"vsan"`)), "nfs-client", Changed},
		{"one of several modes", asked(of(`"accessModes":["ReadWriteOnce","ReadWriteMany"]` + asks)), "nfs-client", Changed},
		{"no request for storage: upstream's answer to that is 500", asked(of(many)), "nfs-client", Changed},
		{"the empty class: a volume that is there", asked(of(many + asks + `,"storageClassName":""`)), "-", Kept},
		{
			"a volume by its name", asked(of(many + asks + `,"storageClassName":"vsphere-policy","volumeName":"pv-1"`)), "-",
			Kept,
		},
		{"a class that is not exchanged", asked(of(many + asks + `,"storageClassName":"cephfs"`)), "-", Kept},
		{"the class already", asked(of(many + asks + `,"storageClassName":"nfs-client"`)), "-", Kept},
		{"one pod writes", asked(of(once + asks + `,"storageClassName":"vsphere-policy"`)), "-", Kept},
		{"one pod writes, no class", asked(of(once + asks)), "-", Kept},
		{"no modes", asked(of(`"resources":{}`)), "-", Kept},
		{
			"the old annotation",
			asked(
				`{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"vsphere-policy"}},"spec":{` + many + `}}`,
			),
			"annotation", Changed,
		},
		{
			"the old annotation, another class",
			asked(
				`{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"cephfs"}},"spec":{` + many +
					`,"storageClassName":"vsphere-policy"}}`,
			),
			"-", Kept,
		},
		{"an update", asked(of(many+asks), update), "-", Kept},
		{
			"another kind", asked(of(many), func(r *admissionv1.AdmissionReview) { r.Request.Resource.Resource = "pods" }), "-",
			Kept,
		},
		{
			"the kind of another group",
			asked(of(many), func(r *admissionv1.AdmissionReview) { r.Request.Resource.Group = "example.org" }), "-", Kept,
		},
		{"its status", asked(of(many), func(r *admissionv1.AdmissionReview) { r.Request.SubResource = "status" }), "-", Kept},
		{"modes that are no list", asked(of(`"accessModes":"ReadWriteMany"`)), "-", Unread},
		{"a class that is no text", asked(of(many + `,"storageClassName":7`)), "-", Unread},
		{"no object", asked("null"), "-", Unread},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			out, reviewed, err := rule.Review(tc.body)
			if err != nil || reviewed.Outcome != tc.came {
				t.Fatalf("%s, %v; wanted %s", reviewed.Outcome, err, tc.came)
			}
			var r admissionv1.AdmissionReview
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if r.Kind != "AdmissionReview" || r.APIVersion != "admission.k8s.io/v1" || r.Request != nil || !r.Response.Allowed ||
				r.Response.UID != "u-1" {
				t.Fatalf("an API server does not take this: %s", out)
			}
			if (len(r.Response.Warnings) > 0) != (tc.came == Unread) {
				t.Errorf("warnings %q", r.Response.Warnings)
			}
			if got := classAfter(t, tc.body, r.Response); got != tc.class {
				t.Errorf("class %q, wanted %q", got, tc.class)
			}
		})
	}
}

// classAfter returns the StorageClass that the patch in an answer sets, or "-" if there is no patch.
func classAfter(t *testing.T, body []byte, answer *admissionv1.AdmissionResponse) string {
	t.Helper()
	if answer.Patch == nil {
		if answer.PatchType != nil {
			t.Error("a type of no patch")
		}
		return "-"
	}
	if answer.PatchType == nil || *answer.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("patch type %v", answer.PatchType)
	}
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(in.Request.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	var c claim
	if err := json.Unmarshal(after, &c); err != nil {
		t.Fatal(err)
	}
	if note, ok := c.Metadata.Annotations[corev1.BetaStorageClassAnnotation]; ok && note == rule.Class &&
		c.Spec.StorageClassName == nil {
		return "annotation"
	}
	return *c.Spec.StorageClassName
}

func TestWhatIsNoReview(t *testing.T) {
	for situation, body := range map[string][]byte{
		"nothing":    nil,
		"no JSON":    []byte("hello"),
		"a list":     []byte("[]"),
		"no request": []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`),
		"no UID":     asked("{}", func(r *admissionv1.AdmissionReview) { r.Request.UID = "" }),
		"the version before": asked(
			"{}", func(r *admissionv1.AdmissionReview) { r.APIVersion = "admission.k8s.io/v1beta1" },
		),
		"another kind":        asked("{}", func(r *admissionv1.AdmissionReview) { r.Kind = "TokenReview" }),
		"a request that is 7": []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":7}`),
	} {
		if out, came, err := rule.Review(body); !errors.Is(err, errNoReview) || out != nil || came.Outcome != Malformed {
			t.Errorf("%s: %s, %s, %v", situation, came.Outcome, out, err)
		}
	}
}

// For any input, an answer allows the request and has its UID. If an API server sent the request, the patch changes at
// most one field: the class of a ReadWriteMany claim, which becomes the rule's class.
func FuzzReview(f *testing.F) {
	f.Add(asked(of(`"accessModes":["ReadWriteMany"]`)))
	f.Add(asked(of(`"accessModes":["ReadWriteMany"],"storageClassName":"vsphere-policy"`)))
	f.Add(
		asked(
			`{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"vsan"}},"spec":{"accessModes":["ReadWriteMany"]}}`,
		),
	)
	f.Add(asked("null"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		answered(t, body)
		var any map[string]any
		if json.Unmarshal(body, &any) != nil {
			return
		}
		body, err := json.Marshal(any)
		if err != nil {
			return
		}
		in, r := answered(t, body)
		if r == nil || r.Response.Patch == nil {
			return
		}
		var c claim
		if err := json.Unmarshal(in.Request.Object.Raw, &c); err != nil ||
			!slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany) {
			t.Fatalf("%s is changed: %v", in.Request.Object.Raw, err)
		}
		if got := classAfter(t, body, r.Response); got != rule.Class && got != "annotation" {
			t.Fatalf("%s: class %s", in.Request.Object.Raw, got)
		}
	})
}

// answered returns a review and its answer, or nil if the body contains no request.
func answered(t *testing.T, body []byte) (in, out *admissionv1.AdmissionReview) {
	t.Helper()
	text, came, err := rule.Review(body)
	if err != nil {
		if !errors.Is(err, errNoReview) || text != nil {
			t.Fatalf("%s, %v", text, err)
		}
		return nil, nil
	}
	in, out = &admissionv1.AdmissionReview{}, &admissionv1.AdmissionReview{}
	if err := errors.Join(json.Unmarshal(body, in), json.Unmarshal(text, out)); err != nil {
		t.Fatal(err)
	}
	if !out.Response.Allowed || out.Response.UID != in.Request.UID ||
		(came.Outcome == Changed) != (out.Response.Patch != nil) {
		t.Fatalf("%s: %s", came.Outcome, text)
	}
	return in, out
}
