package probe

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

var (
	// ErrLogin means that a registry rejected the user name or the password.
	ErrLogin = errors.New("the registry rejects the user name or the password")
	// ErrElsewhere means that a registry's token service is at another site. carrick does not send credentials to another
	// site.
	ErrElsewhere = errors.New("the registry sends logins to another host")
	// ErrNoRegistry means that the server does not implement the distribution API.
	ErrNoRegistry = errors.New("the server does not answer like an image registry")
)

// RegistryLogin is a login to an image registry. Try tests it.
type RegistryLogin struct {
	Registry       string // host[:port]
	User, Password string // the password never appears in a report or an error
	Roots          []byte // CAs in PEM; nil: the system's roots
}

// RegistryReport is the result of a login to a registry.
type RegistryReport struct {
	URL   string // URL of the request to the registry
	Realm string // URL of the token service; "": the registry checks the login itself
	Open  bool   // the registry requires no login, so none was tested
}

// dockerHub is the host that serves Docker Hub.
const dockerHub = "registry-1.docker.io"

// RegistryHost returns the host[:port] of a registry's API. Docker Hub has several names, but only one such host.
func RegistryHost(registry string) string {
	switch strings.ToLower(registry) {
	case "docker.io", "index.docker.io", "www.docker.io":
		return dockerHub
	}
	return registry
}

// Try logs in as the distribution API specifies. The WWW-Authenticate header of the registry's response determines
// whether the registry checks the login itself or delegates it to a token service. Try sends the login only over https,
// follows no redirect, and connects only to hosts of the registry's own site. The errors are ErrLogin, ErrElsewhere,
// ErrNoRegistry, and the errors from HTTP.
func (l RegistryLogin) Try(ctx context.Context) (RegistryReport, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	base := url.URL{Scheme: "https", Host: RegistryHost(l.Registry), Path: "/v2/"}
	report := RegistryReport{URL: base.String()}
	answer, err := l.ask(ctx, base.String(), "")
	if err != nil {
		return report, err
	}
	switch {
	case answer.Status == http.StatusOK && isRegistry(answer):
		report.Open = true
		return report, nil
	case answer.Status != http.StatusUnauthorized:
		return report, fmt.Errorf("%w: %s answers %d", ErrNoRegistry, base.String(), answer.Status)
	}
	if c, ok := challenge(answer.Header, "bearer"); ok {
		return l.bearer(ctx, base, c)
	}
	if _, ok := challenge(answer.Header, "basic"); ok {
		return report, l.judge(ctx, base.String(), l.basic())
	}
	return report, fmt.Errorf("%w: %s supports neither Basic nor Bearer login", ErrNoRegistry, base.String())
}

// bearer gets a token from the token service that the registry names, and sends the token to the registry.
func (l RegistryLogin) bearer(ctx context.Context, base url.URL, c map[string]string) (RegistryReport, error) {
	report := RegistryReport{URL: base.String()}
	realm, err := url.Parse(c["realm"])
	if err != nil || realm.Hostname() == "" || realm.User != nil {
		return report, fmt.Errorf("%w: its login URL is invalid: %q", ErrNoRegistry, cut(c["realm"]))
	}
	report.Realm = plain(realm.Scheme + "://" + realm.Host + realm.Path)
	if realm.Scheme != "https" || !SameSite(base.Hostname(), realm.Hostname()) {
		return report, fmt.Errorf("%w: %s", ErrElsewhere, report.Realm)
	}
	query := realm.Query()
	query.Set("account", l.User)
	query.Set("client_id", "carrick")
	if c["service"] != "" {
		query.Set("service", c["service"])
	}
	realm.RawQuery, realm.Fragment = query.Encode(), ""
	answer, err := l.ask(ctx, realm.String(), l.basic())
	if err != nil {
		return report, l.named(err, report.Realm)
	}
	if err := verdictOf(answer.Status, report.Realm); err != nil {
		return report, err
	}
	var token struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(answer.Body, &token) != nil || cmp.Or(token.Token, token.AccessToken) == "" {
		return report, fmt.Errorf("%w: %s returns no token", ErrNoRegistry, report.Realm)
	}
	return report, l.judge(ctx, base.String(), "Bearer "+cmp.Or(token.Token, token.AccessToken))
}

// judge repeats the request with the given credential. It returns ErrLogin if the registry rejects the credential.
func (l RegistryLogin) judge(ctx context.Context, at, credential string) error {
	answer, err := l.ask(ctx, at, credential)
	if err != nil {
		return err
	}
	return verdictOf(answer.Status, at)
}

func verdictOf(status int, at string) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w (%d of %s)", ErrLogin, status, at)
	}
	return fmt.Errorf("%w: %s answers %d", ErrNoRegistry, at, status)
}

func (l RegistryLogin) ask(ctx context.Context, at, credential string) (HTTPReport, error) {
	header := http.Header{"Accept": {"application/json"}}
	if credential != "" {
		header.Set("Authorization", credential)
	}
	return HTTP(ctx, http.MethodGet, at, HTTPOptions{Roots: l.Roots, Header: header, NoRedirects: true})
}

func (l RegistryLogin) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(l.User+":"+l.Password))
}

// named returns the error of a request with the URL at, which has no query, instead of the full URL.
func (l RegistryLogin) named(err error, at string) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		return fmt.Errorf("send a request to %s: %w", at, asked.Err)
	}
	return err
}

// isRegistry reports whether a response comes from an image registry, and not from another server that answers every
// path. A registry sends the API version in a header, or responds with JSON.
func isRegistry(r HTTPReport) bool {
	return strings.HasPrefix(r.Header.Get("Docker-Distribution-Api-Version"), "registry/2") ||
		strings.HasPrefix(r.ContentType, "application/json")
}

// challenge returns the parameters of the first challenge of the given scheme in WWW-Authenticate (RFC 9110, 11.6.1).
func challenge(h http.Header, scheme string) (map[string]string, bool) {
	for _, line := range h.Values("Www-Authenticate") {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.EqualFold(name, scheme) {
			return parameters(rest), true
		}
	}
	return nil, false
}

// parameters parses key=value and key="value" pairs, which are separated by commas. It ignores the rest of the text
// from the first invalid pair on.
func parameters(text string) map[string]string {
	out := map[string]string{}
	for {
		text = strings.TrimLeft(text, ", \t")
		key, rest, ok := strings.Cut(text, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \t\",") {
			return out
		}
		var value string
		value, text, ok = parameter(rest)
		if !ok {
			return out
		}
		if key = strings.ToLower(key); out[key] == "" {
			out[key] = value
		}
	}
}

func parameter(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ", \t")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// cut shortens a string from the remote side for display.
func cut(text string) string {
	const most = 100
	return text[:min(len(text), most)]
}

// registryName matches the domain of an image name according to the distribution project.
var registryName = regexp.MustCompile(
	`^(([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(:[0-9]{1,5})?$`,
)

// ValidRegistry returns an error if a registry's address is not host[:port]. Like the start of an image name, it has no
// scheme and no path.
func ValidRegistry(registry string) error {
	u, err := url.Parse("https://" + registry + "/")
	if err != nil || len(registry) > 253 || !registryName.MatchString(registry) {
		return fmt.Errorf(
			"%q is not a registry address: enter host or host:port, as in image names, without scheme and path",
			cut(registry),
		)
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("%q is not a registry address: its port is not a number from 1 to 65535", registry)
	}
	return nil
}
