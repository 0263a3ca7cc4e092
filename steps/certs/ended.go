package certs

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
)

// Plan has a certificate that has ended issued anew: cert-manager does that when
// the Secret is gone, and not by itself once it has given up.
func (m Managed) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	s, at, err := m.ended(ctx, e)
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
func (m Managed) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if err := m.Manifest.Do(ctx, e, say); err != nil {
		return err
	}
	s, _, err := m.ended(ctx, e)
	if err != nil || s == nil {
		return err
	}
	if err := e.Cluster.Delete(ctx, secretKind, s.Namespace, s.Name, types.UID(s.UID)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	say.Did(steps.Delete, "Secret "+s.Namespace+"/"+s.Name, "its certificate had ended")
	return nil
}

// ended is the Secret of the leaf, where cert-manager wrote it and its certificate
// has ended, and when that was; nil: it is not so.
func (m Managed) ended(ctx context.Context, e steps.Env) (*cluster.Secret, time.Time, error) {
	s, err := e.Cluster.Secret(ctx, m.Namespace(e), m.Leaf, "tls.crt")
	if apierrors.IsNotFound(err) {
		return nil, time.Time{}, nil
	}
	if err != nil || s.Annotations[nameNote] != m.Writes[m.Leaf] {
		return nil, time.Time{}, err
	}
	chain, err := probe.ParseCerts([]byte(s.Data["tls.crt"].Reveal()))
	if err != nil || time.Now().Before(chain[0].NotAfter) {
		return nil, time.Time{}, nil // what can't be read cert-manager replaces by itself
	}
	return s, chain[0].NotAfter, nil
}
