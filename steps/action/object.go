package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/diff"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/inventory"
)

type planned struct {
	steps.Item
	rights []permission.Rule
	want   *unstructured.Unstructured // as it would be applied, with ownership labels
	live   *unstructured.Unstructured // nil if it does not exist
	unread error                      // why live could not be read; nothing is written then
	empty  bool                       // the conflicts don't matter, because forcing the apply changes no value
}

func planObject(ctx context.Context, env steps.Env, obj *unstructured.Unstructured) (planned, error) {
	inv, err := inventory.Of(ctx, env)
	if err != nil {
		return planned{}, err
	}
	p := planned{Item: steps.Item{What: inventory.Describe(obj), Entry: inv.Next(env, obj, nil)}, want: obj.DeepCopy()}
	gvr, namespaced, err := env.Cluster.Resource(ctx, obj.GroupVersionKind())
	if errors.Is(err, failure.ErrNotServed) {
		return p, steps.Absent("%s: the %s does not serve %s yet", p.What, env.SideName(), obj.GroupVersionKind().GroupKind())
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", p.What, err)
	}
	if namespaced && obj.GetNamespace() == "" {
		return p, fmt.Errorf("%s has no namespace", p.What)
	}
	p.rights = RightsTo(obj, gvr)
	p.live, err = fetchWatched(ctx, env, gvr, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		if apierrors.IsForbidden(err) { // reported later with all other missing permissions
			p.Verb, p.Note, p.Refused, p.unread = steps.Update, "cannot be read: "+failure.Explain(err), true, err
			return p, nil
		}
		return p, err
	}
	if err != nil {
		p.live = nil
	}
	if p.live != nil && p.live.GetDeletionTimestamp() != nil {
		held := ""
		if by := p.live.GetFinalizers(); len(by) > 0 {
			held = " (blocked by " + strings.Join(by, ", ") + ")"
		}
		why := p.What + " is being deleted" + held + "; carrick can create it again when it is gone"
		return p, &steps.AbsentError{Why: why, Ending: p.What}
	}
	inventory.SetOwnership(env, p.want, p.live)
	p.Entry = inv.Next(env, obj, p.live)
	if err := p.dryRun(ctx, env); err != nil {
		return p, err
	}
	if len(p.Conflicts) > 0 {
		_ = inventory.KeepValues(p.Entry, p.live, p.Conflicts) // a take-over reports what can't be kept
	}
	if p.Verb == steps.Replace {
		p.Entry = inv.Next(env, obj, nil)
		p.rights = append(
			p.rights,
			permission.Rule{
				Verb: "delete", Group: gvr.Group, Resource: gvr.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			},
		)
	}
	p.Hash = p.fingerprint()
	if p.Entry.Adopted && p.Verb.Changes() {
		p.Note = steps.JoinNotes(
			p.Note,
			"its metadata names this link as its writer, so carrick adds it to the inventory, which undo relies on: "+
				strings.Join(inventory.Names([]steps.Entry{*p.Entry}), ""),
		)
		p.Hash = steps.Fingerprint(p.Hash, *p.Entry)
	}
	return p, nil
}

// fetchWatched reads an object. If the object is being deleted, the trace of ctx records a watched read of it, so that
// apply notices when it is gone.
func fetchWatched(
	ctx context.Context, env steps.Env, gvr schema.GroupVersionResource, obj *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	live, err := env.Cluster.Fetch(ctx, obj)
	if err != nil || live.GetDeletionTimestamp() == nil {
		return live, err
	}
	seen, err := env.Cluster.Get(ctx, gvr, obj.GetNamespace(), obj.GetName())
	if apierrors.IsNotFound(err) || err == nil && seen.GetUID() != live.GetUID() {
		return env.Cluster.Fetch(ctx, obj) // it has gone in the meantime
	}
	return live, nil
}

// fingerprint identifies a plan. A server can assign a new object a different address or port at each dry run, so only
// the sent content counts.
func (p *planned) fingerprint() string {
	if p.Verb == steps.Create {
		return steps.Fingerprint(p.Verb, p.What, p.want)
	}
	return steps.Fingerprint(p.Verb, p.What, p.Diff, p.Conflicts, p.want)
}

func (p *planned) dryRun(ctx context.Context, env steps.Env) error {
	opts := cluster.ApplyOptions{Manager: env.Manager(), DryRun: true}
	got, err := env.Cluster.Apply(ctx, p.want, opts)
	if conflicts := failure.Conflicts(err); len(conflicts) > 0 {
		p.Conflicts = conflicts
		opts.Force = true
		got, err = env.Cluster.Apply(ctx, p.want, opts)
		if err == nil && p.live != nil && sameContent(p.live, got) {
			p.Conflicts, p.empty = nil, true
		}
	}
	switch {
	case err == nil && p.live == nil:
		p.Verb, p.Diff = steps.Create, diff.Objects(nil, got)
	case err == nil:
		p.Verb, p.Diff = steps.Update, diff.Objects(p.live, got)
		if p.Diff == "" {
			p.Verb, p.Note = steps.Leave, "is up to date"
		}
	case p.live == nil && (apierrors.IsNotFound(err) || denied(err)):
		// Either another action creates the namespace first, or the permission to create the object is missing. Missing
		// permissions are reported together.
		p.Verb, p.Diff = steps.Create, diff.Objects(nil, p.want)
		if denied(err) {
			p.Note, p.Refused = failure.Explain(err), true
		} else {
			p.Note, p.MissingNamespace = "its namespace is created first", p.want.GetNamespace()
		}
	case p.live == nil:
		return fmt.Errorf("create %s: %w", p.What, err)
	case apierrors.IsInvalid(err) && p.replaceable(ctx, env):
		p.Verb, p.Diff = steps.Replace, diff.Objects(p.live, p.want)
		p.Note = "cannot be changed in place: " + failure.Explain(err)
	case denied(err):
		p.Verb, p.Diff, p.Note, p.Refused = steps.Update, diff.Objects(p.live, p.want), failure.Explain(err), true
	default:
		return fmt.Errorf("change %s: %w", p.What, err)
	}
	return nil
}

// denied reports whether a server rejected an object that it might accept later. The cause is a missing permission or a
// webhook. Some webhooks return status 400.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "admission webhook")
}

// replaceable reports whether the object can be recreated. The server must accept it under an unused name. A kind that
// contains other objects is never deleted in order to change it.
func (p *planned) replaceable(ctx context.Context, env steps.Env) bool {
	switch p.want.GetKind() {
	case "Namespace", "CustomResourceDefinition", "PersistentVolumeClaim":
		return false
	}
	probe := p.want.DeepCopy()
	probe.SetName("carrick-" + steps.Fingerprint(p.What))
	_, err := env.Cluster.Apply(ctx, probe, cluster.ApplyOptions{Manager: env.Manager(), DryRun: true})
	return err == nil
}

func doObject(ctx context.Context, env steps.Env, obj *unstructured.Unstructured, say steps.Progress) error {
	p, err := planObject(ctx, env, obj)
	if err != nil {
		return err
	}
	if p.unread != nil {
		return p.unread
	}
	if len(p.Conflicts) > 0 && !env.Apply.TakeOver {
		return &ConflictError{p.What, p.Conflicts}
	}
	if len(p.Conflicts) > 0 {
		if err := inventory.KeepValues(p.Entry, p.live, p.Conflicts); err != nil {
			return err
		}
	}
	if p.Verb == steps.Leave {
		return nil
	}
	if p.Verb == steps.Replace && !env.Apply.Replace {
		return fmt.Errorf("%s %s; it must be deleted and recreated, which was not confirmed", p.What, p.Note)
	}
	if err := inventory.EnterOne(ctx, env, say, p.Verb, p.Entry); err != nil {
		return err
	}
	if p.Verb == steps.Replace {
		if err := deleteObject(ctx, env, p.live, say); err != nil {
			return err
		}
		say.Did(steps.Delete, p.What, "")
		inventory.SetOwnership(env, p.want, nil)
	}
	opts := cluster.ApplyOptions{Manager: env.Manager(), Force: len(p.Conflicts) > 0 || p.empty}
	if _, err := env.Cluster.Apply(ctx, p.want, opts); err != nil {
		return fmt.Errorf("%s %s: %w", p.Verb, p.What, err)
	}
	say.Did(p.Verb, p.What, p.Hash)
	return nil
}

// ConflictError is returned by an apply if another manager owns fields and the user did not allow taking them over.
type ConflictError struct {
	What      string
	Conflicts []failure.Conflict
}

func (e *ConflictError) Error() string {
	c := e.Conflicts[0]
	more := ""
	if n := len(e.Conflicts) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: field %s belongs to %q%s; --take-over overwrites it", e.What, c.Field, c.Manager, more)
}

// RightsTo returns the permissions required to apply an object and to read it afterwards. To create a role, a user also
// needs the permissions that the role grants, because Kubernetes prevents privilege escalation.
func RightsTo(obj *unstructured.Unstructured, gvr schema.GroupVersionResource) []permission.Rule {
	var out []permission.Rule
	for _, verb := range []string{"get", "list", "watch", "create", "patch"} {
		r := permission.Rule{Verb: verb, Group: gvr.Group, Resource: gvr.Resource, Namespace: obj.GetNamespace()}
		if verb == "get" || verb == "patch" {
			r.Name = obj.GetName()
		}
		out = append(out, r)
	}
	if gvr.Group != rbacv1.GroupName || (gvr.Resource != "roles" && gvr.Resource != "clusterroles") {
		return out
	}
	var role rbacv1.ClusterRole // both kinds have their rules in the same field
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role) != nil {
		return out // the dry run reports the error
	}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					name, sub, _ := strings.Cut(resource, "/")
					out = append(
						out, permission.Rule{Verb: verb, Group: group, Resource: name, Subresource: sub, Namespace: obj.GetNamespace()},
					)
				}
			}
		}
	}
	return out
}
