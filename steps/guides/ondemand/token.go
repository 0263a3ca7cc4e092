package ondemand

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/bearer"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/action"
)

// What stands on the cluster for the token, and who may renew it.
const (
	firstToken  = "ondemand-first-token" // rotating
	tokenSecret = "token"                // non-expiring; as the published page calls it
	renewRole   = "ondemand-token-renew"
	renewFile   = "token-renew.yaml"
)

const tokenKey = "token"

// leastLeft is how much life a first token must have to be worth handing over.
const leastLeft = 15 * time.Minute

func token() steps.Step {
	return steps.Step{
		Name: "token", Title: "Token",
		Why: "Since Kubernetes 1.24 no ServiceAccount has a token by itself. A rotating one ends by itself when it is " +
			"stolen, but has to be renewed for as long as the web node runs: after an outage longer than its life an admin " +
			"has to hand over a new one. One that does not expire needs no renewal and is good until somebody deletes " +
			"its Secret.",
		Ask: []steps.Question{
			{
				Key: "token.kind", Title: "Kind of root's token", Kind: steps.Pick, On: steps.Remote, Adopt: adoptTokenKind,
				Of: []steps.Choice{
					{Value: "rotating", Title: "rotating: ends by itself, renewed by the web node"},
					{Value: "non-expiring", Title: "non-expiring: kept in a Secret of the cluster, never renewed"},
				},
				Help: "What is stolen of a rotating one is worth nothing after some hours; a web node that was off for longer " +
					"has to be given a new one by an admin.",
				Default: steps.Fixed("rotating", "what Kubernetes recommends"),
			},
			{
				Key: "token.hours", Title: "Hours for which a rotating token is asked", Kind: steps.Number, When: rotating,
				Check: checkHours,
				Help: "The API server may grant less (--service-account-max-token-expiration). It is also how long the web " +
					"node may be off without an admin's help.",
				Default: steps.Fixed(24, "an outage of a night is survived"),
			},
			{
				Key: "token.renewal", Title: "What renews a rotating token on the web node", Kind: steps.Pick, When: rotating,
				Of: []steps.Choice{
					{Value: "timer", Title: "timer: a systemd timer"},
					{Value: "cron", Title: "cron: a file in /etc/cron.d"},
				},
				Help:    "It runs every hour, so that many renewals may fail before the token ends.",
				Default: steps.Fixed("timer", "it runs what was missed while the machine was off"),
			},
		},
		Facts: []steps.Fact{
			{
				Name: "token", Title: "the ServiceAccount's token for root on the web node", On: steps.Remote, Secret: true,
				Shared: true, Learn: theToken,
			},
			{Name: "token-ends", Title: "when that token ends", On: steps.Remote, Shared: true, Learn: tokenEnds},
			{
				Name: "root-token-ends", Title: "when the token that root has on the web node ends", On: steps.Local, Shared: true,
				Learn: rootTokenEnds,
			},
		},
		Actions: append([]steps.Action{
			{
				Name: "token-renew", Title: "Let it renew its own token", On: steps.Remote, When: rotating,
				Needs: []string{"namespace"},
				Doer:  action.Manifest{File: renewFile},
			},
			{
				Name: "first-token", Title: "Have the first token made", On: steps.Remote, When: rotating,
				Needs: []string{"service-account"},
				Doer:  mintToken{action.Mint{File: "first-token.yaml", Keys: []string{tokenKey}, Make: requestToken}},
			},
			{
				Name: "token-secret", Title: "Have a token made that does not expire", On: steps.Remote, When: lasting,
				Needs: []string{"service-account"},
				Doer:  action.Manifest{File: "token.yaml"},
			},
		}, tokenFiles()...),
		Checks: append(tokenChecks(), tokenFileChecks()...),
	}
}

func rotating(e steps.Env) bool { return e.Answers.Text("token.kind") == "rotating" }
func lasting(e steps.Env) bool  { return e.Answers.Text("token.kind") == "non-expiring" }

func checkHours(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 2 || n > 24*365 {
		return errors.New("a number of hours from 2 (it is renewed every hour) to 8760 (a year)")
	}
	return nil
}

func askedFor(e steps.Env) time.Duration {
	return time.Duration(e.Answers.Int("token.hours")) * time.Hour
}

// whichSecret is the Secret that the token is in.
func whichSecret(e steps.Env) string {
	if lasting(e) {
		return tokenSecret
	}
	return firstToken
}

// standingToken is the token that the cluster keeps for the web node.
func standingToken(ctx context.Context, e steps.Env) (masked.Value, error) {
	name := whichSecret(e)
	s, err := e.Cluster.Secret(ctx, namespace, name, tokenKey)
	if apierrors.IsNotFound(err) {
		return masked.Value{}, steps.Absent("there is no Secret %s/%s yet", namespace, name)
	}
	if err != nil {
		return masked.Value{}, err
	}
	if s.Data[tokenKey].IsZero() {
		return masked.Value{}, steps.Absent("Secret %s/%s holds no token yet", namespace, name)
	}
	return s.Data[tokenKey], nil
}

func theToken(ctx context.Context, e steps.Env) (any, error) {
	m, err := standingToken(ctx, e)
	if err != nil {
		return nil, err
	}
	t, err := bearer.Parse(m)
	if err != nil {
		return nil, fmt.Errorf("the token in Secret %s/%s: %w", namespace, whichSecret(e), err)
	}
	if !t.Expires.IsZero() {
		tracked.Expires(ctx, t.Expires)
	}
	if t.Expired(time.Now()) {
		return nil, steps.Absent(
			"the token in Secret %s/%s ended on %s; a new one: %s", namespace, whichSecret(e),
			t.Expires.Local().Format(time.DateTime), e.ApplyStep("token"),
		)
	}
	return m, nil
}

func tokenEnds(ctx context.Context, e steps.Env) (any, error) {
	m, err := standingToken(ctx, e)
	if err != nil {
		return nil, err
	}
	t, err := bearer.Parse(m)
	if err != nil {
		return nil, err
	}
	if t.Expires.IsZero() {
		return nil, steps.Absent("the token does not end")
	}
	return t.Expires.UTC().Format(time.RFC3339), nil
}

// rootTokenEnds is read off the web node: as long as that token lives, the first
// one is not made anew.
func rootTokenEnds(ctx context.Context, e steps.Env) (any, error) {
	data, err := e.Host.Read(ctx, rootToken)
	if err != nil {
		return nil, steps.Absent("%s can't be read: %s", rootToken, failure.Explain(err))
	}
	t, err := bearer.Parse(masked.New(trimmed(data)))
	if err != nil || t.Expires.IsZero() {
		return nil, steps.Absent("%s holds no token that says when it ends", rootToken)
	}
	return t.Expires.UTC().Format(time.RFC3339), nil
}

func adoptTokenKind(ctx context.Context, e steps.Env) (any, string, error) {
	s, err := e.Cluster.Secret(ctx, namespace, tokenSecret)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	of := s.Annotations[corev1.ServiceAccountNameKey]
	if of == account && s.Type == string(corev1.SecretTypeServiceAccountToken) {
		return "non-expiring", "Secret " + namespace + "/" + tokenSecret, nil
	}
	return nil, "", nil
}
