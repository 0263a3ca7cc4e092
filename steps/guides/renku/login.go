package renku

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/cluster/web"
	"carrick/steps"
)

// urisSince is the first Renku version with values for additional redirect URIs
// (SwissDataScienceCenter/renku pull request 4444).
const urisSince = "2.17.0"

const realmSource = "SwissDataScienceCenter/renku: scripts/init-realm/init-realm.py, helm-chart/renku/values.yaml " +
	"(notebooks.oidc), pull request 4444"

// manualLogin explains the outcome of the published guide's way.
const manualLogin = "The published guide has this client edited in Keycloak's admin panel. Such an edit is lost with " +
	"the next helm upgrade, which makes a client that differs anew: " +
	"from then on nobody gets into a session on this cluster. What Renku's values say stays. An edit by hand is " +
	"not looked at"

func login() steps.Step {
	return steps.Step{
		Name: "login", Title: "Keycloak",
		Why: "Each session has its user log in at Renku's Keycloak, which lets nobody go back to a host that it " +
			"does not know.",
		Checks: []steps.Check{
			{
				Name: "redirect-uris", Title: "Renku's values let logins return to the sessions' host", On: steps.Local,
				Needs:      []string{"renku-namespace"},
				Why:        manualLogin,
				References: []string{realmSource},
				Run: func(_ context.Context, e steps.Env) steps.Result {
					return knownToKeycloak(
						e, "redirect-uris", "extraRedirectUris", func(o string) []string { return []string{o + "/*"} },
					)
				},
			},
			{
				Name: "web-origins", Title: "Renku's values name the sessions' host as a web origin", On: steps.Local,
				Needs:      []string{"renku-namespace"},
				Why:        "the browser refuses Keycloak's answers to other origins. " + manualLogin,
				References: []string{realmSource},
				Run: func(_ context.Context, e steps.Env) steps.Result {
					return knownToKeycloak(
						e, "web-origins", "extraWebOrigins", func(o string) []string { return []string{o, o + "/*", "+"} },
					)
				},
			},
			{
				Name: "issuer", Title: "Renku's login service answers", On: steps.Remote, From: "this machine",
				Why: "each session asks it who may issue logins before it starts to serve, and crashes over and over " +
					"where it can't. " +
					"A node of the remote cluster may see less than this machine does: the test session proves that",
				References: []string{"SwissDataScienceCenter/amalthea: api/v1alpha1/auth_templates.go"},
				Run:        issuerAnswers,
			},
			imagePulls(),
		},
	}
}

// sessionsOrigin returns the origin where browsers open sessions, "https://host" or
// "https://host:port", or "" if no host is answered.
func sessionsOrigin(e steps.Env) string {
	host, protocol, port := e.Answers.Text("sessions.host"), e.Answers.Text("sessions.protocol"), e.Answers.Int("sessions.port")
	switch {
	case host == "":
		return ""
	case port == 0, protocol == "https" && port == 443, protocol == "http" && port == 80:
		return protocol + "://" + host
	}
	return protocol + "://" + net.JoinHostPort(host, fmt.Sprint(port))
}

// knownToKeycloak verifies that a list in Renku's values contains one of the entries that fit.
// If none is there, the finding names the first.
func knownToKeycloak(e steps.Env, fact, value string, fits func(origin string) []string) steps.Result {
	origin := sessionsOrigin(e)
	if origin == "" {
		return steps.Skipped("nothing is answered for sessions.host")
	}
	if r, old := tooOld(e, value); old {
		return r
	}
	if _, err := e.Own.Value("release"); err != nil {
		return steps.Errored(err)
	}
	have, err := e.Own.List(fact)
	if absent := (*steps.AbsentError)(nil); err != nil && !errors.As(err, &absent) {
		return steps.Errored(err)
	}
	want := fits(origin)
	for _, w := range want {
		if slices.Contains(have, w) {
			return steps.Passed("notebooks.oidc.%s has %s", value, w)
		}
	}
	found := "notebooks.oidc." + value + " lacks " + want[0]
	switch {
	case len(have) > 0:
		found += "; it has " + strings.Join(have, ", ")
	default:
		found += "; it is empty"
	}
	return steps.Failed(found, oidcValues(e, origin))
}

// tooOld reports whether Renku's version does not have these values yet.
func tooOld(e steps.Env, value string) (steps.Result, bool) {
	r, err := e.Own.Map("release")
	if err != nil {
		return steps.Result{}, false
	}
	text := textOf(r, "version")
	have, err := version.ParseGeneric(text)
	if err != nil {
		return steps.Errored(fmt.Errorf("the chart's version %q can't be read: %w", text, err)), true
	}
	if have.AtLeast(version.MustParseGeneric(urisSince)) {
		return steps.Result{}, false
	}
	return steps.Failed(fmt.Sprintf("Renku %s has no value notebooks.oidc.%s: it came with %s", text, value, urisSince),
		"upgrade Renku to "+urisSince+
			" or newer. Until then edit the client in Keycloak's admin panel, and again after each helm upgrade"), true
}

// oidcValues returns the missing values merged with the existing ones, and how Renku's admin
// sets them.
func oidcValues(e steps.Env, origin string) string {
	list := func(fact, add string) string {
		have, err := e.Own.List(fact)
		if err != nil || !slices.Contains(have, add) {
			have = append(slices.Clone(have), add)
		}
		b, _ := json.Marshal(have) // strings can always be encoded
		return "'" + strings.ReplaceAll(string(b), "'", "''") + "'"
	}
	run := renkuUpgrade(e, "-f oidc-values.yaml")
	if run == "" {
		run = "set them where Renku's values are kept, and roll it out"
	}
	return "# oidc-values.yaml: both values are strings that hold a JSON list\n" +
		"notebooks:\n  oidc:\n    extraRedirectUris: " + list("redirect-uris", origin+"/*") + "\n    extraWebOrigins: " +
		list("web-origins", origin) + "\n" + run
}

// discoveryPath is the path of a realm's metadata (OpenID Connect Discovery).
const discoveryPath = "/.well-known/openid-configuration"

func issuerAnswers(ctx context.Context, e steps.Env) steps.Result {
	realm, err := realmAddress(e)
	if err != nil {
		return steps.Errored(err)
	}
	said, err := tracked.Look(
		ctx, "issuer/"+realm.Base+"/"+masked.New(realm.CA).Hash(), time.Minute, func(ctx context.Context) (string, error) {
			return askIssuer(ctx, realm)
		},
	)
	page := realm.Base + discoveryPath
	fix := "curl -v " + page + "    # from a node of the remote cluster, too"
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return steps.Failed(
			renkuURL(e)+
				" shows a certificate that neither this machine nor the CAs in Renku's values "+
				"(global.certificates.customCAs) trust",
			fix,
		)
	case err != nil:
		found := failure.Explain(err)
		if !strings.Contains(found, page) {
			found = page + ": " + found
		}
		return steps.Failed(found, fix)
	case said != realm.Base:
		return steps.Failed(
			fmt.Sprintf("%s names the issuer %q: sessions expect %s and refuse any other", page, said, realm.Base),
			"answer renku.url as Keycloak calls itself, or mend Keycloak's frontend URL",
		)
	}
	return steps.Passed("%s, as seen from this machine; remote nodes may see it differently", said)
}

// askIssuer returns the issuer that the login service announces.
func askIssuer(ctx context.Context, realm web.Address) (string, error) {
	web, err := realm.Open()
	if err != nil {
		return "", err
	}
	defer web.Close()
	var out struct {
		Issuer string `json:"issuer"`
	}
	_, err = web.JSON(ctx, http.MethodGet, discoveryPath, nil, &out)
	return out.Issuer, err
}
