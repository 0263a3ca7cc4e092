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
			Name: "renew-role", Title: "the ServiceAccount may renew its own token", On: steps.Remote, When: rotating,
			FixedBy: "token-renew", Needs: []string{"service-account"},
			Why: "upstream's role has no serviceaccounts/token: the published guide's crontab entry is forbidden as " +
				"this ServiceAccount, and the first token ends without another",
			References: []string{rolesSource, page},
			Run:        renewAllowed,
		},
		{
			Name: "token-made", Title: "a token stands ready for the web node", On: steps.Remote,
			Needs: []string{"service-account"}, Timeout: 30 * time.Second,
			Why:        "root's kubeconfig holds it and nothing else",
			References: []string{page},
			Run:        tokenMade,
		},
		{
			Name: "token-granted", Title: "the API server grants tokens for as long as is asked", On: steps.Remote,
			When: rotating, Needs: []string{"token-made"},
			Why: "the server shortens what is longer than its --service-account-max-token-expiration, with no more " +
				"than a warning: a renewal that comes less often than that is too late",
			References: []string{"kubernetes/kubernetes pull request 107880"},
			Run:        tokenGranted,
		},
		{
			Name: "token-accepted", Title: "the API server takes the token", On: steps.Remote, Needs: []string{"token-made"},
			Why:        "a token is bound to the ServiceAccount as it was: one that was deleted and made anew has other tokens",
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
			return steps.Passed("by %s", g)
		}
	}
	return steps.Undone(fmt.Sprintf(
		"nothing that is bound to %s/%s lets it create serviceaccounts/token in %s", namespace, account, namespace,
	))
}

func tokenMade(ctx context.Context, e steps.Env) steps.Result {
	name := namespace + "/" + whichSecret(e)
	s, err := e.Cluster.Secret(ctx, namespace, whichSecret(e), tokenKey)
	if err != nil {
		if apierrors.IsNotFound(err) && rootLives(e) {
			return steps.Passed("there is no Secret %s, and the %s needs none: root has a token that lives", name, e.PeerName())
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
		return steps.Failed(fmt.Sprintf("what stands in Secret %s is of no use: %s", name, failure.Explain(err)), remake)
	}
	if ns, sa, _ := t.ServiceAccount(); ns != namespace || sa != account {
		return steps.Failed(fmt.Sprintf("the token in Secret %s is of %s, not of %s", name, t.Subject, accountUser), remake)
	}
	if !t.Expires.IsZero() {
		tracked.Expires(ctx, t.Expires.Add(-leastLeft))
	}
	switch {
	case t.Expires.IsZero():
		return steps.Passed("Secret %s holds a token that does not expire", name)
	case !t.Expired(time.Now().Add(leastLeft)):
		return steps.Passed("Secret %s holds a token that is good until %s", name, t.Expires.Local().Format(time.DateTime))
	case rootLives(e):
		return steps.Passed("the first token is spent; root has one of its own")
	}
	return steps.Failed(
		fmt.Sprintf(
			"the token in Secret %s ends on %s, and the %s has no other that lives", name,
			t.Expires.Local().Format(time.DateTime), e.PeerName(),
		),
		e.ApplyStep("token"),
	)
}

func tokenGranted(ctx context.Context, e steps.Env) steps.Result {
	m, err := standingToken(ctx, e)
	if steps.IsAbsent(err) && rootLives(e) {
		return steps.Skipped("there is no first token; root's own is looked at on the %s", e.PeerName())
	}
	if err != nil {
		return steps.Errored(err)
	}
	t, err := bearer.Parse(m)
	if err != nil {
		return steps.Errored(err)
	}
	if t.Expires.IsZero() || t.IssuedAt.IsZero() {
		return steps.Skipped("the token does not say for how long it was granted")
	}
	got, asked := t.Expires.Sub(t.IssuedAt), askedFor(e)
	if got >= asked-time.Minute {
		return steps.Passed("%s of %s", inHours(got), inHours(asked))
	}
	found := fmt.Sprintf(
		"%s were asked for and %s granted: the API server caps it, or token.hours was answered anew since", inHours(asked),
		inHours(got),
	)
	if got < 2*time.Hour {
		return steps.Warned(
			found+". A renewal every hour may come too late",
			"have --service-account-max-token-expiration of the API server raised to 2h at least; else choose a token that "+
				"does not expire (token.kind)",
		)
	}
	return steps.Warned(
		found,
		fmt.Sprintf(
			"answer token.hours with %d, so that nobody counts on more; or have --service-account-max-token-expiration of the "+
				"API server raised",
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
		return steps.Skipped("the first token is spent; root's own is looked at on the %s", e.PeerName())
	}
	if err != nil {
		return steps.Errored(err)
	}
	k := kubeconfig.Config{Name: e.Link, Server: e.Cluster.Server(), CA: e.Cluster.CA(), Token: m}
	as, err := e.Cluster.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		return steps.Errored(err)
	}
	const remade = "the API server refuses the token in Secret %s/%s: was the ServiceAccount made anew since?"
	refused := func() steps.Result {
		return steps.Failed(fmt.Sprintf(remade, namespace, whichSecret(e)),
			e.Kubectl()+" -n "+namespace+" delete secret "+whichSecret(e)+"    # then "+e.ApplyStep("token"))
	}
	return check.AuthenticatesAs(ctx, as, accountUser, refused, func(name string) steps.Result {
		return steps.Failed("the API server takes the token for "+name+", not for "+accountUser, "")
	})
}
