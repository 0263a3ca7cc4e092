package ondemand

import (
	"context"
	"net/url"
	"strings"

	"carrick/steps"
)

func oidc() steps.Step {
	return steps.Step{
		Name: "oidc", Title: "OIDC", When: withOIDC,
		Map: steps.MapRow{Local: "portal login", Remote: "OIDC settings", Arrow: steps.Remote},
		Why: "The API server accepts the token of a user's portal login. Both must trust the same issuer, the token's " +
			"audience must include the API server's client, and its username must be the plain login name.",
		Ask: []steps.Question{
			{
				Key: "oidc.issuer", Title: "OIDC issuer URL", Kind: steps.URL, NotFromPeer: true, Adopt: adoptIssuer,
				When: withOIDC,
				Help: "The issuer as ADDRESS/.well-known/openid-configuration states it, such as " +
					"https://idp.example.org/realms/main. Do not enter the token endpoint, which upstream's example uses.",
				Default: issuerDefault,
			},
			{
				Key: "oidc.client-id", Title: "Portal's OIDC client id", Kind: steps.Text,
				Adopt: adoptEnv("CLIENT_ID"), When: withOIDC,
				Help: "CLIENT_ID in hook.env. kubectl renews a user's tokens as this client, so they must have been issued to " +
					"this client.",
				Default: steps.FromFact("portal-client", "the portal's oidc_client_id"),
			},
			{
				Key: "oidc.client-secret", Title: "Portal's OIDC client secret", Kind: steps.Text, Secret: true, Opt: true,
				When: withOIDC,
				Help: "CLIENT_SECRET in hook.env. If it is empty, carrick keeps the existing secret, or else uses the portal's " +
					"secret for that client. Users can read the secret in their kubeconfig.",
			},
			{
				Key: "oidc.audience", Title: "API server's OIDC client id", Kind: steps.Text, When: withOIDC,
				Help: "--oidc-client-id of kube-apiserver, or issuer.audiences in its AuthenticationConfiguration. The token's " +
					"audience must include this id.",
				Default: func(e steps.Env) (any, string) {
					if s, err := serverOIDC(e.Peer); err == nil && s.clientID != "" {
						return s.clientID, "kube-apiserver's --oidc-client-id"
					}
					return nil, ""
				},
			},
			{
				Key: "oidc.user-token", Title: "Access token of a real user", Kind: steps.Text, Secret: true, Opt: true,
				When: withOIDC,
				Help: "Used to verify the audience and the username. In a user's session on the portal, run: kubectl config view " +
					"--raw -o jsonpath='{.users[*].user.auth-provider.config.id-token}'. To check the renewed token as well, wait " +
					"until this token has expired, run kubectl get pods, and run the first command again. Enter the new token on a " +
					"second line.",
			},
		},
		Facts: []steps.Fact{
			{
				Name: "portal-issuer", Title: "the issuer of portal logins", On: steps.Local, Shared: true,
				Learn: portalIssuer,
			},
			{
				Name: "portal-client", Title: "the client of portal logins", On: steps.Local, Shared: true,
				Learn: portalClient,
			},
			{
				Name: "server-oidc", Title: "the API server's OIDC settings", On: steps.Remote, Shared: true,
				Learn: learnServerOIDC,
			},
		},
		Checks: oidcChecks(),
	}
}

// discovery is the path of a provider's metadata (OpenID Connect Discovery).
const discovery = "/.well-known/openid-configuration"

// issuerMeant derives the issuer from address, the URL of one of its endpoints. It returns any other URL unchanged.
func issuerMeant(address string) string {
	address = strings.TrimSuffix(address, discovery)
	if at := strings.Index(address, "/protocol/openid-connect"); at > 0 {
		return address[:at]
	}
	for _, end := range []string{"/oauth2/token", "/oauth/token", "/connect/token", "/token"} {
		if base, ok := strings.CutSuffix(strings.TrimSuffix(address, "/"), end); ok {
			return base
		}
	}
	return address
}

// portalIssuer derives the issuer from oidc_provider_metadata_url in ood_portal.yml.
func portalIssuer(ctx context.Context, e steps.Env) (any, error) {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return nil, err
	}
	text, _ := values["oidc_provider_metadata_url"].(string)
	if base, ok := strings.CutSuffix(text, discovery); ok {
		return base, nil
	}
	return nil, steps.Absent("%s does not set oidc_provider_metadata_url", portalFile)
}

func issuerDefault(e steps.Env) (any, string) {
	if v, err := e.Own.Text("portal-issuer"); err == nil {
		return v, "the portal's oidc_provider_metadata_url"
	}
	if s, err := serverOIDC(e.Peer); err == nil && s.issuer != "" {
		return s.issuer, "kube-apiserver's --oidc-issuer-url"
	}
	return nil, ""
}

func portalClient(ctx context.Context, e steps.Env) (any, error) {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return nil, err
	}
	if id, _ := values["oidc_client_id"].(string); id != "" {
		return id, nil
	}
	return nil, steps.Absent("%s does not set oidc_client_id", portalFile)
}

// adoptIssuer proposes IDP_ISSUER_URL from hook.env. If its value is the URL of an endpoint, adoptIssuer proposes the
// endpoint's issuer.
func adoptIssuer(ctx context.Context, e steps.Env) (any, string, error) {
	v, from, err := adoptEnv("IDP_ISSUER_URL")(ctx, e)
	text, _ := v.(string)
	if err != nil || text == "" {
		return nil, "", err
	}
	if meant := issuerMeant(text); meant != text {
		return meant, from + ", which contains the URL of one of its endpoints", nil
	}
	return text, from, nil
}

// otherRealm returns the URL of a Keycloak realm with /auth added or removed, or "" for any other issuer. Keycloak used
// /auth before version 17.
func otherRealm(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	switch {
	case strings.HasPrefix(u.Path, "/auth/realms/"):
		u.Path = strings.TrimPrefix(u.Path, "/auth")
	case strings.HasPrefix(u.Path, "/realms/"):
		u.Path = "/auth" + u.Path
	default:
		return ""
	}
	return u.String()
}
