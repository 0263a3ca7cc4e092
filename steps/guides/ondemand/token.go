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

// Objects in the cluster that store the token and allow its renewal. renewFile is the asset for the renewal.
const (
	firstToken  = "ondemand-first-token" // for rotating tokens
	tokenSecret = "token"                // for non-expiring tokens; the published guide uses this name
	renewRole   = "ondemand-token-renew"
	renewFile   = "token-renew.yaml"
)

const tokenKey = "token"

// leastLeft is the minimum remaining lifetime of the token in the Secret firstToken. carrick replaces a token that
// expires sooner.
const leastLeft = 15 * time.Minute

func token() steps.Step {
	return steps.Step{
		Name: "token", Title: "Token",
		Map: steps.MapRow{Local: "root's token", Remote: "token", Arrow: steps.Local},
		Why: "Since Kubernetes 1.24 no token is created for a ServiceAccount automatically. A stolen rotating token soon " +
			"expires, but the token must be renewed. A non-expiring token is valid until its Secret is deleted.",
		Ask: []steps.Question{
			{
				Key: "token.kind", Title: "Kind of root's token", Kind: steps.Pick, On: steps.Remote, Adopt: adoptTokenKind,
				Of: []steps.Choice{
					{Value: "rotating", Title: "rotating: expires, renewed by the web node"},
					{Value: "non-expiring", Title: "non-expiring: kept in a Secret on the cluster, never renewed"},
				},
				Help: "A stolen rotating token expires after some hours. If the web node is off for longer than its lifetime, an " +
					"admin must create a new token.",
				Default: steps.Fixed("rotating", "Kubernetes' recommendation"),
			},
			{
				Key: "token.hours", Title: "Token lifetime (hours)", Kind: steps.Number, When: rotating,
				Check: checkHours,
				Help: "A number from 2 to 8760, such as 24. The API server can grant less " +
					"(--service-account-max-token-expiration). The web node can be off for this long without an admin's help.",
				Default: steps.Fixed(24, "default; survives an overnight outage"),
			},
			{
				Key: "token.renewal", Title: "Renewal of the rotating token", Kind: steps.Pick, When: rotating,
				Of: []steps.Choice{
					{Value: "timer", Title: "timer: a systemd timer"},
					{Value: "cron", Title: "cron: a file in /etc/cron.d"},
				},
				Help:    "The renewal runs every hour, so several renewals can fail before the token expires.",
				Default: steps.Fixed("timer", "default; catches up after the machine was off"),
			},
		},
		Facts: []steps.Fact{
			{
				Name: "token", Title: "the ServiceAccount's token for root on the web node", On: steps.Remote, Secret: true,
				Shared: true, Learn: theToken,
			},
			{Name: "token-ends", Title: "when that token expires", On: steps.Remote, Shared: true, Learn: tokenEnds},
			{
				Name: "root-token-ends", Title: "when root's token on the web node expires", On: steps.Local, Shared: true,
				Learn: rootTokenEnds,
			},
		},
		Actions: append([]steps.Action{
			{
				Name: "token-renew", Title: "Allow the ServiceAccount to renew its own token", On: steps.Remote, When: rotating,
				Needs: []string{"namespace"},
				Doer:  action.Manifest{File: renewFile},
			},
			{
				Name: "first-token", Title: "Request the first token", On: steps.Remote, When: rotating,
				Needs: []string{"service-account"},
				Doer:  mintToken{action.Mint{File: "first-token.yaml", Keys: []string{tokenKey}, Make: requestToken}},
			},
			{
				Name: "token-secret", Title: "Create the Secret of a non-expiring token", On: steps.Remote, When: lasting,
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
		return errors.New("a number of hours from 2 (the token is renewed every hour) to 8760 (a year)")
	}
	return nil
}

func askedFor(e steps.Env) time.Duration {
	return time.Duration(e.Answers.Int("token.hours")) * time.Hour
}

// whichSecret returns the name of the Secret that contains the web node's token.
func whichSecret(e steps.Env) string {
	if lasting(e) {
		return tokenSecret
	}
	return firstToken
}

// storedToken returns the web node's token from the cluster's Secret. It returns an AbsentError if the Secret or its
// token does not exist yet.
func storedToken(ctx context.Context, e steps.Env) (masked.Value, error) {
	name := whichSecret(e)
	s, err := e.Cluster.Secret(ctx, namespace, name, tokenKey)
	if apierrors.IsNotFound(err) {
		return masked.Value{}, steps.Absent("Secret %s/%s does not exist yet", namespace, name)
	}
	if err != nil {
		return masked.Value{}, err
	}
	if s.Data[tokenKey].IsZero() {
		return masked.Value{}, steps.Absent("Secret %s/%s contains no token yet", namespace, name)
	}
	return s.Data[tokenKey], nil
}

func theToken(ctx context.Context, e steps.Env) (any, error) {
	m, err := storedToken(ctx, e)
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
			"the token in Secret %s/%s expired on %s; create a new token: %s", namespace, whichSecret(e),
			t.Expires.Local().Format(time.DateTime), e.ApplyStep("token"),
		)
	}
	return m, nil
}

func tokenEnds(ctx context.Context, e steps.Env) (any, error) {
	m, err := storedToken(ctx, e)
	if err != nil {
		return nil, err
	}
	t, err := bearer.Parse(m)
	if err != nil {
		return nil, err
	}
	if t.Expires.IsZero() {
		return nil, steps.Absent("the token does not expire")
	}
	return t.Expires.UTC().Format(time.RFC3339), nil
}

// rootTokenEnds returns the expiry of root's token on the web node, in RFC 3339. While root's token is valid, carrick
// does not replace an expired token in the Secret firstToken, because root no longer needs that token.
func rootTokenEnds(ctx context.Context, e steps.Env) (any, error) {
	data, err := e.Host.Read(ctx, rootToken)
	if err != nil {
		return nil, steps.Absent("%s cannot be read: %s", rootToken, failure.Explain(err))
	}
	t, err := bearer.Parse(masked.New(trimmed(data)))
	if err != nil || t.Expires.IsZero() {
		return nil, steps.Absent("%s contains no token with an expiry", rootToken)
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
