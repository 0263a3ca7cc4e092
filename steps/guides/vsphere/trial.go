package vsphere

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// Test objects are not part of the setup: undo deletes them, and exports omit them.

const trialHand = "# carrick creates and deletes this object for a test; it is not part of the setup"

// ownSpace creates the test namespace. A namespace that carrick did not create is kept unchanged,
// including its pod security level.
type ownSpace struct{ action.Manifest }

// OthersStay implements action.OthersStay, because ownSpace can keep a namespace that carrick did not create.
func (ownSpace) OthersStay() {}

// Plan keeps a namespace that carrick did not create.
func (o ownSpace) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	return planSpace(ctx, e, trialNamespace(e), o.Manifest)
}

// Do creates the namespace unless it exists and carrick did not create it.
func (o ownSpace) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	return doSpace(ctx, e, trialNamespace(e), o.Manifest, say)
}

// isForeign reports whether a namespace exists that no link of carrick created.
func isForeign(ctx context.Context, e steps.Env, name string) (bool, error) {
	ns, err := e.Cluster.Get(ctx, check.Namespaces, "", name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && inventory.CreatedBy(ns.GetAnnotations()) == "", err
}

func planSpace(ctx context.Context, e steps.Env, name string, m action.Manifest) (steps.Change, error) {
	theirs, err := isForeign(ctx, e, name)
	if err != nil && !apierrors.IsForbidden(err) { // reported with all other missing permissions
		return steps.Change{}, err
	}
	if !theirs {
		return m.Plan(ctx, e)
	}
	return left("Namespace "+name, "already exists and is not changed"), nil
}

func doSpace(ctx context.Context, e steps.Env, name string, m action.Manifest, say steps.Progress) error {
	theirs, err := isForeign(ctx, e, name)
	if err != nil || theirs {
		return err
	}
	return m.Do(ctx, e, say)
}

// Export omits the test namespace.
func (o ownSpace) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{{Hand: trialHand}}, nil
}

func left(what, why string) steps.Change {
	return steps.Change{Items: []steps.Item{{Verb: steps.Leave, What: what, Note: why}}}
}

// requestedClassAnnotation records the StorageClass that a claim requested. A mutating webhook or policy can replace
// the StorageClass in the claim's spec.
const requestedClassAnnotation = "carrick/asked-class"

var volumeKind = check.ConfigMaps.GroupVersion().WithResource("persistentvolumes")

// trialClaim creates a test claim once and never updates it, because the StorageClass of a claim is
// immutable. The manifest must have the value "class".
type trialClaim struct {
	action.Manifest
	what string // suffix of the claim's name (see triedName)
}

// stands reports whether the claim exists and was created with the StorageClass that the answers
// now configure.
func (t trialClaim) stands(ctx context.Context, e steps.Env) (bool, error) {
	want, err := t.Values["class"](ctx, e)
	if err != nil {
		return false, err
	}
	have, err := e.Cluster.Fetch(ctx, claimNamed(trialNamespace(e), triedName(e, t.what)))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && have.GetAnnotations()[requestedClassAnnotation] == want, err
}

func claimNamed(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(check.VolumeClaims.GroupVersion().WithKind("PersistentVolumeClaim"))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Plan keeps an existing claim, whatever its state.
func (t trialClaim) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	stands, err := t.stands(ctx, e)
	if err != nil && !apierrors.IsForbidden(err) { // reported with all other missing permissions
		return steps.Change{}, err
	}
	if stands {
		return left("PersistentVolumeClaim "+trialNamespace(e)+"/"+triedName(e, t.what), "already exists"), nil
	}
	return t.Manifest.Plan(ctx, e)
}

// Do creates the claim unless it exists.
func (t trialClaim) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	stands, err := t.stands(ctx, e)
	if err != nil || stands {
		return err
	}
	err = t.Manifest.Do(ctx, e, say)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf(
			"test namespace %s does not exist. Step Storage creates it: %s", trialNamespace(e),
			e.ApplyStep("storage"),
		)
	}
	return err
}

// Export omits the claim.
func (t trialClaim) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{{Hand: trialHand}}, nil
}

// PlanUndo also lists the volumes of claims that an earlier, interrupted undo has deleted. Undo waits until these
// volumes are deleted, too.
func (t trialClaim) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := t.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	released, err := t.released(ctx, e)
	if apierrors.IsForbidden(err) {
		return c, nil // an undo without that permission does not wait, either
	}
	for _, v := range released {
		c.Items = append(c.Items, steps.Item{
			Verb: steps.Run, What: "wait until PersistentVolume " + clean.Text(v.Name) + " is deleted by its provisioner",
			Hash: string(v.UID),
		})
	}
	return c, err
}

// Undo also waits until the volumes are deleted, because nothing deletes them once their
// provisioner is gone.
func (t trialClaim) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	volumes, err := t.volumes(ctx, e)
	if err != nil {
		return err
	}
	if err := t.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, volumeGoneWithin)
	defer cancel()
	for _, v := range volumes {
		if err := e.Cluster.Gone(ctx, volumeKind, "", v.Name, v.UID); err != nil {
			name := clean.Text(v.Name)
			say.Say(
				"PersistentVolume %s remains: its provisioner has not deleted it within a minute. To delete it: %s delete "+
					"persistentvolume %s",
				name, e.Kubectl(), name,
			)
		}
	}
	return nil
}

// volumeGoneWithin is the timeout for a provisioner to delete a volume.
const volumeGoneWithin = time.Minute

// volumes returns the volumes that the provisioner deletes after this action's claims are deleted:
// the volumes of existing claims, and the volumes of claims that an interrupted undo has deleted.
func (t trialClaim) volumes(ctx context.Context, e steps.Env) ([]*corev1.PersistentVolume, error) {
	claims, err := inventory.MadeBy(ctx, e, check.VolumeClaims, e.Action)
	if err != nil {
		return nil, err
	}
	var out []*corev1.PersistentVolume
	for _, m := range claims {
		c, err := check.Get[corev1.PersistentVolumeClaim](ctx, e.Cluster, check.VolumeClaims, m.Namespace, m.Name)
		if apierrors.IsNotFound(err) || err == nil && c.Spec.VolumeName == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		v, err := check.Get[corev1.PersistentVolume](ctx, e.Cluster, volumeKind, "", c.Spec.VolumeName)
		if err == nil && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			out = append(out, v)
		}
	}
	released, err := t.released(ctx, e)
	if apierrors.IsForbidden(err) {
		return out, nil
	}
	return append(out, released...), err
}

// released returns the volumes of this link's deleted test claim that still exist.
func (t trialClaim) released(ctx context.Context, e steps.Env) ([]*corev1.PersistentVolume, error) {
	all, err := check.List[corev1.PersistentVolume](ctx, e.Cluster, volumeKind, "", cluster.Selector{})
	if err != nil {
		return nil, err
	}
	var out []*corev1.PersistentVolume
	for _, v := range all {
		of := v.Spec.ClaimRef
		if of == nil || of.Namespace != trialNamespace(e) || of.Name != triedName(e, t.what) ||
			v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}
		claim, err := e.Cluster.Fetch(ctx, claimNamed(of.Namespace, of.Name))
		if apierrors.IsNotFound(err) || err == nil && claim.GetUID() != of.UID {
			out = append(out, v)
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func objectNames(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		out = append(out, clean.Text(o.GetName()))
	}
	return out
}
