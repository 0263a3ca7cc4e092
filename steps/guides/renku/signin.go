package renku

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/action"
)

// loginClient is the Keycloak client for sign-ins from a terminal (SwissDataScienceCenter/renku
// helm-chart/renku/templates/setup-job-keycloak-realms.yaml: CLI_KC_CLIENT).
const loginClient = "renku-cli"

func signIn() steps.Action {
	return steps.Action{
		Name: "sign-in", Title: "Sign in to Renku", On: steps.Local, Needs: []string{"api-answers"},
		Doer: action.Call{
			Preview: previewSignIn,
			Make: func(ctx context.Context, e steps.Env, say steps.Progress) error {
				_, err := signInNow(ctx, e, say)
				return err
			},
			Exports: exportSignIn,
			Keeps:   "the token expires automatically, and carrick keeps it in memory only",
		},
	}
}

// previewSignIn plans a sign-in unless Renku accepts the current token.
func previewSignIn(ctx context.Context, e steps.Env) (steps.Change, error) {
	why, err := signInReason(ctx, e)
	if why == "" || err != nil {
		return steps.Change{}, err
	}
	item := steps.Item{
		Verb: steps.Run, What: "a sign-in at " + renkuURL(e) + ", in your browser",
		Note: why + "; carrick keeps the token in memory until it exits",
		Hash: renkuURL(e),
	}
	if !e.Attended {
		item.Refused, item.Note = true, why+"; "+noTerminal
	}
	return steps.Change{Items: []steps.Item{item}}, nil
}

const noTerminal = "signing in requires a terminal: run the command in a terminal, or pass a token with --secret " +
	"renku.token=@FILE"

// signInReason returns why the user must sign in, or "" if Renku accepts the current token.
func signInReason(ctx context.Context, e steps.Env) (string, error) {
	m := e.Answers.Masked("renku.token")
	if m.IsZero() {
		return notSignedIn, nil
	}
	if _, why := badToken(m, time.Now()); why != "" {
		return why, nil
	}
	err := get(ctx, e, "/user", &renkuUser{})
	if w := (*web.Error)(nil); errors.As(err, &w) && w.Status == 401 {
		return "Renku rejects the token", nil
	}
	return "", later(err)
}

// later turns an error from an unavailable API into an AbsentError, so that carrick can still plan
// the other steps.
func later(err error) error {
	if err == nil || steps.IsAbsent(err) {
		return err
	}
	found, _ := plainly(err)
	return steps.Absent("Renku's API is not available now: %s", found)
}

// signInNow signs the user in, stores the token for this run, and returns an API client that uses
// the token.
func signInNow(ctx context.Context, e steps.Env, say steps.Progress) (*web.Client, error) {
	if !e.Attended {
		return nil, errors.New(noTerminal)
	}
	at, err := realmAddress(e)
	if err != nil {
		return nil, err
	}
	realm, err := at.Open()
	if err != nil {
		return nil, err
	}
	defer realm.Close()
	token, err := deviceLogin{realm: realm, say: say, pause: pause}.run(ctx)
	if err != nil {
		return nil, err
	}
	if _, why := badToken(token, time.Now()); why != "" {
		return nil, fmt.Errorf("the token from the sign-in would be rejected by Renku: %s", why)
	}
	if err := e.Keep("renku.token", token); err != nil {
		return nil, err
	}
	say.Say("signed in to %s", renkuURL(e))
	if at, err = renkuAt(e, "/api/data", token); err != nil {
		return nil, err
	}
	return at.Open()
}

// apiForUndo signs the user in again if the token is missing or expired, because undo can run days
// after the first sign-in.
func apiForUndo(ctx context.Context, e steps.Env, say steps.Progress) (*web.Client, error) {
	why, err := signInReason(ctx, e)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return signInNow(ctx, e, say)
	}
	return e.API()
}

// deviceLogin implements the OAuth 2.0 device authorization grant (RFC 8628). The user opens an
// address in any browser, and carrick polls until the sign-in is complete.
type deviceLogin struct {
	realm *web.Client
	say   steps.Progress
	pause func(context.Context, time.Duration) error
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deviceGrant is Keycloak's response to the device authorization request.
type deviceGrant struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	Address    string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete"`
	Expires    int    `json:"expires_in"` // seconds
	Interval   int    `json:"interval"`   // seconds; 0 means 5
}

const (
	usualInterval = 5 * time.Second // RFC 8628, 3.2
	slower        = 5 * time.Second // RFC 8628, 3.5: added to the interval after slow_down
	lostMax       = 3               // maximum number of consecutive lost responses
)

func (l deviceLogin) run(ctx context.Context) (masked.Value, error) {
	var grant deviceGrant
	if _, err := l.realm.Form(
		ctx, "/protocol/openid-connect/auth/device", url.Values{"client_id": {loginClient}}, &grant,
	); err != nil {
		return masked.Value{}, fmt.Errorf("start the sign-in: %s", loginTrouble(err))
	}
	if grant.DeviceCode == "" || grant.Address == "" {
		return masked.Value{}, fmt.Errorf("start the sign-in: the response of %s is not from Keycloak", l.realm.Base())
	}
	text := fmt.Sprintf(
		"Open %s in a browser and type the code %s. Sign in there as an admin of Renku.", clean.Text(grant.Address),
		clean.Text(grant.UserCode),
	)
	if grant.Complete != "" {
		text += " Or open this address, which contains the code: " + clean.Text(grant.Complete)
	}
	l.say.Ask("%s", text)
	ctx, cancel := context.WithTimeoutCause(ctx, grant.lasts(), errCodeExpired)
	defer cancel()
	return l.poll(ctx, grant)
}

// lasts returns the lifetime of the code from Keycloak's response, but at most one hour. If the
// response has no lifetime, lasts returns Keycloak's default of 10 minutes, so that carrick does
// not poll indefinitely.
func (g deviceGrant) lasts() time.Duration {
	const usual, most = 10 * time.Minute, time.Hour
	if g.Expires <= 0 {
		return usual
	}
	return time.Duration(min(g.Expires, int(most/time.Second))) * time.Second
}

var errCodeExpired = errors.New("the code expired before anyone signed in; run carrick apply again")

// poll requests the token repeatedly until Keycloak issues it or the sign-in fails.
func (l deviceLogin) poll(ctx context.Context, grant deviceGrant) (masked.Value, error) {
	every := usualInterval
	if grant.Interval > 0 { // at most one hour, so that the product cannot overflow
		every = time.Duration(min(grant.Interval, 3600)) * time.Second
	}
	form := url.Values{
		"client_id": {loginClient}, "device_code": {grant.DeviceCode},
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
	}
	for lost := 0; ; {
		if err := l.pause(ctx, every); err != nil {
			return masked.Value{}, fmt.Errorf("wait for the sign-in: %w", err)
		}
		var got struct {
			Token string `json:"access_token"`
		}
		status, err := l.realm.Form(ctx, "/protocol/openid-connect/token", form, &got)
		if (status == 0 || status >= 500) && err != nil && ctx.Err() == nil && lost < lostMax {
			lost++ // a dropped connection or a server error does not end the sign-in
			every += slower
			continue
		}
		lost = 0
		switch code := oauthCode(err); {
		case err == nil && got.Token != "":
			return masked.New(got.Token), nil
		case err == nil:
			return masked.Value{}, fmt.Errorf("sign in: %s answered without a token", l.realm.Base())
		case ctx.Err() != nil:
			return masked.Value{}, fmt.Errorf("wait for the sign-in: %w", context.Cause(ctx))
		case code == "authorization_pending":
		case code == "slow_down":
			every += slower
		case code == "expired_token":
			return masked.Value{}, errCodeExpired
		case code == "access_denied":
			return masked.Value{}, errors.New("the sign-in was denied in the browser; nothing was changed")
		default:
			return masked.Value{}, fmt.Errorf("sign in: %s", loginTrouble(err))
		}
	}
}

func oauthCode(err error) string {
	e := (*web.Error)(nil)
	if !errors.As(err, &e) {
		return ""
	}
	return e.OAuth
}

// loginTrouble explains why Keycloak did not start or continue the sign-in.
func loginTrouble(err error) string {
	e := (*web.Error)(nil)
	switch {
	case !errors.As(err, &e):
		return failure.Explain(err)
	case e.OAuth == "invalid_client" || e.OAuth == "unauthorized_client":
		return fmt.Sprintf(
			"Keycloak has no client %s that is allowed to sign in from a terminal (%s); give an admin's token: --secret "+
				"renku.token=@FILE",
			loginClient, e.Message,
		)
	case e.Status == 404:
		return e.URL + " does not exist: check renku.url, or give an admin's token: --secret renku.token=@FILE"
	}
	return e.Error()
}
