package interlink

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// managedCertificate has cert-manager issue. What it wrote goes with the undo:
// cert-manager leaves its Secrets when a Certificate goes.
type managedCertificate struct{ steps.Manifest }

const certNameNote = "cert-manager.io/certificate-name"

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
