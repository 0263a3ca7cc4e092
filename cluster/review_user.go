package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"carrick/cluster/clean"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
)

// CanAs asks the API server whether another user has the given permissions, and returns decisions like Can. It does not
// impersonate the user. The required permission to create subjectaccessreviews.authorization.k8s.io is recorded with
// Need. hoped is the decision that the caller expects. Any other decision is cached for only 5 s, because it might
// change soon.
func (c *Cluster) CanAs(ctx context.Context, who User, hoped bool, rights ...permission.Rule) ([]Decision, error) {
	c.Need(permission.Rule{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"})
	decisions := make([]Decision, len(rights))
	var group errgroup.Group
	group.SetLimit(reviewsTogether)
	for i, right := range rights {
		group.Go(func() error {
			key := fmt.Sprintf("review/can/%q/%q/%#v", who.Name, strings.Join(who.Groups, "\n"), right)
			decision, err := tracked.LookOf(ctx, c, key, reviewAge, func(ctx context.Context) (Decision, error) {
				c.reviewed(ctx)
				d, err := c.decideFor(ctx, who, right)
				if d.Allowed != hoped {
					tracked.Expires(ctx, time.Now().Add(tracked.ErrorAge))
				}
				return d, err
			})
			decisions[i] = decision
			decisions[i].Rule, decisions[i].Err = right, err
			return nil
		})
	}
	_ = group.Wait()
	errs := make([]error, 0, len(rights))
	for _, d := range decisions {
		if d.Err == nil {
			return decisions, nil
		}
		errs = append(errs, d.Err)
	}
	if len(errs) == 0 {
		return decisions, nil
	}
	return decisions, fmt.Errorf("check what %s is allowed to do: %w", clean.Text(who.Name), errs[0])
}

func (c *Cluster) decideFor(ctx context.Context, who User, right permission.Rule) (Decision, error) {
	if who.Name == "" {
		return Decision{}, errors.New("no user is given")
	}
	// The response is decoded into review, so review must not share the groups with other reviews.
	spec := authorizationv1.SubjectAccessReviewSpec{User: who.Name, Groups: slices.Clone(who.Groups)}
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	if right.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Path, Verb: right.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: right.Namespace, Name: right.Name, Verb: right.Verb,
			Group: right.Group, Resource: right.Resource, Subresource: right.Subresource,
		}
	}
	if err := c.review(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, review); err != nil {
		return Decision{}, err
	}
	status := review.Status
	if status.EvaluationError != "" && !status.Allowed && !status.Denied {
		return Decision{}, fmt.Errorf("the authorizer could not decide: %s", clean.Text(status.EvaluationError))
	}
	return Decision{Allowed: status.Allowed, Reason: clean.Text(status.Reason)}, nil
}
