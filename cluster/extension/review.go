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

// Rule selects the claims to change: new ReadWriteMany claims that request no StorageClass or one of From. A claim with
// the empty class requests an existing volume, and keeps it. So does a claim that names its volume.
type Rule struct {
	Class string   // the StorageClass that the claims get
	From  []string // the StorageClasses that are replaced
}

// Outcome is the outcome of a review.
type Outcome string

// The outcomes. A claim is always allowed.
const (
	Changed   Outcome = "changed"
	Kept      Outcome = "kept"
	Unread    Outcome = "unread"    // the claim cannot be parsed
	Malformed Outcome = "malformed" // not a review: errNoReview
)

// Reviewed describes a review and its outcome.
type Reviewed struct {
	Outcome
	Namespace, Name string // of the claim; the name may end with "*": the API server generates the rest
	Was, Class      string // its StorageClass before and after; "": none
	UID             string // of the request
	DryRun          bool
}

// errNoReview means that a body is not an AdmissionReview v1 with a request.
var errNoReview = errors.New("not an AdmissionReview of admission.k8s.io/v1 with a request")

// claims is the only resource that is reviewed.
var claims = metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// claim holds the fields of a PersistentVolumeClaim that a review reads.
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

// operation is one operation of a JSON patch (RFC 6902): "add" replaces an existing value.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// The places where a claim names its StorageClass. The annotation is older, and takes precedence over the field
// (kubernetes/kubernetes: pkg/apis/core/v1/helper.GetPersistentVolumeClaimClass).
const (
	classField = "/spec/storageClassName"
	classNote  = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class"
)

// class returns the StorageClass that the claim requests, and the path of the field that names it. has is false if it
// requests none.
func (c claim) class() (name, at string, has bool) {
	if note, ok := c.Metadata.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return note, classNote, true
	}
	if c.Spec.StorageClassName == nil {
		return "", classField, false
	}
	return *c.Spec.StorageClassName, classField, true
}

// patch returns the patch for a claim; nil leaves it unchanged.
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

// Review answers an AdmissionReview, and never denies a request. It returns an error if there is no request to answer.
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

// judge returns the response to a request.
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
			Warnings: []string{"carrick's webhook cannot parse this claim: it keeps its storage class"},
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
	if err != nil { // class names are strings, which always marshal
		out.Outcome = Unread
		return &admissionv1.AdmissionResponse{}, out
	}
	kind := admissionv1.PatchTypeJSONPatch
	out.Outcome, out.Class = Changed, r.Class
	return &admissionv1.AdmissionResponse{Patch: patch, PatchType: &kind}, out
}
