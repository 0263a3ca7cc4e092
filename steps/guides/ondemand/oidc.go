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
		Why: "Users reach the API server with the token of their login to the portal. So both trust one issuer, the token " +
			"names the API server's client among its audience, and the API server makes of it the plain login name.",
		Ask: []steps.Question{
			{
				Key: "oidc.issuer", Title: "Issuer of the tokens", Kind: steps.URL, NotFromPeer: true, Adopt: adoptIssuer,
				When: withOIDC,
				Help: "As the provider calls itself, such as https://idp.example.org/realms/main: what " +
					"ADDRESS/.well-known/openid-configuration says under issuer. It is not the token endpoint that upstream's " +
					"example has.",
				Default: issuerDefault,
			},
			{
				Key: "oidc.client-id", Title: "Client that the portal logs users in with", Kind: steps.Text,
				Adopt: adoptEnv("CLIENT_ID"), When: withOIDC,
				Help: "CLIENT_ID in hook.env: kubectl renews a user's tokens as this client, so it is the one that they " +
					"were made for.",
				Default: steps.FromFact("portal-client", "the portal's oidc_client_id"),
			},
			{
				Key: "oidc.client-secret", Title: "Secret of that client", Kind: steps.Text, Secret: true, Opt: true,
				When: withOIDC,
				Help: "CLIENT_SECRET in hook.env. Left empty, the one that stands there stays, else the portal's own of that " +
					"client is taken. Users can read it in their kubeconfig.",
			},
			{
				Key: "oidc.audience", Title: "Client id of the API server", Kind: steps.Text, When: withOIDC,
				Help: "--oidc-client-id of kube-apiserver, or issuer.audiences in its AuthenticationConfiguration: the token's " +
					"audience has to hold it.",
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
				Help: "Proves the audience and the user's name. In a user's session on the portal: kubectl config view --raw " +
					"-o jsonpath='{.users[*].user.auth-provider.config.id-token}'. A second line can hold the token that this " +
					"prints once the first has expired and kubectl get pods has renewed it.",
			},
		},
		Facts: []steps.Fact{
			{
				Name: "portal-issuer", Title: "the issuer of logins to the portal", On: steps.Local, Shared: true,
				Learn: portalIssuer,
			},
			{
				Name: "portal-client", Title: "the client of logins to the portal", On: steps.Local, Shared: true,
				Learn: portalClient,
			},
			{
				Name: "server-oidc", Title: "what the API server is told of OIDC", On: steps.Remote, Shared: true,
				Learn: learnServerOIDC,
			},
		},
		Checks: oidcChecks(),
	}
}

// discovery is where a provider says who it is (OpenID Connect Discovery).
const discovery = "/.well-known/openid-configuration"

// issuerMeant is the issuer that is meant by the address of one of its endpoints.
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

// portalIssuer is that of the portal's metadata.
func portalIssuer(ctx context.Context, e steps.Env) (any, error) {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return nil, err
	}
	text, _ := values["oidc_provider_metadata_url"].(string)
	if base, ok := strings.CutSuffix(text, discovery); ok {
		return base, nil
	}
	return nil, steps.Absent("%s names no oidc_provider_metadata_url", portalFile)
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

// portalClient is the client that the portal logs users in with.
func portalClient(ctx context.Context, e steps.Env) (any, error) {
	_, values, err := openPortal(ctx, e)
	if err != nil {
		return nil, err
	}
	if id, _ := values["oidc_client_id"].(string); id != "" {
		return id, nil
	}
	return nil, steps.Absent("%s names no oidc_client_id", portalFile)
}

// adoptIssuer is hook.env's, or the issuer that is meant by it.
func adoptIssuer(ctx context.Context, e steps.Env) (any, string, error) {
	v, from, err := adoptEnv("IDP_ISSUER_URL")(ctx, e)
	text, _ := v.(string)
	if err != nil || text == "" {
		return nil, "", err
	}
	if meant := issuerMeant(text); meant != text {
		return meant, from + ", which has the address of an endpoint of it", nil
	}
	return text, from, nil
}

// otherRealm is the same realm with or without /auth before it, which Keycloak
// had until 17; "": it is no realm of Keycloak's.
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
