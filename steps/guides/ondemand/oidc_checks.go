package ondemand

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/steps"
)

const (
	clientGoSource  = "kubernetes/client-go: plugin/pkg/client/auth/oidc/oidc.go"
	apiServerSource = "kubernetes/website: content/en/docs/reference/access-authn-authz/authentication.md"
)

func oidcChecks() []steps.Check {
	return []steps.Check{
		{
			Name: "issuer", Title: "The issuer matches its discovery document", On: steps.Local, From: "this machine",
			When: withOIDC,
			Why: "The API server reads ISSUER" + discovery +
				" and rejects other issuers, even if only a slash differs. Upstream's example is a token endpoint.",
			References: []string{clientGoSource, hookEnvSource}, Run: issuerSays,
		},
		{
			Name: "one-issuer", Title: "The portal logs users in through the same issuer", On: steps.Local, When: withOIDC,
			Needs:      []string{"portal-file"},
			Why:        "The API server receives tokens of the portal login, so it must trust the portal's issuer.",
			References: []string{page}, Run: oneIssuer,
		},
		{
			Name: "token-audience", Title: "A user's token has the API server's client as audience", On: steps.Local,
			When: withOIDC,
			Why: "The API server rejects a token without its client id in aud. Add the id with a mapper, exchange tokens in " +
				"the hook, or use one client.",
			References: []string{page, apiServerSource, clientGoSource}, Run: tokenAudience,
		},
		{
			Name: "server-issuer", Title: "The API server accepts tokens of the portal's issuer", On: steps.Remote,
			When:  withOIDC,
			Needs: []string{"signed-in"},
			Why: "The API server accepts one issuer and one client id, from either flags or a configuration file. It " +
				"rejects all other tokens.",
			References: []string{apiServerSource}, Run: serverIssuer,
		},
		{
			Name: "server-username", Title: "The API server derives plain login names from tokens", On: steps.Remote,
			When:  withOIDC,
			Needs: []string{"signed-in"},
			Why: "The hook binds roles to the bare login name. Without --oidc-username-prefix=- the API server " +
				"prefixes the name with the issuer unless it is an email.",
			References: []string{"OSC/ondemand: hooks/k8s-bootstrap/yaml/rolebinding.yaml", apiServerSource},
			Run:        serverUsername,
		},
	}
}

// systemCAs lists the paths of the system's CA bundle on Red Hat and on Debian.
var systemCAs = []string{"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt"}

// trusted returns the web node's CA bundle. If there is none, it returns nil, and the HTTP client uses the CAs of the
// machine on which carrick runs.
func trusted(ctx context.Context, e steps.Env) ([]byte, error) {
	for _, p := range systemCAs {
		b, err := e.Host.Read(ctx, p)
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, nil
}

// oidcProvider is the response from a provider's discovery endpoint.
type oidcProvider struct {
	status int
	issuer string
}

func askProvider(ctx context.Context, e steps.Env, issuer string) (oidcProvider, error) {
	roots, err := trusted(ctx, e)
	if err != nil {
		return oidcProvider{}, err
	}
	at := strings.TrimSuffix(issuer, "/") + discovery
	return tracked.Look(
		ctx, "issuer/"+at+"/"+masked.New(string(roots)).Hash(), time.Minute,
		func(ctx context.Context) (oidcProvider, error) {
			r, err := probe.HTTP(ctx, http.MethodGet, at, probe.HTTPOptions{Roots: roots, NoRedirects: true})
			if err != nil {
				return oidcProvider{}, err
			}
			var said struct {
				Issuer string `json:"issuer"`
			}
			if err := json.Unmarshal(r.Body, &said); err != nil && r.Status == http.StatusOK {
				return oidcProvider{}, fmt.Errorf("%s does not return JSON", at)
			}
			return oidcProvider{status: r.Status, issuer: said.Issuer}, nil
		},
	)
}

func issuerSays(ctx context.Context, e steps.Env) steps.Result {
	issuer := e.Answers.Text("oidc.issuer")
	if meant := issuerMeant(issuer); meant != issuer {
		return steps.Failed(
			issuer+" is an endpoint, not the issuer. The issuer is "+meant,
			"set oidc.issuer to "+steps.Quoted(meant)+" in "+e.LinkFile(),
		)
	}
	if !strings.HasPrefix(issuer, "https://") {
		return steps.Failed(
			issuer+" does not start with https://, which the API server requires",
			"set oidc.issuer to an https:// URL in "+e.LinkFile(),
		)
	}
	look := "curl -sS " + steps.Quoted(strings.TrimSuffix(issuer, "/")+discovery)
	said, err := askProvider(ctx, e, issuer)
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return steps.Failed(
			"the web node does not trust the issuer's certificate: no system CA has signed it, or it is not valid for that "+
				"name or time",
			onWebNode("add the CA to /etc/pki/ca-trust/source/anchors and run update-ca-trust (Debian: "+
				"/usr/local/share/ca-certificates, update-ca-certificates)"),
		)
	case err != nil:
		return steps.Errored(err).Or(look)
	case said.status == http.StatusOK && said.issuer == issuer:
		return steps.Passed("%s", issuer)
	case said.status == http.StatusOK:
		return steps.Failed(
			fmt.Sprintf("the provider's issuer is %s, but oidc.issuer is %s", shownWord(said.issuer), issuer),
			"set oidc.issuer to "+steps.Quoted(said.issuer)+" in "+e.LinkFile(),
		)
	}
	if other := otherRealm(issuer); other != "" {
		if said, err := askProvider(ctx, e, other); err == nil && said.status == http.StatusOK && said.issuer != "" {
			return steps.Failed(
				issuer+" does not exist, but "+shownWord(said.issuer)+" exists: Keycloak has no /auth prefix since version 17",
				"set oidc.issuer to "+steps.Quoted(said.issuer)+" in "+e.LinkFile(),
			)
		}
	}
	return steps.Failed(
		fmt.Sprintf("%s returned status %d", strings.TrimSuffix(issuer, "/")+discovery, said.status), look,
	)
}

func oneIssuer(_ context.Context, e steps.Env) steps.Result {
	have, err := e.Own.Text("portal-issuer")
	if err != nil {
		return steps.Errored(err)
	}
	if want := e.Answers.Text("oidc.issuer"); strings.TrimSuffix(have, "/") != strings.TrimSuffix(want, "/") {
		return steps.Failed(fmt.Sprintf("the portal's issuer is %s, but oidc.issuer is %s",
			shownWord(have), want),
			"set oidc.issuer to "+steps.Quoted(have)+" in "+e.LinkFile()+
				", and configure the API server to accept that issuer:\n"+
				apiFlagsFor(e, have))
	}
	return steps.Passed("%s", have)
}

// mapper returns instructions for a Keycloak audience mapper that adds oidc.audience to the portal's tokens.
func mapper(e steps.Env) string {
	return fmt.Sprintf(`# in Keycloak's admin console, in the realm of %[1]s
Clients > %[2]s > Client scopes > %[2]s-dedicated > Configure a new mapper > Audience
  Name: kubernetes    Included Client Audience: %[3]s    Add to ID token: On    Add to access token: On
Save; then log out of the portal and in again
# alternatives: a pre-PUN hook that exchanges the token for a token of %[3]s, or one client for the portal and the API server`,
		e.Answers.Text("oidc.issuer"), cmp.Or(e.Answers.Text("oidc.client-id"), "CLIENT"),
		cmp.Or(e.Answers.Text("oidc.audience"), "CLIENT"))
}

// userTokens splits oidc.user-token. The first token is the access token from the login. The optional second token is
// the ID token that replaced the expired access token.
func userTokens(e steps.Env) (all []masked.Value) {
	for _, w := range strings.Fields(e.Answers.Masked("oidc.user-token").Reveal()) {
		all = append(all, masked.New(w))
	}
	return all
}

// tokenAudience checks the audience of the access token from the login, and of the ID token from a renewal. When the
// access token from the login expires, kubectl replaces it with an ID token (kubernetes/client-go:
// plugin/pkg/client/auth/oidc/oidc.go). By default, Keycloak's audience mapper does not apply to ID tokens
// (keycloak/keycloak: services/src/main/java/org/keycloak/protocol/oidc/mappers/AudienceProtocolMapper.java).
func tokenAudience(_ context.Context, e steps.Env) steps.Result {
	all := userTokens(e)
	if len(all) == 0 {
		return steps.Skipped("no user token was given: --secret oidc.user-token=@FILE")
	}
	for i, raw := range all {
		r := audienceOf(e, raw)
		if i > 0 {
			r.Found = "renewed token: " + r.Found
		}
		if r.Status != steps.Pass || len(all) > 1 && i == len(all)-1 {
			return r
		}
	}
	r := audienceOf(e, all[0])
	r.Found += "; the renewed ID token was not checked. Once this token has expired, run kubectl get pods in the user's " +
		"session and enter both tokens, one per line"
	return r
}

func audienceOf(e steps.Env, raw masked.Value) steps.Result {
	t, err := bearer.Parse(raw)
	issuer, audience := e.Answers.Text("oidc.issuer"), e.Answers.Text("oidc.audience")
	switch {
	case err != nil:
		return steps.Failed(
			"the token cannot be used with an API server: "+err.Error(), "configure the provider to issue access tokens as JWTs",
		)
	case t.Issuer != issuer:
		return steps.Failed(
			fmt.Sprintf("the token's issuer is %s, not %s", shownWord(t.Issuer), issuer),
			"set oidc.issuer to the token's issuer, or use a token of the issuer in oidc.issuer",
		)
	case !slices.Contains(t.Audience, audience):
		return steps.Failed(
			fmt.Sprintf("the token's audience is %s, which does not include %s", audienceWords(t.Audience), audience), mapper(e),
		)
	}
	found := "the token's audience includes " + audience
	if t.Expired(time.Now()) {
		found += "; the token has expired, which does not affect this check"
	}
	return steps.Passed("%s", found)
}

func audienceWords(aud []string) string {
	if len(aud) == 0 {
		return "empty"
	}
	var out []string
	for _, a := range aud {
		out = append(out, shownWord(a))
	}
	return shortList(out, ", ")
}
