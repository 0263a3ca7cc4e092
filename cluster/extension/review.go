package extension

import (
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// Rule selects the claims to change: new ReadWriteMany claims that request no StorageClass or one of From. It does not
// select a claim that names its volume, or a claim whose class is "", which requests an existing volume.
type Rule struct {
	Class string   // StorageClass that the claims get
	From  []string // StorageClasses that are replaced
}

// Outcome is the outcome of a review.
type Outcome string

// The outcomes of a review. The webhook always allows the claim.
const (
	Changed   Outcome = "changed"
	Kept      Outcome = "kept"
	Unread    Outcome = "unread"    // the claim cannot be parsed
	Malformed Outcome = "malformed" // the body is not a review: errNoReview
)

// Reviewed describes a review and its outcome.
type Reviewed struct {
	Outcome
	Namespace, Name string // of the claim; if the name ends with "*", the API server generates the rest
	Was, Class      string // StorageClass of the claim before and after the review; "": none
	UID             string // UID of the request
	DryRun          bool
}

// errNoReview means that a request's body is not an AdmissionReview v1 with a request.
var errNoReview = errors.New("not an AdmissionReview of admission.k8s.io/v1 with a request")

// claims is the only resource that the webhook reviews.
var claims = metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// claim contains the fields of a PersistentVolumeClaim that a review reads.
type claim struct {
	Metadata struct {
		GenerateName string            `json:"generateName"`
		Annotations  map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		AccessModes      []corev1.PersistentVolumeAccessMode `json:"accessModes"`
		StorageClassName *string                             `json:"storageClassName"`
		VolumeName       string                              `json:"volumeName"`
	} `json:"spec"`
}

// operation is one operation of a JSON patch (RFC 6902). "add" also replaces an existing value.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Paths at which a claim names its StorageClass. The annotation is older and takes precedence over the field
// (kubernetes/kubernetes: pkg/apis/core/v1/helper.GetPersistentVolumeClaimClass).
const (
	classField = "/spec/storageClassName"
	classNote  = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class"
)

// class returns the StorageClass that the claim requests, and the path at which the claim names it. has is false if the
// claim requests none.
func (c claim) class() (name, at string, has bool) {
	if note, ok := c.Metadata.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return note, classNote, true
	}
	if c.Spec.StorageClassName == nil {
		return "", classField, false
	}
	return *c.Spec.StorageClassName, classField, true
}

// patch returns the patch for a claim, or nil if the claim stays unchanged.
func (r Rule) patch(c claim) []operation {
	was, at, has := c.class()
	switch {
	case !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteMany), c.Spec.VolumeName != "":
		return nil
	case has && (was == "" || was == r.Class || !slices.Contains(r.From, was)):
		return nil
	}
	return []operation{{Op: "add", Path: at, Value: r.Class}}
}

// Review answers an AdmissionReview. It never denies a request. It returns an error if the body is not an
// AdmissionReview with a request.
func (r Rule) Review(body []byte) ([]byte, Reviewed, error) {
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, Reviewed{Outcome: Malformed}, fmt.Errorf("%w: %w", errNoReview, err)
	}
	if in.APIVersion != admissionv1.SchemeGroupVersion.String() || in.Kind != "AdmissionReview" || in.Request == nil ||
		in.Request.UID == "" {
		return nil, Reviewed{Outcome: Malformed}, errNoReview
	}
	answer, reviewed := r.judge(in.Request)
	answer.UID, answer.Allowed = in.Request.UID, true
	out, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: answer})
	return out, reviewed, err
}

func (r Rule) judge(q *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, Reviewed) {
	out := Reviewed{
		Outcome: Kept, Namespace: q.Namespace, Name: q.Name, UID: string(q.UID), DryRun: q.DryRun != nil && *q.DryRun,
	}
	if q.Operation != admissionv1.Create || q.Resource != claims || q.SubResource != "" {
		return &admissionv1.AdmissionResponse{}, out
	}
	var c claim
	if err := json.Unmarshal(q.Object.Raw, &c); err != nil {
		out.Outcome = Unread
		return &admissionv1.AdmissionResponse{
			Warnings: []string{"carrick's webhook cannot parse this claim and does not change its StorageClass"},
		}, out
	}
	if out.Name == "" && c.Metadata.GenerateName != "" {
		out.Name = c.Metadata.GenerateName + "*"
	}
	out.Was, _, _ = c.class()
	out.Class = out.Was
	operations := r.patch(c)
	if operations == nil {
		return &admissionv1.AdmissionResponse{}, out
	}
	patch, err := json.Marshal(operations)
	if err != nil { // cannot happen, because the patch contains only strings
		out.Outcome = Unread
		return &admissionv1.AdmissionResponse{}, out
	}
	kind := admissionv1.PatchTypeJSONPatch
	out.Outcome, out.Class = Changed, r.Class
	return &admissionv1.AdmissionResponse{Patch: patch, PatchType: &kind}, out
}
