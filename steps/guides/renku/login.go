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

const manualLogin = "The next helm upgrade reverts the published guide's edit in Keycloak's admin panel and blocks " +
	"all remote sessions. carrick does not check such edits."

func login() steps.Step {
	return steps.Step{
		Name: "login", Title: "Keycloak",
		Map: steps.MapRow{Local: "Keycloak client", Remote: "session login", Arrow: steps.Local},
		Why: "Each session signs its user in at Renku's Keycloak, which redirects only to allowed hosts.",
		Checks: []steps.Check{
			{
				Name: "redirect-uris", Title: "Renku's values allow login redirects to the session host", On: steps.Local,
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
				Name: "web-origins", Title: "Renku's values allow the session host as a web origin", On: steps.Local,
				Needs: []string{"renku-namespace"},
				Why: "Browsers block Keycloak's responses to other origins. The next helm upgrade reverts an edit in " +
					"Keycloak's admin panel.",
				References: []string{realmSource},
				Run: func(_ context.Context, e steps.Env) steps.Result {
					return knownToKeycloak(
						e, "web-origins", "extraWebOrigins", func(o string) []string { return []string{o, o + "/*", "+"} },
					)
				},
			},
			{
				Name: "issuer", Title: "Renku's login service answers", On: steps.Remote, From: "this machine",
				Why: "Sessions read the issuer at startup and crash repeatedly without it. Only the test session checks " +
					"whether remote nodes reach the login service.",
				References: []string{"SwissDataScienceCenter/amalthea: api/v1alpha1/auth_templates.go"},
				Run:        issuerAnswers,
			},
			imagePulls(),
		},
	}
}

// sessionsOrigin returns the origin of session addresses, "https://host" or "https://host:port". It
// returns "" if sessions.host is not set.
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

// knownToKeycloak checks that a list in Renku's Helm values contains one of the entries returned by
// fits. If the list contains none of them, the finding names the first entry.
func knownToKeycloak(e steps.Env, fact, value string, fits func(origin string) []string) steps.Result {
	origin := sessionsOrigin(e)
	if origin == "" {
		return steps.Skipped("sessions.host is not set")
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
			return steps.Passed("notebooks.oidc.%s contains %s", value, w)
		}
	}
	found := "notebooks.oidc." + value + " does not contain " + want[0]
	switch {
	case len(have) > 0:
		found += "; it contains " + strings.Join(have, ", ")
	default:
		found += "; it is empty"
	}
	return steps.Failed(found, oidcValues(e, origin))
}

// tooOld returns a verdict and true if Renku is older than urisSince or if its version cannot be
// parsed.
func tooOld(e steps.Env, value string) (steps.Result, bool) {
	r, err := e.Own.Map("release")
	if err != nil {
		return steps.Result{}, false
	}
	text := textOf(r, "version")
	have, err := version.ParseGeneric(text)
	if err != nil {
		return steps.Errored(fmt.Errorf("reading the chart version %q: %w", text, err)), true
	}
	if have.AtLeast(version.MustParseGeneric(urisSince)) {
		return steps.Result{}, false
	}
	return steps.Failed(
		fmt.Sprintf("Renku %s has no value notebooks.oidc.%s (added in %s)", text, value, urisSince),
		"upgrade Renku to "+urisSince+
			" or later. Until then, edit the client in Keycloak's admin panel, and repeat the edit after each helm upgrade",
	), true
}

// oidcValues returns a values file that adds the session origin to the existing lists, and the
// command that deploys the file.
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
		run = "add these values where you keep Renku's values, and deploy them"
	}
	return "# oidc-values.yaml: both values are strings that contain a JSON list\n" +
		"notebooks:\n  oidc:\n    extraRedirectUris: " + list("redirect-uris", origin+"/*") + "\n    extraWebOrigins: " +
		list("web-origins", origin) + "\n" + run
}

// discoveryPath is the path of a realm's OpenID Connect Discovery document.
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
	fix := "curl -v " + page + "    # also from a node of the remote cluster"
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return steps.Failed(
			renkuURL(e)+
				" presents a certificate whose CA is neither trusted by this machine nor listed in Renku's values "+
				"(global.certificates.customCAs)",
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
			fmt.Sprintf("%s names the issuer %q, but sessions expect %s and reject any other issuer", page, said, realm.Base),
			"set renku.url to the address in the issuer, or correct Keycloak's frontend URL",
		)
	}
	return steps.Passed("issuer %s, as seen from this machine. Remote nodes may not reach the issuer", said)
}

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
