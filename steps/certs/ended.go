package certs

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster/permission"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// Plan makes cert-manager reissue an expired certificate immediately. Otherwise cert-manager would wait for 1 to 32
// hours after a failure, regardless of the Secret (cert-manager/cert-manager v1.21.1:
// pkg/controller/certificates/trigger/trigger_controller.go, ProcessItem).
func (m Managed) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	x, err := m.expired(ctx, e)
	if err != nil || x == nil {
		return c, err
	}
	c.Items = append(c.Items, steps.Item{
		Verb: steps.Update, What: x.what(), Hash: string(x.GetUID()) + x.at.UTC().Format(time.RFC3339),
		Note: "its certificate expired on " + x.at.UTC().Format(time.DateOnly) +
			"; carrick makes cert-manager reissue it now, like cmctl renew",
	})
	c.Permissions = append(c.Permissions, permission.Rule{
		Verb: "update", Group: Certificates.Group, Resource: Certificates.Resource, Subresource: "status",
		Namespace: x.GetNamespace(), Name: x.GetName(),
	})
	return c, nil
}

// Do writes the Certificate before it renews an expired certificate. cert-manager then issues the new certificate from
// the current specification.
func (m Managed) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := m.Manifest.Do(ctx, e, say); err != nil {
		return err
	}
	x, err := m.expired(ctx, e)
	if err != nil || x == nil {
		return err
	}
	if err := renew(ctx, e, x.GetNamespace(), x.GetName()); err != nil {
		return err
	}
	say.Did(steps.Update, x.what(), "")
	return nil
}

type expired struct {
	*unstructured.Unstructured
	at time.Time
}

func (x expired) what() string {
	return "status of Certificate " + x.GetNamespace() + "/" + x.GetName()
}

// expired returns the Certificate resource of the leaf if the issued certificate has expired. It returns nil if the
// certificate is valid or cert-manager is already issuing another one.
func (m Managed) expired(ctx context.Context, e steps.Env) (*expired, error) {
	namespace := m.Namespace(e)
	s, err := e.Cluster.Secret(ctx, namespace, m.Leaf, "tls.crt")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || s.Annotations[nameNote] != m.Writes[m.Leaf] {
		return nil, err
	}
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	if err != nil || time.Now().Before(chain[0].NotAfter) {
		return nil, nil // cert-manager replaces an unreadable certificate automatically
	}
	c, err := e.Cluster.Get(ctx, Certificates, namespace, m.Writes[m.Leaf])
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || Issuing(c) {
		return nil, err
	}
	return &expired{c, chain[0].NotAfter}, nil
}

// RenewLine returns the command that makes cert-manager issue a certificate immediately, without waiting for its
// backoff.
func RenewLine(e steps.Env, namespace, name string) string {
	flags := strings.TrimPrefix(e.Kubectl(), "kubectl")
	return fmt.Sprintf(
		"cmctl%s renew -n %s %s    # to see why cert-manager has not renewed it: %s -n %s describe "+
			"certificate,certificaterequest",
		flags, namespace, steps.Quoted(name), e.Kubectl(), namespace,
	)
}

// Issuing reports whether cert-manager is issuing a Certificate. cert-manager then waits for a CertificateRequest, and
// changing the Secret does not make it retry.
func Issuing(c *unstructured.Unstructured) bool {
	now := check.Condition(c, "Issuing")
	return now != nil && now["status"] == "True"
}

// renew does the same as cmctl renew (cert-manager/cmctl 9f4f8916: pkg/renew/renew.go).
func renew(ctx context.Context, e steps.Env, namespace, name string) error {
	return e.Cluster.UpdateStatus(
		ctx, Certificates, namespace, name, e.Manager(), func(c *unstructured.Unstructured) (bool, error) {
			if Issuing(c) {
				return false, nil
			}
			conditions := []any{map[string]any{
				"type": "Issuing", "status": "True",
				"reason": "ManuallyTriggered", "message": "Certificate re-issuance manually triggered",
				"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": c.GetGeneration(),
			}}
			old, _, err := unstructured.NestedSlice(c.Object, "status", "conditions")
			if err != nil {
				return false, err
			}
			for _, v := range old {
				if m, _ := v.(map[string]any); m["type"] != "Issuing" {
					conditions = append(conditions, v)
				}
			}
			return true, unstructured.SetNestedSlice(c.Object, conditions, "status", "conditions")
		},
	)
}
