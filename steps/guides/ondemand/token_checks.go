package ondemand

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"carrick/cluster/bearer"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/tracked"
	"carrick/steps"
	"carrick/steps/check"
)

func tokenChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "renew-role", Title: "The ServiceAccount is allowed to renew its own token", On: steps.Remote, When: rotating,
			FixedBy: "token-renew", Needs: []string{"service-account"},
			Why: "Upstream's role lacks serviceaccounts/token. The published guide's crontab entry is denied, and the first " +
				"token expires without a replacement.",
			References: []string{rolesSource, page},
			Run:        renewAllowed,
		},
		{
			Name: "token-created", Title: "A token is available for the web node", On: steps.Remote,
			Needs: []string{"service-account"}, Timeout: 30 * time.Second,
			Why:        "The token is the only credential in root's kubeconfig.",
			References: []string{page},
			Run:        tokenMade,
		},
		{
			Name: "token-lifetime", Title: "The API server grants the requested token lifetime", On: steps.Remote,
			When: rotating, Needs: []string{"token-created"},
			Why: "The API server caps the lifetime at --service-account-max-token-expiration with only a warning. " +
				"Renewals at longer intervals come too late.",
			References: []string{"kubernetes/kubernetes pull request 107880"},
			Run:        tokenGranted,
		},
		{
			Name: "token-accepted", Title: "The API server accepts the token", On: steps.Remote,
			Needs: []string{"token-created"},
			Why: "A token is bound to the ServiceAccount's UID. Tokens of an account that was deleted and recreated " +
				"are invalid.",
			References: []string{page},
			Run:        tokenAccepted,
		},
	}
}

func renewAllowed(ctx context.Context, e steps.Env) steps.Result {
	want, err := meant(e, renewFile, renewRole)
	if err != nil {
		return steps.Errored(err)
	}
	inside, err := granted(ctx, e, namespace)
	if err != nil {
		return steps.Errored(err)
	}
	everywhere, err := granted(ctx, e, "")
	if err != nil {
		return steps.Errored(err)
	}
	for _, g := range append(inside, everywhere...) {
		if ok, _ := validation.Covers(g.Rules, want); ok {
			return steps.Passed("granted by %s", g)
		}
	}
	return steps.Undone(fmt.Sprintf(
		"no role bound to %s/%s allows it to create serviceaccounts/token in %s", namespace, account, namespace,
	))
}

func tokenMade(ctx context.Context, e steps.Env) steps.Result {
	name := namespace + "/" + whichSecret(e)
	s, err := e.Cluster.Secret(ctx, namespace, whichSecret(e), tokenKey)
	if err != nil {
		if apierrors.IsNotFound(err) && rootLives(e) {
			return steps.Passed(
				"Secret %s does not exist, but the %s does not need it: root has a valid token", name, e.PeerName(),
			)
		}
		return check.Missing(err, "Secret "+name, e.ApplyStep("token"))
	}
	remake := e.Kubectl() + " -n " + namespace + " delete secret " + whichSecret(e) + "    # then " + e.ApplyStep("token")
	if lasting(e) {
		if r := check.TokenSecret(e, s, account, remake, tokenKey); r.Status != steps.Pass {
			return r
		}
	}
	if s.Data[tokenKey].IsZero() {
		return steps.Failed("Secret "+name+" has no token", e.ApplyStep("token"))
	}
	t, err := bearer.Parse(s.Data[tokenKey])
	if err != nil {
		return steps.Failed(fmt.Sprintf("the content of Secret %s is not usable: %s", name, failure.Explain(err)), remake)
	}
	if ns, sa, _ := t.ServiceAccount(); ns != namespace || sa != account {
		return steps.Failed(
			fmt.Sprintf("the token in Secret %s belongs to %s, not to %s", name, t.Subject, accountUser), remake,
		)
	}
	if !t.Expires.IsZero() {
		tracked.Expires(ctx, t.Expires.Add(-leastLeft))
	}
	switch {
	case t.Expires.IsZero():
		return steps.Passed("Secret %s contains a token that does not expire", name)
	case !t.Expired(time.Now().Add(leastLeft)):
		return steps.Passed(
			"Secret %s contains a token that is valid until %s", name, t.Expires.Local().Format(time.DateTime),
		)
	case rootLives(e):
		return steps.Passed("the first token is no longer needed; root has its own token")
	}
	return steps.Failed(
		fmt.Sprintf(
			"the token in Secret %s expires on %s, and the %s has no other valid token", name,
			t.Expires.Local().Format(time.DateTime), e.PeerName(),
		),
		e.ApplyStep("token"),
	)
}

func tokenGranted(ctx context.Context, e steps.Env) steps.Result {
	m, err := storedToken(ctx, e)
	if steps.IsAbsent(err) && rootLives(e) {
		return steps.Skipped("the first token does not exist; root's own token is checked on the %s", e.PeerName())
	}
	if err != nil {
		return steps.Errored(err)
	}
	t, err := bearer.Parse(m)
	if err != nil {
		return steps.Errored(err)
	}
	if t.Expires.IsZero() || t.IssuedAt.IsZero() {
		return steps.Skipped("the token has no exp or no iat claim, so its lifetime is unknown")
	}
	got, asked := t.Expires.Sub(t.IssuedAt), askedFor(e)
	if got >= asked-time.Minute {
		return steps.Passed("the API server granted %s (requested: %s)", inHours(got), inHours(asked))
	}
	found := fmt.Sprintf(
		"%s were requested, but only %s were granted: the API server caps the lifetime, or token.hours has changed since",
		inHours(asked),
		inHours(got),
	)
	if got < 2*time.Hour {
		return steps.Warned(
			found+". An hourly renewal can come too late",
			"raise the API server's --service-account-max-token-expiration to at least 2h, or choose a token that does not "+
				"expire (token.kind)",
		)
	}
	return steps.Warned(
		found,
		fmt.Sprintf(
			"set token.hours to %d to match, or raise the API server's --service-account-max-token-expiration",
			int(got.Hours()),
		),
	)
}

func inHours(d time.Duration) string {
	if d < 2*time.Hour {
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	}
	return fmt.Sprintf("%d hours", int(d.Round(time.Minute).Hours()))
}

func tokenAccepted(ctx context.Context, e steps.Env) steps.Result {
	m, err := e.Own.Masked("token")
	if err != nil && rootLives(e) {
		return steps.Skipped("the first token is no longer needed; root's own token is checked on the %s", e.PeerName())
	}
	if err != nil {
		return steps.Errored(err)
	}
	k := kubeconfig.Config{Name: e.Link, Server: e.Cluster.Server(), CA: e.Cluster.CA(), Token: m}
	as, err := e.Cluster.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		return steps.Errored(err)
	}
	const remade = "the API server rejects the token in Secret %s/%s, for example because the ServiceAccount was recreated"
	refused := func() steps.Result {
		return steps.Failed(fmt.Sprintf(remade, namespace, whichSecret(e)),
			e.Kubectl()+" -n "+namespace+" delete secret "+whichSecret(e)+"    # then "+e.ApplyStep("token"))
	}
	return check.AuthenticatesAs(ctx, as, accountUser, refused, func(name string) steps.Result {
		return steps.Failed("the API server authenticates the token as "+name+", not as "+accountUser, "")
	})
}
