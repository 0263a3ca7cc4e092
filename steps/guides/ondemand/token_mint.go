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

// mintToken requests the web node's initial token and stores it in the Secret firstToken. If the initial token expires
// before the web node has a valid token, mintToken replaces the initial token.
type mintToken struct{ action.Mint }

// Plan shows an update if Do would replace an expired token.
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
		c.Items[i].Note, c.Items[i].Hash = "the token has expired or expires within minutes, so carrick requests a new token", "new:"+
			c.Items[i].Hash
	}
	c.Permissions = append(
		c.Permissions, permission.Rule{Verb: "patch", Resource: "secrets", Namespace: namespace, Name: firstToken},
	)
	return c, nil
}

// Do removes the token from the Secret if it must be replaced, and then requests a new token.
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
	say.Say("requested a token with a lifetime of %s; carrick checks the granted lifetime next", askedFor(e))
	return nil
}

var secretsKind = check.Namespaces.GroupVersion().WithResource("secrets")

// spent reports whether the token in the Secret firstToken must be replaced. This is the case if the value is not a
// token, or if it expires within leastLeft and root has no valid token on the web node.
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
		return true, nil // the value is not a token
	}
	if !t.Expired(time.Now().Add(leastLeft)) {
		return false, nil
	}
	return !rootLives(e), nil
}

// rootLives reports whether root's token on the web node is still valid.
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
