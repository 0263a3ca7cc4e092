package liqo

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/steps"
)

// standsAlready is the plan where a credential of somebody else's is in use.
func standsAlready(consumer steps.Facts) steps.Change {
	name, _ := standing(consumer, "control-plane", "name").(string)
	return steps.Change{Items: []steps.Item{{
		Verb: steps.Leave, What: "Secret " + name, Note: "a credential that somebody else made is in use; carrick makes one when that Secret is gone",
	}}}
}

// credentialKey makes a key unless another credential is in use.
type credentialKey struct{ steps.Mint }

// Plan leaves a credential of somebody else's.
func (k credentialKey) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	if foreign(e.Own) {
		return standsAlready(e.Own), nil
	}
	return k.Mint.Plan(ctx, e)
}

// Do makes nothing beside a credential of somebody else's.
func (k credentialKey) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if foreign(e.Own) {
		return nil
	}
	return k.Mint.Do(ctx, e, say)
}

// certificateRequest asks the provider's cluster for the consumer's certificate
// and approves that, unless the consumer holds one already.
type certificateRequest struct{ steps.Manifest }

// signer is who signs client certificates in Kubernetes.
const signer = "kubernetes.io/kube-apiserver-client"

// Plan shows the request and its approval.
func (r certificateRequest) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	switch {
	case foreign(e.Peer):
		return standsAlready(e.Peer), nil
	case stored(e.Peer):
		return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: "CertificateSigningRequest", Note: "the consumer holds its certificate already"}}}, nil
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	c, err := r.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	c.Rights = append(c.Rights,
		cluster.Right{Verb: "update", Group: signingRequests.Group, Resource: signingRequests.Resource, Subresource: "approval"},
		cluster.Right{Verb: "approve", Group: signingRequests.Group, Resource: "signers", Name: signer})
	approved, err := isApproved(ctx, e, name.(string))
	if err == nil && !approved {
		c.Items = append(c.Items, steps.Item{Verb: steps.Run, What: "approve CertificateSigningRequest " + name.(string), Hash: name.(string)})
	}
	return c, err
}

// Do asks, then approves.
func (r certificateRequest) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if foreign(e.Peer) || stored(e.Peer) {
		return nil
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return err
	}
	if err := r.Manifest.Do(ctx, e, say); err != nil {
		return err
	}
	if approved, err := isApproved(ctx, e, name.(string)); err != nil || approved {
		return err
	}
	if err := e.Cluster.Approve(ctx, name.(string), "LiqoPeering", "approved by an admin of the provider with carrick, for link "+e.Link); err != nil {
		return err
	}
	say.Did(steps.Run, "approve CertificateSigningRequest "+name.(string), name.(string))
	return nil
}

// isApproved tells whether the request is there and was approved.
func isApproved(ctx context.Context, e steps.Env, name string) (bool, error) {
	csr := &unstructured.Unstructured{}
	csr.SetAPIVersion(signingRequests.GroupVersion().String())
	csr.SetKind("CertificateSigningRequest")
	csr.SetName(name)
	live, err := e.Cluster.Fetch(ctx, csr)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read CertificateSigningRequest %s: %w", name, err)
	}
	return approval(live) == "Approved", nil
}

// approval is what became of a request: "Approved", "Denied", "Failed" or "".
func approval(csr *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(csr.Object, "status", "conditions")
	out := ""
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if kind, _ := m["type"].(string); kind != "Approved" || out == "" {
			out = kind
		}
	}
	return out
}

// Export says what to do in place of the approval.
func (r certificateRequest) Export(ctx context.Context, e steps.Env) ([]steps.Exported, error) {
	out, err := r.Manifest.Export(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return []steps.Exported{{Left: "the consumer's certificate request: " + absent.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	name, err := requestName(ctx, e)
	if err != nil {
		return nil, err
	}
	return append(out, steps.Exported{Hand: e.Kubectl() + " certificate approve " + name.(string)}), nil
}
