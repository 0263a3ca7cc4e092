package ondemand

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster"
	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// mintToken has the first token made, and a new one where that has ended before
// the web node had one of its own.
type mintToken struct{ action.Mint }

// Plan says that a token that has ended is made anew.
func (m mintToken) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := m.Mint.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	c.Permissions = append(
		c.Permissions,
		permission.Rule{
			Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace, Name: account,
		},
	)
	old, err := spent(ctx, e)
	if err != nil || !old {
		return c, err
	}
	for i := range c.Items {
		if c.Items[i].Verb == steps.Leave {
			c.Items[i].Verb = steps.Update
		}
		c.Items[i].Note, c.Items[i].Hash = "the token in it has ended, or does so within minutes: a new one is made", "anew:"+
			c.Items[i].Hash
	}
	c.Permissions = append(
		c.Permissions, permission.Rule{Verb: "patch", Resource: "secrets", Namespace: namespace, Name: firstToken},
	)
	return c, nil
}

// Do empties the Secret of a token that has ended, then has one made.
func (m mintToken) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	old, err := spent(ctx, e)
	if err != nil {
		return err
	}
	if old {
		patch := []byte(`{"data":{"` + tokenKey + `":null}}`)
		if _, err := e.Cluster.Patch(
			ctx, secretsKind, namespace, firstToken, patch, cluster.PatchOptions{Manager: e.Manager()},
		); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := m.Mint.Do(ctx, e, say); err != nil {
		return err
	}
	say.Say("a token was asked for %s; what was granted is looked at next", askedFor(e))
	return nil
}

var secretsKind = check.Namespaces.GroupVersion().WithResource("secrets")

// spent tells whether the first token is of no use any more and somebody needs
// one: root's own on the web node lives on without it.
func spent(ctx context.Context, e steps.Env) (bool, error) {
	live, err := e.Cluster.Secret(ctx, namespace, firstToken, tokenKey)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil || live.Data[tokenKey].IsZero() {
		return false, err
	}
	t, err := bearer.Parse(live.Data[tokenKey])
	if err != nil {
		return true, nil // no token at all: nothing that anybody could use
	}
	if !t.Expired(time.Now().Add(leastLeft)) {
		return false, nil
	}
	return !rootLives(e), nil
}

// rootLives tells whether the web node has a token that has not ended.
func rootLives(e steps.Env) bool {
	text, err := e.Peer.Text("root-token-ends")
	if err != nil {
		return false
	}
	ends, err := time.Parse(time.RFC3339, text)
	return err == nil && ends.After(time.Now())
}

func requestToken(ctx context.Context, e steps.Env) (map[string]masked.Value, error) {
	m, _, err := e.Cluster.RequestToken(ctx, namespace, account, cluster.TokenOptions{Expires: askedFor(e)})
	if err != nil {
		return nil, err
	}
	return map[string]masked.Value{tokenKey: m}, nil
}

func trimmed(data []byte) string { return strings.TrimSpace(string(data)) }
