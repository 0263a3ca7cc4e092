package vsphere

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// What is tried is no part of the set-up: undo takes it back, and it is in no export.

const trialHand = "# this is tried by carrick alone, and undo removes it: it is no part of the set-up"

// ownSpace is a namespace to try things in. One that somebody else made stays as it is: its level is theirs.
type ownSpace struct{ steps.Manifest }

// Plan leaves what is somebody else's.
func (o ownSpace) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	return planSpace(ctx, e, space(e), o.Manifest)
}

// Do makes it, where it is to be made.
func (o ownSpace) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	return doSpace(ctx, e, space(e), o.Manifest, say)
}

// isForeign tells whether a namespace is there that no link of carrick made.
func isForeign(ctx context.Context, e steps.Env, name string) (bool, error) {
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && steps.CreatedBy(ns.GetAnnotations()) == "", err
}

func planSpace(ctx context.Context, e steps.Env, name string, m steps.Manifest) (steps.Change, error) {
	theirs, err := isForeign(ctx, e, name)
	if err != nil && !apierrors.IsForbidden(err) { // that is told with all other missing rights
		return steps.Change{}, err
	}
	if !theirs {
		return m.Plan(ctx, e)
	}
	return left("Namespace "+name, "it is there already, and stays as it is"), nil
}

func doSpace(ctx context.Context, e steps.Env, name string, m steps.Manifest, say steps.Progress) error {
	theirs, err := isForeign(ctx, e, name)
	if err != nil || theirs {
		return err
	}
	return m.Do(ctx, e, say)
}

// Export leaves it out.
func (o ownSpace) Export(context.Context, steps.Env) ([]steps.Exported, error) {
	return []steps.Exported{{Hand: trialHand}}, nil
}

func left(what, why string) steps.Change {
	return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: what, Note: why}}}
}

// askedNote keeps the class that a claim asked for: what changes claims on their way in may have given it another.
const askedNote = "carrick/asked-class"

var volumeKind = check.ConfigMaps.GroupVersion().WithResource("persistentvolumes")

// trialClaim is a claim that is made once: the class of a claim can't be changed, neither by its maker nor back. The
// manifest has the value class.
type trialClaim struct {
	steps.Manifest
	what string // what the link calls it
}

// stands tells whether the claim is there and asked for the class that is asked for today.
func (t trialClaim) stands(ctx context.Context, e steps.Env) (bool, error) {
	want, err := t.Values["class"](ctx, e)
	if err != nil {
		return false, err
	}
	have, err := e.Cluster.Fetch(ctx, claimNamed(space(e), trial(e, t.what)))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && have.GetAnnotations()[askedNote] == want, err
}

func claimNamed(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(claimKind.GroupVersion().WithKind("PersistentVolumeClaim"))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Plan leaves a claim that stands, whatever was made of it.
func (t trialClaim) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	stands, err := t.stands(ctx, e)
	if err != nil && !apierrors.IsForbidden(err) { // that is told with all other missing rights
		return steps.Change{}, err
	}
	if stands {
		return left("PersistentVolumeClaim "+space(e)+"/"+trial(e, t.what), "it is there"), nil
	}
	return t.Manifest.Plan(ctx, e)
}

// Do makes the claim, once.
func (t trialClaim) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	stands, err := t.stands(ctx, e)
	if err != nil || stands {
		return err
	}
	err = t.Manifest.Do(ctx, e, say)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the namespace %s, in which things are tried, is not there: step Storage makes it: %s", space(e), again(e, "storage"))
	}
	return err
}

// Export leaves the claim out.
func (t trialClaim) Export(context.Context, steps.Env) ([]steps.Exported, error) {
	return []steps.Exported{{Hand: trialHand}}, nil
}

// Undo waits until the volume is gone, too: once its provisioner is, nobody would delete it.
func (t trialClaim) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	volumes, err := t.volumes(ctx, e)
	if err != nil {
		return err
	}
	if err := t.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for name, uid := range volumes {
		if err := e.Cluster.Gone(ctx, volumeKind, "", name, uid); err != nil {
			say.Say("PersistentVolume %s is left: its provisioner has not deleted it within a minute. %s delete persistentvolume %s", name, e.Kubectl(), name)
		}
	}
	return nil
}

// volumes are those of the claims of this action that go with them.
func (t trialClaim) volumes(ctx context.Context, e steps.Env) (map[string]types.UID, error) {
	claims, err := e.Cluster.List(ctx, claimKind, "", e.Marked(e.Action))
	if apierrors.IsForbidden(err) {
		claims, err = e.Cluster.List(ctx, claimKind, space(e), e.Marked(e.Action))
	}
	if err != nil {
		return nil, err
	}
	out := map[string]types.UID{}
	for _, o := range claims {
		c, err := check.As[corev1.PersistentVolumeClaim](o)
		if err != nil {
			return nil, err
		}
		if c.Spec.VolumeName == "" {
			continue
		}
		v, err := check.Get[corev1.PersistentVolume](ctx, e.Cluster, volumeKind, "", c.Spec.VolumeName)
		if err == nil && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			out[v.Name] = v.UID
		}
	}
	return out, nil
}

// objectNames are the names of objects.
func objectNames(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		out = append(out, cluster.Clean(o.GetName()))
	}
	return out
}
