package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// Managed makes cert-manager issue a certificate. Undo also deletes the Secrets that cert-manager wrote, because
// cert-manager keeps them when a Certificate is deleted.
type Managed struct {
	action.Manifest
	Namespace func(steps.Env) string
	Leaf      string            // Secret of the server certificate
	Writes    map[string]string // names of all Secrets including Leaf; maps each to its Certificate
	Home      string            // the action that creates the namespace
}

const nameNote = "cert-manager.io/certificate-name"

// PlanUndo also plans to delete the Secrets that cert-manager wrote.
func (m Managed) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	left, err := m.left(ctx, e)
	if err != nil {
		return c, err
	}
	for _, s := range left {
		c.Items = append(
			c.Items,
			steps.Item{
				Verb: steps.Delete, What: "Secret " + s.Namespace + "/" + s.Name, Note: "written by cert-manager, unchanged",
			},
		)
		c.Permissions = append(
			c.Permissions, permission.Rule{Verb: "delete", Resource: "secrets", Namespace: s.Namespace, Name: s.Name},
		)
		if c.Along == nil {
			c.Along = map[steps.Side][]string{}
		}
		c.Along[e.Side] = append(c.Along[e.Side], "Secret "+s.Namespace+"/"+s.Name)
	}
	return c, nil
}

// Undo deletes the Secrets last, because cert-manager recreates the Secret of an existing Certificate.
func (m Managed) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	left, err := m.left(ctx, e)
	if err != nil {
		return err
	}
	if err := m.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	for _, s := range left {
		err := e.Cluster.Delete(ctx, check.Secrets, s.Namespace, s.Name, s.UID)
		if err == nil {
			err = e.Cluster.Gone(ctx, check.Secrets, s.Namespace, s.Name, s.UID)
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return err
		}
		say.Did(steps.Delete, "Secret "+s.Namespace+"/"+s.Name, "")
	}
	return nil
}

// left returns the Secrets that cert-manager wrote for this link's Certificates. It searches the namespaces of the
// existing Certificates and the namespace that the link created.
func (m Managed) left(ctx context.Context, e steps.Env) ([]metav1.PartialObjectMetadata, error) {
	var spaces []string
	standing, err := inventory.MadeBy(ctx, e, Certificates, e.Action)
	if err != nil && !errors.Is(err, failure.ErrNotServed) {
		return nil, err
	}
	for _, c := range standing {
		spaces = append(spaces, c.Namespace)
	}
	made, err := inventory.MadeBy(ctx, e, check.Namespaces, m.Home)
	if err != nil {
		return nil, err
	}
	for _, n := range made {
		if n.Created {
			spaces = append(spaces, n.Name)
		}
	}
	slices.Sort(spaces)
	var out []metav1.PartialObjectMetadata
	for _, ns := range slices.Compact(spaces) {
		secrets, err := e.Cluster.Find(ctx, check.Secrets, ns, cluster.Selector{})
		if err != nil {
			return nil, err
		}
		for _, s := range secrets {
			if of := m.Writes[s.Name]; of != "" && s.Annotations[nameNote] == of {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// Ready verifies that cert-manager has issued the certificate into the given Secret.
func Ready(ctx context.Context, e steps.Env, namespace, secret string) steps.Result {
	c, err := Filling(ctx, e, namespace, secret)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Undone(absent.Error())
	}
	if err != nil {
		return steps.Errored(err)
	}
	said, since := "cert-manager has reported no status yet", c.GetCreationTimestamp().Time
	if ready := check.Condition(c, "Ready"); ready != nil {
		if ready["status"] == "True" {
			return steps.Passed("Certificate %s is Ready", c.GetName())
		}
		said = clean.Text(fmt.Sprint(ready["message"]))
		if at, err := time.Parse(time.RFC3339, fmt.Sprint(ready["lastTransitionTime"])); err == nil {
			since = at
		}
	}
	if cause := whyNotIssued(ctx, e, c); cause != "" {
		said += "; " + cause
	}
	return steps.Waits(
		since, "Certificate %s is not Ready: %s", c.GetName(), said,
	).Or(e.Kubectl() + " describe certificate,certificaterequest -n " + namespace)
}

// whyNotIssued returns why cert-manager does not issue a Certificate, or "" if the cause is unknown. The condition
// Ready only repeats why another certificate was requested. If a request has failed, the condition Issuing contains the
// cause. Otherwise the issuer or the newest CertificateRequest contains it (cert-manager/cert-manager v1.21.1:
// pkg/controller/certificates/issuing/issuing_controller.go, failIssueCertificate, and
// pkg/controller/certificaterequests/sync.go).
func whyNotIssued(ctx context.Context, e steps.Env, c *unstructured.Unstructured) string {
	message := func(of *unstructured.Unstructured, kind string) string {
		if m := check.Condition(of, kind); m != nil && m["status"] == "False" {
			if text, _ := m["message"].(string); text != "" {
				return clean.Text(text)
			}
		}
		return ""
	}
	if text := message(c, "Issuing"); text != "" {
		return text
	}
	kind, _, _ := unstructured.NestedString(c.Object, "spec", "issuerRef", "kind")
	name, _, _ := unstructured.NestedString(c.Object, "spec", "issuerRef", "name")
	if kind == "" || kind == "Issuer" {
		if issuer, err := e.Cluster.Get(ctx, Issuers, c.GetNamespace(), name); err == nil {
			if text := message(issuer, "Ready"); text != "" {
				return "Issuer " + issuer.GetName() + " is not Ready: " + text
			}
		}
	}
	requests, err := e.Cluster.List(ctx, certificateRequests, c.GetNamespace(), cluster.Selector{})
	if err != nil {
		return "" // permission to manage Certificates does not include CertificateRequests
	}
	var newest *unstructured.Unstructured
	for _, r := range requests {
		if !metav1.IsControlledBy(r, c) {
			continue
		}
		if newest == nil || newest.GetCreationTimestamp().Time.Before(r.GetCreationTimestamp().Time) {
			newest = r
		}
	}
	if newest == nil {
		return ""
	}
	if text := message(newest, "Ready"); text != "" {
		return "CertificateRequest " + newest.GetName() + ": " + text
	}
	return ""
}

// Filling returns the Certificate resource whose Secret is the given one. If there is none, it returns an AbsentError.
func Filling(ctx context.Context, e steps.Env, namespace, secret string) (*unstructured.Unstructured, error) {
	all, err := e.Cluster.List(ctx, Certificates, namespace, cluster.Selector{})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if into, _, _ := unstructured.NestedString(c.Object, "spec", "secretName"); into == secret {
			return c, nil
		}
	}
	return nil, steps.Absent("no Certificate in %s writes Secret %s", namespace, secret)
}
