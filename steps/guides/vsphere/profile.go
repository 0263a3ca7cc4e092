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
		Why: "Each Kubeflow user has a Profile, and the profile controller creates a namespace of that name with the " +
			"labels of its file. carrick follows existing profiles, and a test profile if you want one, to their namespaces.",
		Ask: []steps.Question{
			{
				Key: "profile.test", Title: "Test profile", Kind: steps.YesNo,
				Adopt:   adoptTrial(func(userProfile) any { return true }),
				Default: steps.Fixed(false, "default; a profile is a user account"),
				Help: "Yes: carrick creates a profile and follows it to its labelled namespace, like that of a new user. An " +
					"undo deletes the profile, and its controller then deletes the namespace with everything in it.",
			},
			{
				Key: "profile.name", Title: "Name of the test profile", Kind: steps.Namespace, When: triesProfile,
				Adopt: adoptTrial(func(p userProfile) any { return p.name }), Default: steps.Fixed("carrick-trial", "default"),
				Help: "The namespace gets the same name and must not exist yet.",
			},
			{
				Key: "profile.owner", Title: "Owner of the test profile", Kind: steps.Text, When: triesProfile, Check: checkOwner,
				Adopt:   adoptTrial(func(p userProfile) any { return p.owner }),
				Default: steps.Fixed("carrick-trial@example.org", "default; a user who cannot log in"),
				Help: "The user as known to Kubeflow's login, usually an e-mail address such as alice@example.org. That user " +
					"can use the namespace.",
			},
		},
		Actions: []steps.Action{{
			Name: "profile", Title: "Create a test profile", On: steps.Local, When: triesProfile,
			Needs: []string{"profiles-served"},
			Doer:  trialProfile{action.Manifest{File: "profile.yaml"}},
		}},
		Checks: profileChecks(),
	}
}

func triesProfile(e steps.Env) bool { return e.Answers.Bool("profile.test") }

func checkOwner(v string) error {
	if v == "" || strings.ContainsAny(v, " \t\n") {
		return errors.New("must be a user's name without blanks, such as alice@example.org")
	}
	return nil
}

// adoptTrial adopts an answer from the profile that this link created.
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

// profilePermissions returns the permissions that this step requires.
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

// ownerNote is the annotation in which the profile controller stores the owner of a namespace.
const ownerNote = "owner"

// trialProfile creates a Profile unless its namespace belongs to another owner. Undo waits until
// the namespace is also deleted.
type trialProfile struct{ action.Manifest }

// Plan rejects the name of a namespace with another owner. The controller would ignore that
// namespace and report it only in its log.
func (t trialProfile) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	name := e.Answers.Text("profile.name")
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // reported with all other missing permissions
	case err != nil:
		return steps.Change{}, err
	case ns.DeletionTimestamp != nil:
		return steps.Change{}, fmt.Errorf("namespace %s is being deleted: wait until it is gone", name)
	case ns.Annotations[ownerNote] != e.Answers.Text("profile.owner"):
		return steps.Change{}, fmt.Errorf(
			"namespace %s already exists and does not belong to %s, so the profile controller would ignore it: answer "+
				"profile.name with another name", name, e.Answers.Text("profile.owner"),
		)
	}
	return t.Manifest.Plan(ctx, e)
}

// PlanUndo notes that the namespace is deleted with the Profile.
func (t trialProfile) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := t.Manifest.PlanUndo(ctx, e)
	for i := range c.Items {
		if name, ok := strings.CutPrefix(c.Items[i].What, "Profile "); ok && c.Items[i].Verb == steps.Delete {
			c.Items[i].Note = steps.JoinNotes(c.Items[i].Note, "its controller deletes namespace "+name+" and everything in it")
		}
	}
	return c, err
}

// Undo deletes the Profile and waits until its namespace is deleted.
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

// spaces returns the namespaces that are deleted with this link's profiles, as a map from name to
// UID.
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

// Export omits the test profile.
func (t trialProfile) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# carrick itself creates the test profile and undo removes it: it is not part of the setup"},
	}, nil
}
