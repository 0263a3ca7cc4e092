package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/clean"
	"carrick/steps"
)

// tokenFileChecks are the web node's half of the checks of the step token.
func tokenFileChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "root-token", Title: "root has a token of the ServiceAccount", On: steps.Local, FixedBy: "token-file",
			Why:        "it is all that root's kubeconfig holds; the token of another account has other rights",
			References: []string{page},
			Run:        rootTokenThere,
		},
		{
			Name: "root-token-private", Title: "nobody but root may read root's token", On: steps.Local, FixedBy: "token-file",
			Needs:      []string{"root-token"},
			Why:        "whoever reads it may make namespaces and roles on the cluster until it ends",
			References: []string{page},
			Run:        rootTokenPrivate,
		},
		{
			Name: "root-token-lasts", Title: "root's token has life left", On: steps.Local, FixedBy: "token-file",
			Needs: []string{"root-token"},
			Why: "it renews itself, so once it has ended it can't any more: from then on no namespace is made at a " +
				"login, and nobody is told",
			References: []string{page},
			Run:        rootTokenLasts,
		},
		{
			Name: "root-token-granted", Title: "root's token was granted for as long as it is asked for", On: steps.Local,
			Needs: []string{"root-token"}, When: rotating,
			Why: "the API server shortens what is longer than its --service-account-max-token-expiration with no more " +
				"than a warning: how long an outage may last depends on what it gave, not on what was asked for",
			References: []string{"kubernetes/kubernetes: pull request 107880"},
			Run:        rootTokenGranted,
		},
		{
			Name: "renewal-there", Title: "something renews root's token", On: steps.Local, When: rotating,
			FixedBy:    "renew-script",
			Why:        "a token that rotates ends by itself",
			References: []string{page},
			Run:        renewalThere,
		},
		{
			Name: "renewal-on", Title: "the renewal is switched on", On: steps.Local, When: withTimer, FixedBy: "enable-timer",
			Needs: []string{"renewal-there"},
			Why:   "a timer that is only written runs never",
			Run:   renewalOn,
		},
		{
			Name: "renewal-published", Title: "no renewal as published is left beside it", On: steps.Local,
			Why: "its kubectl config set-credentials shows the token in the list of processes and writes it into " +
				"/root/.kube/config. As upstream's roles stand it is refused every time (see whether the ServiceAccount may " +
				"renew its own token); what it wrote last stays there",
			References: []string{page},
			Run:        publishedRenewal,
		},
	}
}

func rootTokenThere(ctx context.Context, e steps.Env) steps.Result {
	token, at, err := rootsToken(ctx, e)
	if absent := (*steps.AbsentError)(nil); errors.As(err, &absent) {
		return steps.Undone(absent.Error())
	}
	if broken := (brokenKubeconfigError{}); errors.As(err, &broken) {
		return steps.Failed(broken.Error(), "")
	}
	if err != nil {
		return steps.Errored(err)
	}
	t, err := bearer.Parse(token)
	if err != nil {
		return steps.Failed(at+": "+err.Error(), "")
	}
	if t.Subject != accountUser {
		return steps.Failed(fmt.Sprintf("the token in %s is of %q, not of %s", at, clean.Text(t.Subject), accountUser), "")
	}
	return steps.Passed("%s holds a token of %s", at, t.Subject)
}

func rootTokenPrivate(ctx context.Context, e steps.Env) steps.Result {
	_, at, err := rootsToken(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	return onlyRoots(ctx, e, at)
}

// rootsClaims is what root's token says of itself.
func rootsClaims(ctx context.Context, e steps.Env) (t bearer.Token, at string, err error) {
	token, at, err := rootsToken(ctx, e)
	if err != nil {
		return t, at, err
	}
	t, err = bearer.Parse(token)
	return t, at, err
}

func rootTokenLasts(ctx context.Context, e steps.Env) steps.Result {
	t, at, err := rootsClaims(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	return lasts(t, at, renewalOf(e).every(), rotating(e), time.Now(), newTokenFix(e))
}

// lasts judges the life that is left to a token.
func lasts(t bearer.Token, at string, every time.Duration, renewed bool, now time.Time, fix string) steps.Result {
	ends := t.Expires.Local().Format(time.DateTime)
	left := t.Expires.Sub(now)
	var r steps.Result
	switch {
	case t.Expires.IsZero():
		return steps.Passed("the token in %s does not end", at)
	case t.Expired(now):
		return steps.Failed(
			fmt.Sprintf(
				"the token in %s ended at %s: it can't renew itself, an admin of the cluster has to make a new one once", at, ends,
			),
			fix,
		)
	case !renewed:
		r = steps.Failed(fmt.Sprintf("the token in %s ends at %s, and nothing renews it", at, ends), fix)
		r.Again = t.Expires
	case left < 2*every:
		r = steps.Warned(
			fmt.Sprintf("the token in %s ends at %s, within two renewals: the last ones did not succeed", at, ends),
			onWebNode("sh "+renewScript+"; journalctl -t "+renewName),
		)
		r.Again = t.Expires
	default:
		r = steps.Passed("the token in %s is good until %s: so long may the web node or the cluster be away", at, ends)
		r.Again = t.Expires.Add(-2 * every)
	}
	return r
}

func rootTokenGranted(ctx context.Context, e steps.Env) steps.Result {
	t, at, err := rootsClaims(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	if t.Expires.IsZero() || t.IssuedAt.IsZero() {
		return steps.Skipped("the token in %s does not say for how long it was made", at)
	}
	return wasGranted(t.Expires.Sub(t.IssuedAt), renewalOf(e), at)
}

// wasGranted compares what the API server gave with what is asked for.
func wasGranted(got time.Duration, r renewal, at string) steps.Result {
	asked := time.Duration(r.Hours) * time.Hour
	if got >= asked-time.Minute {
		return steps.Passed(
			"the token in %s was made for %s; renewed %s, so an outage may last %s", at, hoursAndMinutes(got), r.often(),
			hoursAndMinutes(got-r.every()),
		)
	}
	found := fmt.Sprintf(
		"the token in %s was made for %s, not for %s: the API server caps it (--service-account-max-token-expiration), or "+
			"less was asked for",
		at, hoursAndMinutes(got), hoursAndMinutes(asked),
	)
	raise := "have --service-account-max-token-expiration of the API server raised to " + hoursAndMinutes(asked)
	fitting := renewal{Hours: max(2, int(got/time.Hour))}
	switch {
	case got < 2*r.every() && got >= 2*fitting.every():
		return steps.Failed(
			found+"; renewed "+r.often()+" it may end in between",
			fmt.Sprintf("answer token.hours with %d: then it is renewed %s; or %s", fitting.Hours, fitting.often(), raise),
		)
	case got < 2*r.every():
		return steps.Failed(
			found+"; renewed "+r.often()+" it may end in between", raise+"; or answer token.kind with non-expiring",
		)
	}
	return steps.Warned(
		found+"; an outage may last "+hoursAndMinutes(got-r.every()),
		fmt.Sprintf("answer token.hours with %d, so that nobody counts on more; or %s", fitting.Hours, raise),
	)
}

func renewalThere(ctx context.Context, e steps.Env) steps.Result {
	r := renewalOf(e)
	script, err := r.script()
	if err != nil {
		return steps.Failed(err.Error(), "answer it anew: carrick "+e.LinkFile())
	}
	want := map[string]string{renewScript: script, renewService: r.service(), renewTimer: r.timer()}
	order := []string{renewScript, renewService, renewTimer}
	if withCron(e) {
		want, order = map[string]string{renewScript: script, renewCron: r.cron()}, []string{renewScript, renewCron}
	}
	if there, err := fileExists(ctx, e, renewScript); err == nil && !there {
		return renewedElsewhere(ctx, e)
	}
	var changed steps.Result
	if !withCron(e) {
		if changed = renewalChanged(ctx, e); changed.Status != steps.Pass && changed.Status != steps.Warn {
			return changed
		}
	}
	for _, at := range order {
		have, err := e.Host.Read(ctx, at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return steps.Undone("there is no " + at).Or(e.ApplyStep("token"))
		case err != nil:
			return steps.Errored(err)
		case string(have) != want[at]:
			return steps.Warned(at+" is not as carrick writes it", e.ApplyStep("token"))
		}
		if problem, err := rootsProgram(ctx, e, at); err != nil {
			return steps.Errored(err)
		} else if problem != "" {
			return steps.Failed(problem, permissionFix(e, at, "chown root:root %s && chmod go-w %s"))
		}
	}
	if changed.Status == steps.Warn {
		return changed
	}
	return steps.Passed("%s, run %s by %s", renewScript, r.often(), order[len(order)-1])
}

// rootsProgram says who else than root may change what root runs.
func rootsProgram(ctx context.Context, e steps.Env, at string) (string, error) {
	info, err := e.Host.Stat(ctx, at)
	switch {
	case err != nil:
		return "", err
	case info.Mode.Perm()&0o022 != 0:
		return fmt.Sprintf("%s has mode %04o: others than root may change what root runs", at, info.Mode.Perm()), nil
	case !e.Host.IsFolder() && info.UID > 0:
		return fmt.Sprintf("%s belongs to user %d, who may change what root runs", at, info.UID), nil
	}
	_, problem, err := replaceable(e, at)
	return problem, err
}

func renewalOn(ctx context.Context, e steps.Env) steps.Result {
	unit := renewName + ".timer"
	if there, err := fileExists(ctx, e, renewTimer); err == nil && !there {
		return steps.Skipped("the renewal is not carrick's timer")
	}
	for _, ask := range []string{"is-enabled", "is-active"} {
		out, _, err := e.Host.Run(ctx, "systemctl", ask, unit)
		if r, is := inFolder(err, "systemctl "+ask+" "+unit); is {
			return r
		}
		word := strings.TrimSpace(out)
		if err != nil && (word == "" || isNoProgram(err)) {
			return steps.Errored(err)
		}
		if err != nil {
			r := steps.Failed(fmt.Sprintf("systemctl %s %s: %s", ask, unit, word), "")
			r.Again = time.Now().Add(time.Minute)
			return r
		}
	}
	r := steps.Passed("%s is enabled and active", unit)
	r.Again = time.Now().Add(time.Minute)
	return r
}
