package vsphere

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/check"
)

// requiredWebhook is a webhook with failurePolicy Fail. The API server calls it for each new Profile, or for the
// namespace of each new Profile.
type requiredWebhook struct {
	kind, config, resource, name string
	index, of                    int // position in its configuration, and number of webhooks in that configuration
	service                      *admissionv1.ServiceReference
	profiles                     bool // called for Profiles; false: for their namespaces
}

// failedWebhook is a webhook whose Service has no ready endpoint. found is "" if there is no such
// webhook.
type failedWebhook struct {
	found, fix string
	profiles   bool
}

// webhookWithoutEndpoint returns a webhook that rejects each new Profile or its namespace because
// the webhook's Service has no ready endpoint. It prefers a webhook that rejects namespaces,
// because such a webhook also affects existing Profiles.
func webhookWithoutEndpoint(ctx context.Context, e steps.Env) (failedWebhook, error) {
	hooks, err := requiredWebhooks(ctx, e)
	if err != nil {
		return failedWebhook{}, err
	}
	var out failedWebhook
	answers := map[string]bool{} // by Service
	for _, h := range hooks {
		service := h.service.Namespace + "/" + h.service.Name
		if _, known := answers[service]; !known {
			ready, err := check.ReadyAddresses(ctx, e.Cluster, h.service.Namespace, h.service.Name)
			if err != nil && !apierrors.IsForbidden(err) {
				return failedWebhook{}, err
			}
			answers[service] = ready > 0 || err != nil // endpoints that cannot be listed are assumed to be ready
		}
		if answers[service] || out.found != "" && (h.profiles || !out.profiles) {
			continue
		}
		out.profiles = h.profiles
		out.found = fmt.Sprintf("webhook %s of %s %s, with failurePolicy Fail, has no ready endpoint behind Service %s",
			clean.Name(h.name), h.kind, clean.Name(h.config), clean.Name(service))
		if out.fix, err = h.fix(ctx, e); err != nil {
			return failedWebhook{}, err
		}
	}
	return out, nil
}

// fix returns the command that makes the webhook's pods ready. If the webhook's Service does not exist, the command
// removes the webhook.
func (h requiredWebhook) fix(ctx context.Context, e steps.Env) (string, error) {
	at := e.Kubectl() + " -n " + steps.Quoted(h.service.Namespace)
	usual := at + " get service,deployments,pods    # find out why its Service has no ready pods"
	s, err := check.Get[corev1.Service](ctx, e.Cluster, check.Services, h.service.Namespace, h.service.Name)
	switch {
	case apierrors.IsNotFound(err) && h.of == 1:
		return fmt.Sprintf("%s delete %s %s    # its Service does not exist",
			e.Kubectl(), h.resource, steps.Quoted(h.config)), nil
	case apierrors.IsNotFound(err):
		patch := steps.JSONPatch(
			steps.PatchOp{Op: "test", Path: steps.Pointer("webhooks", h.index, "name"), Value: h.name},
			steps.PatchOp{Op: "remove", Path: steps.Pointer("webhooks", h.index)},
		)
		return fmt.Sprintf("%s patch %s %s %s    # its Service does not exist",
			e.Kubectl(), h.resource, steps.Quoted(h.config), patch), nil
	case apierrors.IsForbidden(err):
		return usual, nil
	case err != nil:
		return "", err
	}
	all, err := check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, "", cluster.Selector{})
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	for _, d := range all {
		behind := d.Namespace == s.Namespace && len(s.Spec.Selector) > 0 &&
			labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels))
		if behind && d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
			return check.ScaleUp(e, "deployment", d.Namespace, d.Name), nil
		}
	}
	return usual, nil
}

// requiredWebhooks returns the webhooks with failurePolicy Fail that the API server calls for each new Profile or for
// its namespace. It omits webhooks with matchConditions, because carrick does not evaluate them.
func requiredWebhooks(ctx context.Context, e steps.Env) ([]requiredWebhook, error) {
	var out []requiredWebhook
	var space map[string]string
	var validating []*admissionv1.ValidatingWebhookConfiguration
	var mutating []*admissionv1.MutatingWebhookConfiguration
	err := check.Together(
		func() (err error) { space, err = newSpaceLabels(ctx, e); return err },
		func() (err error) {
			validating, err = check.List[admissionv1.ValidatingWebhookConfiguration](
				ctx, e.Cluster, check.ValidatingWebhooks, "", cluster.Selector{})
			return unlessForbidden(err)
		},
		func() (err error) {
			mutating, err = check.List[admissionv1.MutatingWebhookConfiguration](
				ctx, e.Cluster, check.MutatingWebhooks, "", cluster.Selector{})
			return unlessForbidden(err)
		},
	)
	if err != nil {
		return nil, err
	}
	add := func(h requiredWebhook, fail *admissionv1.FailurePolicyType, rules []admissionv1.RuleWithOperations,
		namespaces, objects *metav1.LabelSelector, conditions int,
	) {
		open := fail != nil && *fail != admissionv1.Fail
		if open || h.service == nil || conditions > 0 {
			return
		}
		switch {
		case createsGlobal(rules, check.Namespaces) && selectorMatches(namespaces, space) &&
			selectorMatches(objects, space):
		case createsGlobal(rules, profileKind) && selectorMatches(objects, nil):
			h.profiles = true // a namespaceSelector does not apply to cluster-scoped objects
		default:
			return
		}
		out = append(out, h)
	}
	for _, c := range validating {
		for i, w := range c.Webhooks {
			h := requiredWebhook{
				kind: "ValidatingWebhookConfiguration", config: c.Name, resource: "validatingwebhookconfiguration", name: w.Name,
				index: i, of: len(c.Webhooks), service: w.ClientConfig.Service,
			}
			add(h, w.FailurePolicy, w.Rules, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions))
		}
	}
	for _, c := range mutating {
		for i, w := range c.Webhooks {
			h := requiredWebhook{
				kind: "MutatingWebhookConfiguration", config: c.Name, resource: "mutatingwebhookconfiguration", name: w.Name,
				index: i, of: len(c.Webhooks), service: w.ClientConfig.Service,
			}
			add(h, w.FailurePolicy, w.Rules, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions))
		}
	}
	return out, nil
}

// unlessForbidden returns nil instead of a Forbidden error, so that carrick ignores objects that it cannot read.
func unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// newSpaceLabels returns the labels that the profile controller and the API server set on a new
// namespace (kubeflow/dashboard: components/profile-controller/controllers/profile_controller.go).
func newSpaceLabels(ctx context.Context, e steps.Env) (map[string]string, error) {
	f, err := labelsFile(ctx, e)
	if err != nil && !steps.IsAbsent(err) && !apierrors.IsForbidden(err) {
		return nil, err
	}
	out := map[string]string{"istio-injection": "enabled", "kubernetes.io/metadata.name": "carrick-preview"}
	maps.Copy(out, f.labels)
	return out, nil
}

// createsGlobal reports whether rules match the creation of objects of kind, which must be cluster-scoped.
func createsGlobal(rules []admissionv1.RuleWithOperations, kind schema.GroupVersionResource) bool {
	return slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool {
		within := r.Scope != nil && *r.Scope == admissionv1.NamespacedScope
		creates := slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool {
			return o == admissionv1.Create || o == admissionv1.OperationAll
		})
		return !within && creates && covers(r.APIGroups, kind.Group) && covers(r.APIVersions, kind.Version) &&
			(covers(r.Resources, kind.Resource) || slices.Contains(r.Resources, "*/*"))
	})
}

// selectorMatches reports whether s matches the given labels. A nil selector matches all labels.
func selectorMatches(s *metav1.LabelSelector, of map[string]string) bool {
	if s == nil {
		return true
	}
	by, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && by.Matches(labels.Set(of))
}
