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

func tokenFileChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "root-token", Title: "Root has a token of the ServiceAccount", On: steps.Local, FixedBy: "token-file",
			Why:        "The token is root's only credential. A token of another ServiceAccount has other permissions.",
			References: []string{page},
			Run:        rootTokenThere,
		},
		{
			Name: "root-token-private", Title: "Only root can read root's token", On: steps.Local, FixedBy: "token-file",
			Needs:      []string{"root-token"},
			Why:        "Anyone who can read the token can create namespaces and roles on the cluster until it expires.",
			References: []string{page},
			Run:        rootTokenPrivate,
		},
		{
			Name: "root-token-lasts", Title: "Root's token is valid and does not expire soon", On: steps.Local,
			FixedBy:    "token-file",
			Needs:      []string{"root-token"},
			Why:        "An expired token cannot be used to request a new one. After that, a login creates no namespace and shows no error.",
			References: []string{page},
			Run:        rootTokenLasts,
		},
		{
			Name: "root-token-lifetime-granted", Title: "Root's token has the requested lifetime", On: steps.Local,
			Needs: []string{"root-token"}, When: rotating,
			Why: "The API server caps the lifetime at --service-account-max-token-expiration with only a warning. The granted " +
				"lifetime limits how long an outage can last.",
			References: []string{"kubernetes/kubernetes: pull request 107880"},
			Run:        rootTokenGranted,
		},
		{
			Name: "renewal-installed", Title: "Root's token is renewed automatically", On: steps.Local, When: rotating,
			FixedBy:    "renew-script",
			Why:        "Without a renewal the rotating token expires.",
			References: []string{page},
			Run:        renewalThere,
		},
		{
			Name: "renewal-enabled", Title: "The renewal timer is enabled and active", On: steps.Local, When: withTimer,
			FixedBy: "enable-timer",
			Needs:   []string{"renewal-installed"},
			Why:     "A timer that is not enabled never runs.",
			Run:     renewalOn,
		},
		{
			Name: "no-published-renewal", Title: "No renewal from the published guide is left", On: steps.Local,
			Why: "The published renewal exposes the token in the process list and writes it to /root/.kube/config. With " +
				"upstream's roles every run is denied.",
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
		return steps.Failed(
			fmt.Sprintf("the token in %s belongs to %q, not to %s", at, clean.Text(t.Subject), accountUser), "",
		)
	}
	return steps.Passed("%s contains a token of %s", at, t.Subject)
}

func rootTokenPrivate(ctx context.Context, e steps.Env) steps.Result {
	_, at, err := rootsToken(ctx, e)
	if err != nil {
		return steps.Errored(err)
	}
	return onlyRoots(ctx, e, at)
}

// rootsClaims returns the claims of root's token and the path of its file.
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

// lasts returns a result for the remaining lifetime of t. every is the renewal interval. If renewed is false, the token
// is never renewed. fix is the fix for an expired token.
func lasts(t bearer.Token, at string, every time.Duration, renewed bool, now time.Time, fix string) steps.Result {
	ends := t.Expires.Local().Format(time.DateTime)
	left := t.Expires.Sub(now)
	var r steps.Result
	switch {
	case t.Expires.IsZero():
		return steps.Passed("the token in %s does not expire", at)
	case t.Expired(now):
		return steps.Failed(
			fmt.Sprintf(
				"the token in %s expired at %s. It can no longer be used to request a new token, so a cluster admin must create one", at,
				ends,
			),
			fix,
		)
	case !renewed:
		r = steps.Failed(fmt.Sprintf("the token in %s expires at %s, and nothing renews it", at, ends), fix)
		r.Again = t.Expires
	case left < 2*every:
		r = steps.Warned(
			fmt.Sprintf(
				"the token in %s expires at %s, which is within two renewal intervals. The last renewals failed", at, ends,
			),
			onWebNode("sh "+renewScript+"; journalctl -t "+renewName),
		)
		r.Again = t.Expires
	default:
		r = steps.Passed("the token in %s is valid until %s. The web node or the cluster can be down until then", at, ends)
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
		return steps.Skipped("the token in %s has no exp or no iat claim, so its lifetime is unknown", at)
	}
	return wasGranted(t.Expires.Sub(t.IssuedAt), renewalOf(e), at)
}

// wasGranted returns a result for the granted lifetime got. It fails if the token can expire before its next renewal,
// and warns if got is shorter than the requested lifetime.
func wasGranted(got time.Duration, r renewal, at string) steps.Result {
	asked := time.Duration(r.Hours) * time.Hour
	if got >= asked-time.Minute {
		return steps.Passed(
			"the token in %s has a lifetime of %s and is renewed %s, so an outage can last up to %s", at, hoursAndMinutes(got),
			r.often(),
			hoursAndMinutes(got-r.every()),
		)
	}
	found := fmt.Sprintf(
		"the token in %s has a lifetime of %s, not %s: the API server caps the lifetime "+
			"(--service-account-max-token-expiration), or a shorter lifetime was requested",
		at, hoursAndMinutes(got), hoursAndMinutes(asked),
	)
	raise := "raise the API server's --service-account-max-token-expiration to " + hoursAndMinutes(asked)
	fitting := renewal{Hours: max(2, int(got/time.Hour))}
	switch {
	case got < 2*r.every() && got >= 2*fitting.every():
		return steps.Failed(
			found+". With a renewal "+r.often()+", the token can expire before it is renewed",
			fmt.Sprintf("set token.hours to %d, so that the token is renewed %s; or %s", fitting.Hours, fitting.often(), raise),
		)
	case got < 2*r.every():
		return steps.Failed(
			found+". With a renewal "+r.often()+", the token can expire before it is renewed",
			raise+"; or set token.kind to non-expiring",
		)
	}
	return steps.Warned(
		found+". An outage can last up to "+hoursAndMinutes(got-r.every()),
		fmt.Sprintf("set token.hours to %d to match; or %s", fitting.Hours, raise),
	)
}

func renewalThere(ctx context.Context, e steps.Env) steps.Result {
	r := renewalOf(e)
	script, err := r.script()
	if err != nil {
		return steps.Failed(err.Error(), "change the answer: carrick "+e.LinkFile())
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
			return steps.Undone(at + " does not exist").Or(e.ApplyStep("token"))
		case err != nil:
			return steps.Errored(err)
		case string(have) != want[at]:
			return steps.Warned(at+" differs from the file that carrick writes", e.ApplyStep("token"))
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

// rootsProgram returns how users other than root can change or replace the given program, which root runs. It returns
// "" if they cannot.
func rootsProgram(ctx context.Context, e steps.Env, at string) (string, error) {
	info, err := e.Host.Stat(ctx, at)
	switch {
	case err != nil:
		return "", err
	case info.Mode.Perm()&0o022 != 0:
		return fmt.Sprintf("%s has mode %04o, so users other than root can change the file", at, info.Mode.Perm()), nil
	case !e.Host.IsFolder() && info.UID > 0:
		return fmt.Sprintf("%s is owned by user %d, who can change the file; root must own it", at, info.UID), nil
	}
	_, problem, err := replaceable(e, at)
	return problem, err
}

func renewalOn(ctx context.Context, e steps.Env) steps.Result {
	unit := renewName + ".timer"
	if there, err := fileExists(ctx, e, renewTimer); err == nil && !there {
		return steps.Skipped("the renewal does not use carrick's timer")
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
