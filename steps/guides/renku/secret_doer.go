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

// sharedSecret writes one key of a Secret that can contain keys of other links or tools. It never
// deletes a Secret with such keys. Before it overwrites a value from another tool, it saves that
// value to a file.
type sharedSecret struct{ action.Manifest }

// Plan refuses to recreate the Secret, because recreating it would delete the other keys.
func (s sharedSecret) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := s.Manifest.Plan(ctx, e)
	for i := range c.Items {
		it := &c.Items[i]
		if it.Verb == steps.Replace {
			it.Verb, it.Refused = steps.Update, true
			it.Note = "the Secret cannot be changed in place, and carrick does not delete it because it can contain " +
				"other clusters"
			if fixed, err := immutableSecret(ctx, e); err == nil && fixed {
				it.Note = "the Secret is immutable, and carrick does not delete it because it can contain other clusters. " +
					"Recreate the Secret first: " +
					recreateSecret(ctx, e) + ", or set secret.name to a new name and set the same name in Renku's values"
			}
		}
		if len(it.Conflicts) > 0 && it.Note == "" {
			it.Note = "another user or tool owns the key. To take over the key, set secret.backup to a file in which carrick " +
				"first saves the old value"
			if file := e.Answers.Text("secret.backup"); file != "" {
				it.Note = "another user or tool owns the key. carrick takes over the key after it saves the old value in " + file
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

// fitForRenku describes the server and the user of the kubeconfig. It returns an error for a
// kubeconfig that would run a command, read a file or send other requests in Renku's pods. For
// example, kr8s runs the command in the user entry of a kubeconfig (kr8s-org/kr8s: kr8s/_auth.py).
// The checks of the remote side also reject such a kubeconfig. However, another admin can run those
// checks, and carrick cannot verify their results.
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

// leadsTo describes the server of a kubeconfig and the identity in its credential. It returns an
// error if Renku's pods cannot use the server.
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
		"the kubeconfig points to server %s and namespace %s, and authenticates as %s", clean.Name(k.Server),
		clean.Name(k.Namespace), clean.Name(as),
	), nil
}

// Do applies the Secret. If apply takes over the key, Do first saves the other tool's value to the
// file in secret.backup.
func (s sharedSecret) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	e.Apply.Replace = false
	if _, err := fitForRenku(e); err != nil {
		return err
	}
	if path := e.Answers.Text("secret.backup"); e.Apply.TakeOver && path != "" {
		if err := s.saveAndRemove(ctx, e, path, say); err != nil {
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

// PlanUndo plans to delete a Secret that this link created. If the Secret now contains other
// keys, or if pods mount it, PlanUndo keeps the Secret and removes only the link's own parts.
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
			it.Note = steps.JoinNotes(it.Note, "the Secret is immutable. Recreate the Secret first: "+recreateSecret(ctx, e))
		}
	}
	return c, nil
}

// mountedBy returns the names of the Deployments whose pods require a Secret as a volume.
// Optional volumes do not count.
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

// emptied is the prefix of an undo item's hash. It means that undo keeps the Secret and removes
// only the link's own parts.
const emptied = "release:"

// whyKept returns why undo keeps a Secret. It returns "" if undo deletes the Secret. others lists
// the keys that do not belong to this link.
func whyKept(
	ctx context.Context, e steps.Env, it *steps.Item, namespace, name string, others []string,
) (string, error) {
	if it.Verb != steps.Delete {
		return "", nil
	}
	if len(others) > 0 {
		return "the Secret also has the keys " + strings.Join(others, ", "), nil
	}
	by, err := mountedBy(ctx, e, namespace, name)
	if apierrors.IsForbidden(err) {
		return "the Secret is kept, but empty. You are not allowed to list Deployments, and pods that mount the Secret " +
			"could not start without it", nil
	}
	if err != nil {
		return "", fmt.Errorf("list the Deployments that mount %s: %w", it.What, err)
	}
	if len(by) == 0 {
		return "", nil
	}
	return fmt.Sprintf(
		"pods of %s mount the Secret and could not start without it, so the Secret is kept, but empty. Unset %s, upgrade Renku, "+
			"then: %s -n %s delete secret %s",
		strings.Join(by, ", "), kubeconfigsPath, e.Kubectl(), namespace, name,
	), nil
}

// Undo removes the link's key. It also deletes the Secret unless PlanUndo keeps it.
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
			if err := s.restoreKey(ctx, e, ns, name, say); err != nil {
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

// othersKeys returns the keys of a Secret that manager does not own alone.
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

// keyOwners reports whether manager has applied the key, and whether another manager has written
// it.
func keyOwners(fields []metav1.ManagedFieldsEntry, key, manager string) (mine, theirs bool) {
	for _, f := range fields {
		if steps.OwnsKey(f, key) {
			ours := f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply
			mine, theirs = mine || ours, theirs || !ours
		}
	}
	return mine, theirs
}

// ownedByOthers reports whether only other managers own a key.
func ownedByOthers(fields []metav1.ManagedFieldsEntry, key, manager string) bool {
	mine, theirs := keyOwners(fields, key, manager)
	return theirs && !mine
}
