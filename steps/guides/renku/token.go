package renku

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
)

// audiences lists the token audiences that Renku accepts. adminRole is the realm role of Renku's
// admins (renku-data-services components/renku_data_services/authn/keycloak.py).
var audiences = []string{"renku", "renku-ui", "renku-cli", "swagger"}

const adminRole = "renku-admin"

const getToken = "carrick apply LINK --step register    # signs in; or add --secret renku.token=@FILE"

// badToken returns why Renku would reject the token according to the token's claims. It returns ""
// if the claims show no problem. Renku itself answers each of these problems with a 401 without a
// reason.
func badToken(m masked.Value, now time.Time) (t bearer.Token, why string) {
	t, err := bearer.Parse(m)
	switch {
	case err != nil:
		return t, err.Error()
	case t.Expired(now):
		return t, "the token expired on " + t.Expires.Local().Format(time.DateTime)
	case t.Method != "RS256":
		return t, fmt.Sprintf("the token is signed with %q, but Renku accepts only RS256, which Keycloak uses", t.Method)
	case !slices.ContainsFunc(t.Audience, func(a string) bool { return slices.Contains(audiences, a) }):
		return t, fmt.Sprintf(
			"the token's audience is %s, but Renku accepts only %s", cmp.Or(strings.Join(t.Audience, ", "), "empty"),
			strings.Join(audiences, ", "),
		)
	}
	return t, ""
}

func checkToken(v string) error {
	if _, why := badToken(masked.New(v), time.Now()); why != "" {
		return errors.New(why)
	}
	return nil
}

// renkuUser is the response of GET /user.
type renkuUser struct {
	Username string `json:"username"`
	Email    string `json:"email"`
	Admin    bool   `json:"is_admin"`
}

func (u renkuUser) name() string {
	if u.Username != "" {
		return u.Username
	}
	return u.Email
}

func signedIn(ctx context.Context, e steps.Env) steps.Result {
	m := e.Answers.Masked("renku.token")
	if m.IsZero() {
		return steps.Result{
			Status: steps.Unknown, Found: notSignedIn + ", so Renku's data about this cluster cannot be read",
			Fix: commands(e, getToken),
		}.NotYet()
	}
	t, why := badToken(m, time.Now())
	if why != "" {
		return steps.Failed(why, commands(e, getToken))
	}
	var user renkuUser
	err := get(ctx, e, "/user", &user)
	if w := (*web.Error)(nil); errors.As(err, &w) && w.Status == 401 {
		return steps.Failed(
			"Renku rejects the token although its claims are valid. The token belongs to another Renku, or its user "+
				"has signed out",
			commands(e, getToken),
		)
	}
	if err != nil {
		return unasked(e, err)
	}
	r := steps.Passed("signed in as %s", user.name())
	if r.Again = t.Expires; !t.Expires.IsZero() {
		r.Found += ", until " + t.Expires.Local().Format(time.DateTime)
	}
	return r
}

func isAdmin(ctx context.Context, e steps.Env) steps.Result {
	var user renkuUser
	if err := get(ctx, e, "/user", &user); err != nil {
		return unasked(e, err)
	}
	if user.Admin {
		return steps.Passed("%s has the role %s", user.name(), adminRole)
	}
	found := user.name() + " is not a Renku admin"
	if t, err := bearer.Parse(e.Answers.Masked("renku.token")); err == nil && !slices.Contains(t.Roles, adminRole) {
		found += fmt.Sprintf(": the token has no role %s", adminRole)
	}
	return steps.Failed(
		found, "in Keycloak's realm Renku, give the user the role "+adminRole+"; then sign in again: "+commands(e, getToken),
	)
}
