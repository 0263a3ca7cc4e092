package liqopeer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"carrick/cluster/sandbox/pki"
)

// hooksName is the name of both webhook configurations.
const hooksName = "liqo-webhook-stand-in"

const hookWithin = 5 * time.Second

// hooks is the HTTPS server for the webhooks of both clusters. It listens on loopback. The paths are /CLUSTER/HOOK. The
// webhooks also run for dry runs.
type hooks struct {
	authority *pki.Authority
	server    *http.Server
	routes    *http.ServeMux
	base      string
}

// hook is a webhook for one resource.
type hook struct {
	group, resource string
	operations      []registrationv1.OperationType
	// judge returns nil, or the error for a denied request.
	judge func(context.Context, *site, *admissionv1.AdmissionRequest) error
	// mutate returns a JSON patch for an admitted request, or nil.
	mutate func(*admissionv1.AdmissionRequest) ([]map[string]any, error)
}

// denial denies a request. All other errors mean that the request could not be validated.
type denial struct {
	code int32
	text string
}

func (d denial) Error() string { return d.text }

func deny(code int32, format string, values ...any) error {
	return denial{code, fmt.Sprintf(format, values...)}
}

func listen() (*hooks, error) {
	authority, err := pki.NewAuthority(hooksName)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Server("127.0.0.1")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hooks{authority: authority, routes: http.NewServeMux(), base: "https://" + listener.Addr().String()}
	h.server = &http.Server{
		Handler: h.routes, ReadHeaderTimeout: hookWithin, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = h.server.ServeTLS(listener, "", "") }()
	return h, nil
}

func (h *hooks) close() { _ = h.server.Close() }

// register registers the webhooks in a cluster.
func (h *hooks) register(ctx context.Context, name string, s *site) error {
	validating := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: hooksMeta()}
	for id, hook := range validatingHooks {
		path := "/" + name + "/" + id
		h.routes.HandleFunc(path, answer(s, hook.judge))
		validating.Webhooks = append(validating.Webhooks, registrationv1.ValidatingWebhook{
			Name: id + ".liqo.io", ClientConfig: h.at(path), Rules: hook.rules(),
			SideEffects: none(), FailurePolicy: fail(), AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: seconds(),
		})
	}
	mutating := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: hooksMeta()}
	for id, hook := range mutatingHooks {
		path := "/" + name + "/mutate-" + id
		h.routes.HandleFunc(path, change(s, hook))
		mutating.Webhooks = append(mutating.Webhooks, registrationv1.MutatingWebhook{
			Name: id + ".mutate.liqo.io", ClientConfig: h.at(path), Rules: hook.rules(),
			SideEffects: none(), FailurePolicy: fail(), AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: seconds(),
		})
	}
	h.unregister(s) // a killed sandbox can leave webhooks behind
	api := s.client.AdmissionregistrationV1()
	_, err1 := api.ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
	_, err2 := api.MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{})
	return errors.Join(err1, err2)
}

// unregister deletes the webhook configurations. It ignores errors, because the cluster might not respond.
func (h *hooks) unregister(s *site) {
	ctx, cancel := context.WithTimeout(context.Background(), hookWithin)
	defer cancel()
	api := s.client.AdmissionregistrationV1()
	_ = api.ValidatingWebhookConfigurations().Delete(ctx, hooksName, metav1.DeleteOptions{})
	_ = api.MutatingWebhookConfigurations().Delete(ctx, hooksName, metav1.DeleteOptions{})
}

func hooksMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: hooksName, Labels: map[string]string{"app.kubernetes.io/part-of": "liqo"},
		Annotations: map[string]string{standIn: "served by the sandbox instead of Liqo's webhooks"},
	}
}

func (h *hooks) at(path string) registrationv1.WebhookClientConfig {
	url := h.base + path
	return registrationv1.WebhookClientConfig{URL: &url, CABundle: h.authority.Cert}
}

func (k hook) rules() []registrationv1.RuleWithOperations {
	return []registrationv1.RuleWithOperations{{
		Operations: k.operations,
		Rule: registrationv1.Rule{
			APIGroups: []string{k.group}, APIVersions: []string{version}, Resources: []string{k.resource},
		},
	}}
}

func none() *registrationv1.SideEffectClass {
	class := registrationv1.SideEffectClassNone
	return &class
}

func fail() *registrationv1.FailurePolicyType {
	policy := registrationv1.Fail
	return &policy
}

func seconds() *int32 {
	n := int32(hookWithin / time.Second)
	return &n
}

// answer returns the handler of a validating webhook.
func answer(s *site, judge func(context.Context, *site, *admissionv1.AdmissionRequest) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, func(request *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) {
			refuse(response, judge(r.Context(), s, request))
		})
	}
}

// change returns the handler of a mutating webhook. It also validates the request.
func change(s *site, k hook) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, func(request *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) {
			if k.judge != nil {
				if err := k.judge(r.Context(), s, request); err != nil {
					refuse(response, err)
					return
				}
			}
			operations, err := k.mutate(request)
			if err == nil && len(operations) > 0 {
				kind := admissionv1.PatchTypeJSONPatch
				response.PatchType = &kind
				response.Patch, err = json.Marshal(operations)
			}
			refuse(response, err)
		})
	}
}

// refuse adds an error to a response. It does nothing if err is nil.
func refuse(response *admissionv1.AdmissionResponse, err error) {
	if err == nil {
		return
	}
	code, reason := int32(http.StatusInternalServerError), metav1.StatusReasonInternalError
	var d denial
	if errors.As(err, &d) {
		code, reason = d.code, ""
		if code == http.StatusForbidden {
			reason = metav1.StatusReasonForbidden
		}
	}
	response.Allowed = false
	response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: err.Error(), Reason: reason}
}

func serve(
	w http.ResponseWriter, r *http.Request, fill func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse),
) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "the request is not an AdmissionReview", http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	fill(review.Request, response)
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func decode[S, T any](raw runtime.RawExtension) (*object[S, T], error) {
	o := &object[S, T]{}
	if len(raw.Raw) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(raw.Raw, o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}
