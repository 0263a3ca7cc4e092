// A fake of Keycloak's realm Renku, for signing in from a terminal (renku:
// helm-chart/renku/templates/setup-job-keycloak-realms.yaml, CLI_KC_CLIENT_*; scripts/init-realm/utils.py). The client
// renku-cli is public. No other client of the realm can use the device flow (RFC 8628). Keycloak's error messages are a
// guess: no source was read. Unless a user opens the page, the fake approves the sign-in automatically. Clients poll
// every second instead of every 5 seconds as in the chart.

package renkuapi

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	realmPath    = "/auth/realms/Renku"
	deviceClient = "renku-cli"
	deviceGrant  = "urn:ietf:params:oauth:grant-type:device_code"
	deviceLife   = 10 * time.Minute
	pollInterval = time.Second
	selfApproval = 3 * time.Second
)

// otherClients lists the clients that cannot use the device flow.
var otherClients = []string{"renku", "renku-ui", "renku-jupyterserver", "swagger"}

// device is a pending sign-in with the device flow.
type device struct {
	userCode string
	started  time.Time
	polled   time.Time // zero: not polled yet
	opened   bool      // a user has opened the page and must decide
	decision string    // "approve", "deny", or "" if undecided
}

// keycloak is the fake realm.
type keycloak struct {
	*signer
	roles   []string // roles of the user
	mu      sync.Mutex
	devices map[string]*device // by device code
}

func newKeycloak(domain string, roles []string, now func() time.Time) (*keycloak, error) {
	signer, err := newSigner("https://"+domain+realmPath, now)
	return &keycloak{signer: signer, roles: roles, devices: map[string]*device{}}, err
}

// register adds the realm's paths to mux. One additional path returns a token without a sign-in.
func (k *keycloak) register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+realmPath+"/.well-known/openid-configuration", k.configuration)
	mux.HandleFunc("GET "+realmPath+"/protocol/openid-connect/certs", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, k.keySet())
	})
	mux.HandleFunc("POST "+realmPath+"/protocol/openid-connect/auth/device", k.startDevice)
	mux.HandleFunc("POST "+realmPath+"/protocol/openid-connect/token", k.pollToken)
	mux.HandleFunc("GET "+realmPath+"/device", k.devicePage)
	mux.HandleFunc("POST "+realmPath+"/device", k.decide)
	mux.HandleFunc("POST /stand-in/token", k.ownToken)
	mux.HandleFunc(realmPath+"/", func(w http.ResponseWriter, _ *http.Request) {
		oauthError(w, http.StatusNotFound, "HTTP 404 Not Found", "the Keycloak stand-in has no such page")
	})
}

func (k *keycloak) configuration(w http.ResponseWriter, _ *http.Request) {
	at := k.issuer + "/protocol/openid-connect"
	answer(w, http.StatusOK, map[string]any{
		"issuer":                                k.issuer,
		"authorization_endpoint":                at + "/auth",
		"token_endpoint":                        at + "/token",
		"device_authorization_endpoint":         at + "/auth/device",
		"jwks_uri":                              at + "/certs",
		"grant_types_supported":                 []string{deviceGrant},
		"response_types_supported":              []string{"code"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (k *keycloak) startDevice(w http.ResponseWriter, r *http.Request) {
	switch client := r.FormValue("client_id"); {
	case slices.Contains(otherClients, client):
		oauthError(w, http.StatusBadRequest, "unauthorized_client", "The device flow is disabled for the client.")
		return
	case client != deviceClient:
		oauthError(w, http.StatusUnauthorized, "invalid_client", "Invalid client or Invalid client credentials")
		return
	}
	code, d := randomID(), &device{userCode: "STAND-IN-" + rand.Text()[:4], started: k.now()}
	k.mu.Lock()
	k.devices[code] = d
	k.mu.Unlock()
	page := k.issuer + "/device"
	answer(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": d.userCode,
		"verification_uri": page, "verification_uri_complete": page + "?user_code=" + d.userCode,
		"expires_in": int(deviceLife.Seconds()), "interval": int(pollInterval.Seconds()),
	})
}

func (k *keycloak) pollToken(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.FormValue("client_id") != deviceClient:
		oauthError(w, http.StatusUnauthorized, "invalid_client", "Invalid client or Invalid client credentials")
		return
	case r.FormValue("grant_type") != deviceGrant:
		oauthError(w, http.StatusBadRequest, "unsupported_grant_type", "the Keycloak stand-in supports only the device flow")
		return
	}
	if name, why := k.poll(r.FormValue("device_code")); name != "" {
		oauthError(w, http.StatusBadRequest, name, why)
		return
	}
	token, err := k.token(deviceClient, adminID, k.roles, tokenLife)
	if err != nil {
		oauthError(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLife.Seconds()),
		"scope": "openid profile email",
	})
}

// poll returns the RFC 8628 error for a device code, or "" if the sign-in is approved. Each device code works only
// once.
func (k *keycloak) poll(code string) (name, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, now := k.devices[code], k.now()
	if d == nil {
		return "invalid_grant", "Device code not valid"
	}
	last := d.polled
	d.polled = now
	if d.decision == "" && !d.opened && now.Sub(d.started) >= selfApproval {
		d.decision = "approve"
	}
	switch {
	case now.Sub(d.started) > deviceLife:
		delete(k.devices, code)
		return "expired_token", "Device code is expired"
	case !last.IsZero() && now.Sub(last) < pollInterval:
		return "slow_down", "Slow down"
	case d.decision == "":
		return "authorization_pending", "The authorization request is still pending"
	}
	delete(k.devices, code)
	if d.decision == "deny" {
		return "access_denied", "The end user denied the authorization request"
	}
	return "", ""
}

// ownToken returns a token without a sign-in, for tests. Keycloak has no such endpoint.
func (k *keycloak) ownToken(w http.ResponseWriter, r *http.Request) {
	client, subject, roles, life := deviceClient, adminID, k.roles, tokenLife
	if given := r.FormValue("aud"); given != "" {
		client = given
	}
	if given := r.FormValue("sub"); given != "" {
		subject = given
	}
	if r.Form.Has("roles") {
		roles = strings.FieldsFunc(r.FormValue("roles"), func(c rune) bool { return c == ',' })
	}
	if given := r.FormValue("expires"); given != "" {
		seconds, err := strconv.Atoi(given)
		if err != nil {
			oauthError(w, http.StatusBadRequest, "invalid_request", "expires must be a number of seconds; it can be negative")
			return
		}
		life = time.Duration(seconds) * time.Second
	}
	token, err := k.token(client, subject, roles, life)
	if err != nil {
		oauthError(w, http.StatusInternalServerError, "server_error", err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]any{"access_token": token, "note": "stand-in: Keycloak has no such endpoint"})
}

// oauthError writes an error response in the format of RFC 6749.
func oauthError(w http.ResponseWriter, status int, name, why string) {
	answer(w, status, map[string]any{"error": name, "error_description": why})
}
