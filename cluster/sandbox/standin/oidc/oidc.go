// Package oidc plays the identity provider of a portal: one realm of Keycloak,
// as far as an API server, a portal and a user's kubectl use it (OpenID Connect
// Discovery 1.0, RFC 7517, RFC 6749). It signs in whoever is in its list; any
// password but an empty one is right.
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

// The names of the stand-in's realm.
const (
	Client       = "ondemand"               // the portal's client
	ClientSecret = "stand-in-client-secret" // of that client
	Audience     = "kubernetes"             // the API server's client
	realm        = "/realms/stand-in"       // of Keycloak 17 and later
	endpoints    = realm + "/protocol/openid-connect"
	life         = time.Hour
	keyID        = "stand-in"
)

// Options are what the provider is started with.
type Options struct {
	Users []string
}

// Provider is a running identity provider.
type Provider struct {
	Issuer string
	CA     []byte // PEM: who signed its certificate

	options    Options
	noAudience atomic.Bool // the client has no mapper that names the API server in its tokens
	key        *rsa.PrivateKey
	server     *http.Server
}

// Start starts the provider on loopback. It ends with ctx or Close.
func Start(ctx context.Context, o Options) (*Provider, error) {
	authority, err := pki.NewAuthority("stand-in of the portal's authority")
	if err != nil {
		return nil, err
	}
	return StartWith(ctx, o, authority)
}

// StartWith is Start with a certificate of that authority.
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

// Close ends the provider.
func (p *Provider) Close() { _ = p.server.Close() }

func (p *Provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+realm+"/.well-known/openid-configuration", p.configuration)
	mux.HandleFunc("GET "+endpoints+"/certs", p.certs)
	mux.HandleFunc("POST "+endpoints+"/token", p.signIn)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "HTTP 404 Not Found", "the stand-in of Keycloak has no such page")
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

// signIn gives the tokens of a user, for a password or for a refresh token,
// which is the user's name behind a word.
func (p *Provider) signIn(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	if id != Client || secret != ClientSecret {
		refuse(w, http.StatusUnauthorized, "unauthorized_client", "Invalid client or Invalid client credentials")
		return
	}
	user, right := "", false
	switch r.FormValue("grant_type") {
	case "password":
		user, right = r.FormValue("username"), r.FormValue("password") != ""
	case "refresh_token":
		user, right = strings.CutPrefix(r.FormValue("refresh_token"), refresh)
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type", "the stand-in of Keycloak knows password and refresh_token")
		return
	}
	if !right || !slices.Contains(p.options.Users, user) {
		refuse(w, http.StatusUnauthorized, "invalid_grant", "Invalid user credentials")
		return
	}
	token, err := p.Token(user, time.Now())
	if err != nil {
		refuse(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": token, "id_token": token, "refresh_token": refresh + user, "token_type": "Bearer", "expires_in": int(life.Seconds()),
	})
}

const refresh = "stand-in:"

// DropAudience takes away the mapper that names the API server in tokens.
func (p *Provider) DropAudience() { p.noAudience.Store(true) }

// Token is an access token of a user, as the portal gets it at login.
func (p *Provider) Token(user string, now time.Time) (string, error) {
	if p.noAudience.Load() {
		return p.Sign(user, now, "account")
	}
	return p.Sign(user, now, Audience, "account")
}

// Sign is a token of a user for an audience.
func (p *Provider) Sign(user string, now time.Time, audience ...string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"iss": p.Issuer, "sub": "stand-in-" + user, "aud": audience, "azp": Client, "typ": "Bearer",
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

// refuse answers as RFC 6749 wants it.
func refuse(w http.ResponseWriter, status int, name, why string) {
	answer(w, status, map[string]string{"error": name, "error_description": why})
}
