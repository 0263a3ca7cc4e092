package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/permission"
	"carrick/cluster/tracked"
)

const (
	reviewAge       = time.Minute
	reviewsTogether = 128 // fewer than the 250 streams that API servers allow on one connection
)

// reviewRetry applies to reviews whose connection breaks. A proxy that cuts watches often cuts the next connection, too.
var reviewRetry = wait.Backoff{Steps: 8, Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1}

// Decision is the API server's decision on one permission. If Err is set, there is no decision and Allowed has no
// meaning.
type Decision struct {
	Rule    permission.Rule
	Allowed bool
	Reason  string // the API server's reason; often empty
	Err     error
}

// Can asks the API server whether the cluster's identity has the given permissions. It returns the decisions in the
// order of the permissions. Each decision is cached for a minute (see tracked.LookOf), or until an RBAC object changes
// that the cluster watches. Can returns an error only if there is no decision at all.
func (c *Cluster) Can(ctx context.Context, rights ...permission.Rule) ([]Decision, error) {
	decisions := make([]Decision, len(rights))
	var group errgroup.Group
	group.SetLimit(reviewsTogether)
	for i, right := range rights {
		group.Go(func() error {
			decision, err := tracked.LookOf(
				ctx, c, fmt.Sprintf("review/can/%#v", right), reviewAge, func(ctx context.Context) (Decision, error) {
					c.reviewed(ctx)
					return c.decide(ctx, right)
				},
			)
			decisions[i] = decision
			decisions[i].Rule, decisions[i].Err = right, err
			return nil
		})
	}
	_ = group.Wait()
	errs := make([]error, 0, len(rights))
	for _, decision := range decisions {
		if decision.Err == nil {
			return decisions, nil
		}
		errs = append(errs, decision.Err)
	}
	if len(errs) == 0 {
		return decisions, nil
	}
	return decisions, fmt.Errorf("check permissions: %w", errs[0])
}

func (c *Cluster) decide(ctx context.Context, right permission.Rule) (Decision, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	if right.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: right.Path, Verb: right.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: right.Namespace, Name: right.Name, Verb: right.Verb,
			Group: right.Group, Resource: right.Resource, Subresource: right.Subresource,
		}
	}
	if err := c.review(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, review); err != nil {
		return Decision{}, err
	}
	status := review.Status
	if status.EvaluationError != "" && !status.Allowed && !status.Denied {
		return Decision{}, fmt.Errorf("the authorizer could not decide: %s", clean.Text(status.EvaluationError))
	}
	return Decision{Allowed: status.Allowed, Reason: clean.Text(status.Reason)}, nil
}

// allRules is the cached result of Rules.
type allRules struct {
	resources, paths []rbacv1.PolicyRule
	incomplete       bool
}

// Rules returns the permissions of the cluster's identity in the given namespace: rules for resources, and nonResource
// for non-resource URLs. If incomplete is true, an authorizer could not list all its rules. The result is cached for a
// minute (see tracked.LookOf).
func (c *Cluster) Rules(
	ctx context.Context, namespace string,
) (rules, nonResource []rbacv1.PolicyRule, incomplete bool, err error) {
	all, err := tracked.LookOf(ctx, c, "review/rules/"+namespace, reviewAge, func(ctx context.Context) (allRules, error) {
		c.reviewed(ctx)
		return c.rules(ctx, namespace)
	})
	if err != nil {
		return nil, nil, false, fmt.Errorf("list permissions in %s: %w", namespace, err)
	}
	return all.resources, all.paths, all.incomplete, nil
}

func (c *Cluster) rules(ctx context.Context, namespace string) (allRules, error) {
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectRulesReview"
	if err := c.review(ctx, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review, review); err != nil {
		return allRules{}, err
	}
	all := allRules{incomplete: review.Status.Incomplete}
	for _, rule := range review.Status.ResourceRules {
		all.resources = append(all.resources, rbacv1.PolicyRule{
			Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
		})
	}
	for _, rule := range review.Status.NonResourceRules {
		all.paths = append(all.paths, rbacv1.PolicyRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
	}
	return all, nil
}

// broken reports whether a request failed because its connection ended before the response. This happens when a proxy
// cuts a watch, because watches and other requests share a connection.
func broken(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}

// review posts a review and decodes the response into out. If an outage of the cluster has been reported, it sends
// nothing and returns an error. If the connection breaks, it repeats the request, which is safe because a review
// changes nothing. client-go repeats only GET requests.
func (c *Cluster) review(ctx context.Context, path string, in, out any) error {
	if err := c.answering(ctx); err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var answer []byte
	err = retry.OnError(reviewRetry, broken, func() error {
		answer, err = slurp(
			ctx,
			c.api.Post().AbsPath(
				strings.TrimPrefix(path, "/"),
			).SetHeader("Content-Type", "application/json").Body(body).MaxRetries(fewRetries),
		)
		return err
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return failure.NotJSON(err)
	}
	return nil
}

// Standing returns the reported outage of the cluster, or nil if there is none. The trace of ctx records the result, so
// that the caller runs again when an outage is reported or ends.
func (c *Cluster) Standing(ctx context.Context) error {
	tracked.Note(ctx, &c.outages, c.outages.version.Now())
	if said := c.outages.said(); said != nil {
		return said
	}
	return nil
}

// answering returns an error if an outage of the cluster has been reported or the cluster is closed. A check that gets
// this error because of an outage runs again when the outage ends.
func (c *Cluster) answering(ctx context.Context) error {
	gen := c.outages.version.Now()
	if c.life.Err() != nil {
		return failure.ErrClosed
	}
	if said := c.outages.said(); said != nil {
		tracked.Note(ctx, &c.outages, gen)
		return said
	}
	return nil
}

// errNoReview means that the API server does not serve SelfSubjectReview, so carrick cannot identify the user.
var errNoReview = errors.New("the API server cannot identify the user (it has no SelfSubjectReview)")
