package renku

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"carrick/cluster"
	"carrick/cluster/bearer"
	"carrick/cluster/clean"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// sharedSecret writes one key of a Secret that can contain keys of others. It never deletes
// such a Secret, neither on apply nor on undo, and never loses a value that another tool wrote.
type sharedSecret struct{ action.Manifest }

// Plan refuses to recreate the Secret, because that would delete the other keys.
func (s sharedSecret) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := s.Manifest.Plan(ctx, e)
	for i := range c.Items {
		it := &c.Items[i]
		if it.Verb == steps.Replace {
			it.Verb, it.Refused = steps.Update, true
			it.Note = "it cannot be changed in place, and is not deleted because it can contain other clusters"
			if fixed, err := immutableSecret(ctx, e); err == nil && fixed {
				it.Note = "it is immutable, and is not deleted because it can contain other clusters. Recreate it first: " +
					recreateSecret(ctx, e) + ", or answer secret.name with a new name and set that in Renku's values"
			}
		}
		if len(it.Conflicts) > 0 && it.Note == "" {
			it.Note = "another user or tool owns the key; to take it over, name a file in secret.backup, where carrick first " +
				"saves the old value"
			if file := e.Answers.Text("secret.backup"); file != "" {
				it.Note = "another user or tool owns the key; carrick takes it over after it has saved the old value in " + file
			}
		}
		if it.Verb == steps.Leave {
			continue
		}
		if said, err := fitForRenku(e); err != nil {
			it.Refused, it.Note = true, err.Error()
		} else if it.Note == "" {
			it.Note = said
		}
	}
	return c, err
}

// fitForRenku describes the kubeconfig's server and user. It rejects a kubeconfig that would run
// a command, read a file or send other requests in Renku's pods: kr8s runs the command that a
// kubeconfig's user names (kr8s-org/kr8s: kr8s/_auth.py). The checks of the remote side already
// report such a kubeconfig, but if another admin runs them, their verdicts are only that admin's
// claim.
func fitForRenku(e steps.Env) (string, error) {
	m, err := e.Peer.Masked("kubeconfig")
	if err != nil {
		return "", err
	}
	said, err := leadsTo(m, e.Own)
	if err != nil {
		return "", fmt.Errorf("the %s cluster's kubeconfig is not passed to Renku: %w", e.PeerName(), err)
	}
	return said, nil
}

// leadsTo describes the server of a kubeconfig and the user that it authenticates as. It returns
// an error if Renku cannot use the server.
func leadsTo(config masked.Value, local steps.Facts) (string, error) {
	k, err := kubeconfig.Parse([]byte(config.Reveal()))
	if err != nil {
		return "", err
	}
	if v := judgeAddress(k, local); v.Status == steps.Fail {
		return "", errors.New(v.Found)
	}
	as := "a client certificate"
	if !k.Token.IsZero() {
		as = "an unreadable token"
		if t, err := bearer.Parse(k.Token); err == nil {
			as = t.Subject
		}
	}
	return fmt.Sprintf(
		"it points to %s, namespace %s, as %s", clean.Name(k.Server), clean.Name(k.Namespace), clean.Name(as),
	), nil
}

// Do saves the value of another tool before apply takes over the key.
func (s sharedSecret) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	e.Apply.Replace = false
	if _, err := fitForRenku(e); err != nil {
		return err
	}
	if path := e.Answers.Text("secret.backup"); e.Apply.TakeOver && path != "" {
		if err := s.makeRoom(ctx, e, path, say); err != nil {
			return err
		}
	}
	return s.Manifest.Do(ctx, e, say)
}

func fetchSecret(ctx context.Context, e steps.Env, namespace, name string) (*unstructured.Unstructured, error) {
	return e.Cluster.Fetch(ctx, bareSecret(namespace, name))
}

func bareSecret(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Secret")
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// PlanUndo keeps a Secret that this link created if the Secret now contains keys of others or if
// pods mount it. Then only the link's own parts are removed. Otherwise the Secret is deleted.
func (s sharedSecret) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := s.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	var immutable []*steps.Item
	for i := range c.Items {
		it := &c.Items[i]
		ns, name, _ := strings.Cut(strings.TrimPrefix(it.What, "Secret "), "/")
		if it.Verb == steps.Leave {
			continue
		}
		live, err := fetchSecret(ctx, e, ns, name)
		if err != nil {
			return c, fmt.Errorf("read the other keys of %s: %w", it.What, err)
		}
		if isImmutable(live) {
			immutable = append(immutable, it)
		}
		taken := takenKey(e, live)
		others := othersKeys(live, e.Manager())
		if taken != "" && !slices.Contains(others, taken) {
			others = append(others, taken)
		}
		keeps, err := whyKept(ctx, e, it, ns, name, others)
		if err != nil {
			return c, err
		}
		if keeps != "" {
			it.Verb, it.Note, it.Hash = steps.Release, keeps, emptied+it.Hash
			c.Permissions = append(c.Permissions, permission.Rule{Verb: "patch", Resource: "secrets", Namespace: ns, Name: name})
		}
		if taken != "" {
			value, words := formerly(e, live, taken)
			it.Note += "; " + words
			it.Hash += ":" + steps.HashOf(taken+":"+value)
		}
	}
	for _, it := range immutable {
		if it.Verb != steps.Delete {
			it.Refused = true
			it.Note = steps.JoinNotes(it.Note, "it is immutable. Recreate it first: "+recreateSecret(ctx, e))
		}
	}
	return c, nil
}

// mountedBy returns the Deployments whose pods mount a Secret as a volume that is not optional.
func mountedBy(ctx context.Context, e steps.Env, namespace, name string) ([]string, error) {
	all, err := check.List[appsv1.Deployment](ctx, e.Cluster, check.Deployments, namespace, cluster.Selector{})
	var out []string
	for _, d := range all {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret != nil && v.Secret.SecretName == name && (v.Secret.Optional == nil || !*v.Secret.Optional) {
				out = append(out, d.Name)
			}
		}
	}
	return out, err
}

// emptied is the prefix of the item hash of a Secret that this link created and that is kept
// for others: only the link's own parts are removed from it.
const emptied = "release:"

// whyKept returns why a Secret that an undo would delete is kept, or "" if it is deleted.
func whyKept(
	ctx context.Context, e steps.Env, it *steps.Item, namespace, name string, others []string,
) (string, error) {
	if it.Verb != steps.Delete {
		return "", nil
	}
	if len(others) > 0 {
		return "it also has the keys " + strings.Join(others, ", "), nil
	}
	by, err := mountedBy(ctx, e, namespace, name)
	if apierrors.IsForbidden(err) {
		return "it is kept, but empty: you are not allowed to list Deployments, and pods that mount it could not " +
			"start without it", nil
	}
	if err != nil {
		return "", fmt.Errorf("list the Deployments that mount %s: %w", it.What, err)
	}
	if len(by) == 0 {
		return "", nil
	}
	return fmt.Sprintf(
		"%s mount it and could not start without it, so it is kept, but empty. Unset %s, upgrade Renku, then: %s -n %s "+
			"delete secret %s",
		strings.Join(by, ", "), kubeconfigsPath, e.Kubectl(), namespace, name,
	), nil
}

// Undo removes the key, or the Secret if only this link uses it.
func (s sharedSecret) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	c, err := s.PlanUndo(ctx, e)
	if err != nil {
		return err
	}
	for _, it := range c.Items {
		if it.Refused {
			return fmt.Errorf("release %s: %s", it.What, it.Note)
		}
	}
	for _, it := range c.Items {
		ns, name, _ := strings.Cut(strings.TrimPrefix(it.What, "Secret "), "/")
		if it.Verb == steps.Release {
			if err := s.giveBack(ctx, e, ns, name, say); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(it.Hash, emptied) {
			continue
		}
		live, err := fetchSecret(ctx, e, ns, name)
		if err != nil {
			return err
		}
		nothing := bareSecret(ns, name)
		nothing.SetUID(live.GetUID()) // do not recreate a Secret that was deleted
		if _, err := e.Cluster.Apply(ctx, nothing, cluster.ApplyOptions{Manager: e.Manager()}); err != nil {
			return fmt.Errorf("release %s: %w", it.What, err)
		}
		if err := inventory.Released(ctx, e, live.GetUID()); err != nil {
			return err
		}
		say.Did(steps.Release, it.What, "")
	}
	return s.Manifest.Undo(ctx, e, say)
}

// othersKeys returns the keys of a Secret that the field manager does not own exclusively.
func othersKeys(live *unstructured.Unstructured, manager string) []string {
	data, _, _ := unstructured.NestedMap(live.Object, "data")
	var out []string
	for key := range data {
		if mine, theirs := keyOwners(live.GetManagedFields(), key, manager); !mine || theirs {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// keyOwners reports whether a manager has applied a key of a Secret, and whether any other
// manager has written it.
func keyOwners(fields []metav1.ManagedFieldsEntry, key, manager string) (mine, theirs bool) {
	for _, f := range fields {
		if steps.OwnsKey(f, key) {
			ours := f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply
			mine, theirs = mine || ours, theirs || !ours
		}
	}
	return mine, theirs
}

// ownedByOthers reports whether other managers own a key and the given one does not.
func ownedByOthers(fields []metav1.ManagedFieldsEntry, key, manager string) bool {
	mine, theirs := keyOwners(fields, key, manager)
	return theirs && !mine
}
