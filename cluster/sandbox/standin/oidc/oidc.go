// Package oidc fakes the identity provider of a portal: one Keycloak realm, limited to requests from an API server, a
// portal and a user's kubectl. Its users can sign in with any non-empty password.
//
// Sources (keycloak/keycloak, below services/src/main/java/org/keycloak, each file at the commit that was read):
//
//   - paths of a realm and discovery: protocol/oidc/OIDCWellKnownProvider.java (0bdda808),
//     protocol/oidc/OIDCLoginProtocolService.java (001fe9eb) and services/resources/RealmsResource.java (007e9530).
//     Since Keycloak 17 there is no /auth before /realms: docs/guides/migration/migrating-to-quarkus.adoc of the
//     repository, read in a copy of unknown commit.
//   - keys, one RSA key for RS256: protocol/oidc/OIDCLoginProtocolService.java (001fe9eb).
//   - an unsupported grant: protocol/oidc/endpoints/TokenEndpoint.java (008e27bd).
//   - a wrong client secret: authentication/authenticators/client/ClientIdAndSecretAuthenticator.java (03f1a163).
//   - a wrong password: authentication/authenticators/directgrant/ValidatePassword.java (1bb36550).
//   - an ID token only for the scope openid: protocol/oidc/grants/ResourceOwnerPasswordCredentialsGrantType.java
//     (119bcab3), and for a refresh token refreshAccessToken in protocol/oidc/TokenManager.java (90a8409c).
//   - a refresh token that is not valid: protocol/oidc/grants/RefreshTokenGrantType.java (898fdedc) and
//     verifyRefreshToken in protocol/oidc/TokenManager.java (90a8409c).
//   - the audience. For an ID token, it is the client (generateIDToken in protocol/oidc/TokenManager.java, 90a8409c).
//     The audience of an access token is the other clients in which the user has a role, here account
//     (protocol/oidc/mappers/AudienceResolveProtocolMapper.java, 3a7af19c). An audience mapper adds another client
//     (protocol/oidc/mappers/AudienceProtocolMapper.java, 0f5eb4b4). This realm's mapper adds it to both tokens,
//     although upstream's default excludes ID tokens.
//   - a page that does not exist: services/error/KeycloakErrorHandler.java (898fdedc). The message is a guess: no
//     source found.
//
// The clients are real: kubectl, which uses the ID token of the response to a refresh (kubernetes/client-go v0.37.2
// plugin/pkg/client/auth/oidc/oidc.go), and the API server.
//
// Known differences: the portal's login is not implemented: there is no login page and no authorization code. Keys are
// not rotated, and there is no session, no logout and no userinfo endpoint. A refresh token is not a JWT, never
// expires, and represents a login with the scope openid. Tokens are valid for an hour, regardless of the realm's
// settings, and have fewer claims. The client is checked before the grant. An unknown client is rejected like a wrong
// secret. An unknown user is rejected with 401 like a wrong password. Upstream returns 400
// (authenticators/directgrant/ValidateUsername.java, 0312c39b). The discovery document is incomplete, and lists only
// the two supported grants.
package oidc

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"carrick/cluster/sandbox/pki"
)

// Names of the realm and its clients.
const (
	Client       = "ondemand"               // the portal's client
	ClientSecret = "stand-in-client-secret" // secret of Client
	Audience     = "kubernetes"             // the API server's client
	realm        = "/realms/stand-in"       // path for Keycloak 17 and later
	endpoints    = realm + "/protocol/openid-connect"
	life         = time.Hour
	keyID        = "stand-in"
)

// Options configures Start.
type Options struct {
	Users []string
}

// Provider is a running identity provider.
type Provider struct {
	Issuer string
	CA     []byte // PEM of the CA that signed its certificate

	options    Options
	noAudience atomic.Bool // there is no audience mapper for the API server's client
	key        *rsa.PrivateKey
	server     *http.Server
}

// Start runs the provider on loopback until ctx is done or Close is called.
func Start(ctx context.Context, o Options) (*Provider, error) {
	authority, err := pki.NewAuthority("stand-in of the portal's authority")
	if err != nil {
		return nil, err
	}
	return StartWith(ctx, o, authority)
}

// StartWith is like Start, but authority signs the server certificate.
func StartWith(ctx context.Context, o Options, authority *pki.Authority) (*Provider, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Server("localhost", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Provider{Issuer: "https://" + listener.Addr().String() + realm, CA: authority.Cert, options: o, key: key}
	p.server = &http.Server{
		Handler: p.routes(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	context.AfterFunc(ctx, p.Close)
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Close stops the provider.
func (p *Provider) Close() { _ = p.server.Close() }

func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+realm+"/.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET "+endpoints+"/certs", p.certs)
	mux.HandleFunc("POST "+endpoints+"/token", p.signIn)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "HTTP 404 Not Found", "the Keycloak stand-in has no such page")
	})
	return mux
}

func (p *Provider) configuration(w http.ResponseWriter, _ *http.Request) {
	at := strings.TrimSuffix(p.Issuer, realm) + endpoints
	answer(w, http.StatusOK, map[string]any{
		"issuer":                                p.Issuer,
		"authorization_endpoint":                at + "/auth",
		"token_endpoint":                        at + "/token",
		"jwks_uri":                              at + "/certs",
		"grant_types_supported":                 []string{"password", "refresh_token"},
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (p *Provider) certs(w http.ResponseWriter, _ *http.Request) {
	encode := base64.RawURLEncoding.EncodeToString
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": keyID,
		"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// signIn returns tokens for a password or a refresh token. A refresh token is the user's name with a prefix.
func (p *Provider) signIn(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	if id != Client || secret != ClientSecret {
		refuse(w, http.StatusUnauthorized, "unauthorized_client", "Invalid client or Invalid client credentials")
		return
	}
	user, openid := "", true // the portal's refresh tokens have the scope openid
	switch r.FormValue("grant_type") {
	case "password":
		user = r.FormValue("username")
		if r.FormValue("password") == "" || !slices.Contains(p.options.Users, user) {
			refuse(w, http.StatusUnauthorized, "invalid_grant", "Invalid user credentials")
			return
		}
		openid = slices.Contains(strings.Fields(r.FormValue("scope")), "openid")
	case "refresh_token":
		var ours bool
		if user, ours = strings.CutPrefix(r.FormValue("refresh_token"), refresh); !ours ||
			!slices.Contains(p.options.Users, user) {
			refuse(w, http.StatusBadRequest, "invalid_grant", "Invalid refresh token")
			return
		}
	default:
		refuse(
			w, http.StatusBadRequest, "unsupported_grant_type", "the Keycloak stand-in supports only password and refresh_token",
		)
		return
	}
	now := time.Now()
	token, err := p.Token(user, now)
	said := map[string]any{
		"access_token": token, "refresh_token": refresh + user, "token_type": "Bearer", "expires_in": int(life.Seconds()),
	}
	if err == nil && openid {
		said["id_token"], err = p.idToken(user, now)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	answer(w, http.StatusOK, said)
}

const refresh = "stand-in:"

// DropAudience removes the audience mapper. New tokens then no longer have the API server's client in their audience.
func (p *Provider) DropAudience() { p.noAudience.Store(true) }

// Token returns the access token that the portal receives when user logs in.
func (p *Provider) Token(user string, now time.Time) (string, error) {
	return p.Sign(user, now, p.audience("account")...)
}

// idToken returns an ID token. Its audience is the portal's client. With the audience mapper, the audience also
// contains the API server's client.
func (p *Provider) idToken(user string, now time.Time) (string, error) {
	return p.sign("ID", user, now, p.audience(Client)...)
}

// audience returns a token's audience. With the audience mapper, it contains the API server's client and own, otherwise
// only own.
func (p *Provider) audience(own string) []string {
	if p.noAudience.Load() {
		return []string{own}
	}
	return []string{Audience, own}
}

// Sign returns an access token for user with the given audience.
func (p *Provider) Sign(user string, now time.Time, audience ...string) (string, error) {
	return p.sign("Bearer", user, now, audience...)
}

func (p *Provider) sign(kind, user string, now time.Time, audience ...string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"iss": p.Issuer, "sub": "stand-in-" + user, "aud": audience, "azp": Client, "typ": kind,
		"iat": now.Unix(), "exp": now.Add(life).Unix(), "preferred_username": user, "email": user + "@example.org",
	})
	if err != nil {
		return "", err
	}
	header, _ := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": keyID})
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode(header) + "." + encode(body)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, digest[:])
	return signed + "." + encode(signature), err
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refuse writes an error response in the format of RFC 6749.
func refuse(w http.ResponseWriter, status int, name, why string) {
	answer(w, status, map[string]string{"error": name, "error_description": why})
}
