package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

func profile() steps.Step {
	return steps.Step{
		Name: "profile", Title: "Profile",
		Why: "All this is for Kubeflow's users: each has a Profile, and the profile controller makes a namespace of that " +
			"name with the labels of its file. So it is followed from the Profile to the namespace, for those that are there " +
			"and for one that carrick makes to try it with.",
		Ask: []steps.Question{
			{
				Key: "profile.try", Title: "Make a profile to try it with", Kind: steps.YesNo,
				Adopt:   adoptTrial(func(userProfile) any { return true }),
				Default: steps.Fixed(false, "a profile is an account of somebody"),
				Help: "It goes from nothing to a namespace that is labelled, as a new user's does; undo deletes it, and its " +
					"controller the namespace with all that is in it.",
			},
			{
				Key: "profile.name", Title: "Name of that profile", Kind: steps.Namespace, When: triesProfile,
				Adopt: adoptTrial(func(p userProfile) any { return p.name }), Default: steps.Fixed("carrick-trial", "carrick"),
				Help: "Its namespace is called so, too, and must not be there yet.",
			},
			{
				Key: "profile.owner", Title: "User that it is for", Kind: steps.Text, When: triesProfile, Check: checkOwner,
				Adopt:   adoptTrial(func(p userProfile) any { return p.owner }),
				Default: steps.Fixed("carrick-trial@example.org", "nobody who can log in"),
				Help:    "As Kubeflow's login knows users: mostly an e-mail address. Whoever it is can use the namespace.",
			},
		},
		Actions: []steps.Action{{
			Name: "profile", Title: "Make a profile to try it with", On: steps.Local, When: triesProfile,
			Needs: []string{"profiles-served"},
			Doer:  trialProfile{action.Manifest{File: "profile.yaml"}},
		}},
		Checks: profileChecks(),
	}
}

func triesProfile(e steps.Env) bool { return e.Answers.Bool("profile.try") }

func checkOwner(v string) error {
	if v == "" || strings.ContainsAny(v, " \t\n") {
		return errors.New("a user's name without blanks, such as alice@example.org")
	}
	return nil
}

// adoptTrial is what the profile tells that this link has made.
func adoptTrial(of func(userProfile) any) func(context.Context, steps.Env) (any, string, error) {
	return func(ctx context.Context, e steps.Env) (any, string, error) {
		all, err := profiles(ctx, e)
		if steps.IsAbsent(err) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", err
		}
		i := slices.IndexFunc(all, func(p userProfile) bool { return p.trial })
		if i < 0 {
			return nil, "", nil
		}
		return of(all[i]), "Profile " + all[i].name, nil
	}
}

// profilePermissions are what it takes to do this step.
func profilePermissions(e steps.Env) []permission.Rule {
	out := slices.Concat(
		check.ToFollow("", profileKind, check.Namespaces, check.CRDs),
		check.ToFollow(kubeflowSpace, check.ConfigMaps, check.Deployments),
	)
	if triesProfile(e) {
		out = slices.Concat(out, check.ToApply("", profileKind), check.To([]string{"delete"}, "", profileKind))
	}
	return out
}

// ownerNote is the annotation by which the controller knows whose a namespace is.
const ownerNote = "owner"

// trialProfile makes a Profile where its namespace is not somebody else's, and
// waits with its undo until the namespace has gone with it.
type trialProfile struct{ action.Manifest }

// Plan refuses a name that is taken: the controller would leave that namespace alone, and say so in its log alone.
func (t trialProfile) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	name := e.Answers.Text("profile.name")
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // a missing right is told with all others
	case err != nil:
		return steps.Change{}, err
	case ns.DeletionTimestamp != nil:
		return steps.Change{}, fmt.Errorf("namespace %s is being deleted: wait until it is gone", name)
	case ns.Annotations[ownerNote] != e.Answers.Text("profile.owner"):
		return steps.Change{}, fmt.Errorf(
			"namespace %s is there already and not %s's: the profile controller would leave it alone; "+
				"answer profile.name with another", name, e.Answers.Text("profile.owner"),
		)
	}
	return t.Manifest.Plan(ctx, e)
}

// PlanUndo says what goes with it.
func (t trialProfile) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := t.Manifest.PlanUndo(ctx, e)
	for i := range c.Items {
		if name, ok := strings.CutPrefix(c.Items[i].What, "Profile "); ok && c.Items[i].Verb == steps.Delete {
			c.Items[i].Note = steps.JoinNotes(c.Items[i].Note, "its controller deletes namespace "+name+" and all that is in it")
		}
	}
	return c, err
}

// Undo returns when the namespace is gone, too.
func (t trialProfile) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	spaces, err := t.spaces(ctx, e)
	if err != nil {
		return err
	}
	if err := t.Manifest.Undo(ctx, e, say); err != nil {
		return err
	}
	for name, uid := range spaces {
		if err := e.Cluster.Gone(ctx, check.Namespaces, "", name, uid); err != nil {
			return err
		}
	}
	return nil
}

// spaces are the namespaces that go with the profiles that this link made.
func (t trialProfile) spaces(ctx context.Context, e steps.Env) (map[string]types.UID, error) {
	out := map[string]types.UID{}
	made, err := inventory.MadeBy(ctx, e, profileKind, e.Action)
	if err != nil {
		return nil, err
	}
	for _, p := range made {
		ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", p.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p.Created &&
			slices.ContainsFunc(ns.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == p.UID }) {
			out[ns.Name] = ns.UID
		}
	}
	return out, nil
}

// Export leaves it out: it is tried.
func (t trialProfile) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# a profile is made by carrick alone, to try it with, and undo removes it: it is no part of the set-up"},
	}, nil
}
