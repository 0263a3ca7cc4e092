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
		Map: steps.MapRow{Local: "test profile"},
		Why: "Each Kubeflow user has a Profile. The profile controller creates a namespace with the Profile's name and the " +
			"labels from its labels file. carrick checks the namespaces of existing profiles and of an optional test profile.",
		Ask: []steps.Question{
			{
				Key: "profile.test", Title: "Test profile", Kind: steps.YesNo,
				Adopt:   adoptTrial(func(userProfile) any { return true }),
				Default: steps.Fixed(false, "default; a profile is a user account"),
				Help: "Yes: carrick creates a profile and checks that its namespace gets the labels, like the namespace of a " +
					"new user. An undo deletes the profile, and the profile controller then deletes the namespace with " +
					"everything in it.",
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
				Help: "The user name in Kubeflow's login, usually an e-mail address such as alice@example.org. That user can " +
					"use the namespace.",
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
		return errors.New("must be a user's name without spaces, such as alice@example.org")
	}
	return nil
}

// adoptTrial returns a func for Question.Adopt. It adopts a value from this link's test profile. The parameter of is a
// function that extracts the value.
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

// ownerAnnotation is the annotation in which the profile controller stores the owner of a namespace.
const ownerAnnotation = "owner"

// trialProfile creates a Profile unless its namespace belongs to another owner. Undo also waits
// until the namespace is deleted.
type trialProfile struct{ action.Manifest }

// Plan returns an error if the namespace belongs to another owner. The profile controller would
// ignore that namespace and report the conflict only in its log.
func (t trialProfile) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	name := e.Answers.Text("profile.name")
	ns, err := check.Get[corev1.Namespace](ctx, e.Cluster, check.Namespaces, "", name)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // reported with all other missing permissions
	case err != nil:
		return steps.Change{}, err
	case ns.DeletionTimestamp != nil:
		return steps.Change{}, fmt.Errorf("namespace %s is being deleted: wait until the deletion is complete", name)
	case ns.Annotations[ownerAnnotation] != e.Answers.Text("profile.owner"):
		return steps.Change{}, fmt.Errorf(
			"namespace %s already exists and does not belong to %s, so the profile controller would ignore it: set "+
				"profile.name to another name", name, e.Answers.Text("profile.owner"),
		)
	}
	return t.Manifest.Plan(ctx, e)
}

// PlanUndo adds the note that the profile controller also deletes the namespace.
func (t trialProfile) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := t.Manifest.PlanUndo(ctx, e)
	for i := range c.Items {
		if name, ok := strings.CutPrefix(c.Items[i].What, "Profile "); ok && c.Items[i].Verb == steps.Delete {
			c.Items[i].Note = steps.JoinNotes(
				c.Items[i].Note, "the profile controller deletes namespace "+name+" and everything in it",
			)
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

// spaces returns the namespaces that are deleted with this link's profiles. It maps their names to their UIDs.
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
		{Hand: "# carrick creates and deletes this test profile, which is not part of the setup"},
	}, nil
}
