package interlink

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/check"
)

// managedCertificate has cert-manager issue. What it wrote goes with the undo:
// cert-manager leaves its Secrets when a Certificate goes.
type managedCertificate struct{ steps.Manifest }

const certNameNote = "cert-manager.io/certificate-name"

// Plan has a certificate that has ended issued anew: cert-manager does that when
// the Secret is gone, and not by itself once it has given up.
func (m managedCertificate) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	s, at, err := endedSecret(ctx, e)
	if err != nil || s == nil {
		return c, err
	}
	c.Items = append(c.Items, steps.Item{
		Verb: steps.Delete, What: "Secret " + s.Namespace + "/" + s.Name, Hash: s.UID,
		Note: "its certificate ended on " + at.UTC().Format(time.DateOnly) + ": cert-manager issues it anew",
	})
	c.Rights = append(c.Rights, cluster.Right{Verb: "delete", Resource: "secrets", Namespace: s.Namespace, Name: s.Name})
	return c, nil
}

// Do writes the Certificate first: what is issued anew is issued by that.
func (m managedCertificate) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := m.Manifest.Do(ctx, e, say); err != nil {
		return err
	}
	s, _, err := endedSecret(ctx, e)
	if err != nil || s == nil {
		return err
	}
	if err := e.Cluster.Delete(ctx, secretKind, s.Namespace, s.Name, types.UID(s.UID)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	say.Did(steps.Delete, "Secret "+s.Namespace+"/"+s.Name, "its certificate had ended")
	return nil
}

// endedSecret is the endpoint's Secret, where cert-manager wrote it and its
// certificate has ended, and when that was; nil: it is not so.
func endedSecret(ctx context.Context, e steps.Env) (*cluster.Secret, time.Time, error) {
	s, err := e.Cluster.Secret(ctx, space(e), certSecret, "tls.crt")
	if apierrors.IsNotFound(err) {
		return nil, time.Time{}, nil
	}
	if err != nil || s.Annotations[certNameNote] != certSecret {
		return nil, time.Time{}, err
	}
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	if err != nil || time.Now().Before(chain[0].NotAfter) {
		return nil, time.Time{}, nil // what can't be read cert-manager replaces by itself
	}
	return s, chain[0].NotAfter, nil
}

// PlanUndo finds the Secrets, too.
func (m managedCertificate) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	left, err := leftBehind(ctx, e)
	if err != nil {
		return c, err
	}
	for _, s := range left {
		c.Items = append(c.Items, steps.Item{Verb: steps.Delete, What: "Secret " + s.Namespace + "/" + s.Name, Note: "written by cert-manager, which leaves it"})
		c.Rights = append(c.Rights, cluster.Right{Verb: "delete", Resource: "secrets", Namespace: s.Namespace, Name: s.Name})
		if c.Along == nil {
			c.Along = map[steps.Side][]string{}
		}
		c.Along[e.Side] = append(c.Along[e.Side], "Secret "+s.Namespace+"/"+s.Name)
	}
	return c, nil
}

// Undo deletes the Secrets last: while a Certificate is there, cert-manager writes
// its Secret again.
func (m managedCertificate) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	left, err := leftBehind(ctx, e)
	if err != nil {
		return err
	}
	if err := m.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	for _, s := range left {
		err := e.Cluster.Delete(ctx, secretKind, s.Namespace, s.Name, s.UID)
		if err == nil {
			err = e.Cluster.Gone(ctx, secretKind, s.Namespace, s.Name, s.UID)
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

// leftBehind are the Secrets that cert-manager wrote for Certificates of this
// link: in the namespaces of those that stand, and in the one that the link made.
func leftBehind(ctx context.Context, e steps.Env) ([]metav1.PartialObjectMetadata, error) {
	var spaces []string
	standing, err := e.Cluster.Find(ctx, certificateKind, "", e.Marked(e.Action))
	if err != nil && !errors.Is(err, cluster.ErrNotServed) {
		return nil, err
	}
	for _, c := range standing {
		spaces = append(spaces, c.Namespace)
	}
	made, err := e.Cluster.Find(ctx, check.Namespaces, "", e.Marked("namespace"))
	if err != nil {
		return nil, err
	}
	for _, n := range made {
		if steps.CreatedBy(n.Annotations) == e.Link {
			spaces = append(spaces, n.Name)
		}
	}
	slices.Sort(spaces)
	var out []metav1.PartialObjectMetadata
	for _, ns := range slices.Compact(spaces) {
		secrets, err := e.Cluster.Find(ctx, secretKind, ns, cluster.Selector{})
		if err != nil {
			return nil, err
		}
		for _, s := range secrets {
			of := s.Annotations[certNameNote]
			if (s.Name == caSecret && of == rootCert) || (s.Name == certSecret && of == certSecret) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}
