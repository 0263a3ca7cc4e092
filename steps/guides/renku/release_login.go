package renku

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"carrick/cluster/clean"
	"carrick/steps"
)

// Paths of the Helm values that configure the Keycloak client of sessions. The values at
// redirectsPath and originsPath are strings that contain JSON lists, such as
// '["https://sessions.example.org/*"]'. The chart has had these two values since 2.17.0.
const (
	clientPath    = "notebooks.oidc.clientId"
	redirectsPath = "notebooks.oidc.extraRedirectUris"
	originsPath   = "notebooks.oidc.extraWebOrigins"
)

// helmList parses the Helm value at path, a string that contains a JSON list. It returns an
// AbsentError if the chart does not have the value.
func helmList(ctx context.Context, e steps.Env, path string) ([]string, error) {
	r, err := valued(ctx, e)
	if err != nil {
		return nil, err
	}
	v, ok := r.Value(path)
	if !ok {
		return nil, steps.Absent("Renku's chart %s has no Helm value %s (added in 2.17.0)", r.Version, path)
	}
	list, err := jsonList(v)
	if err != nil {
		return nil, fmt.Errorf("the Helm value %s of Renku %w", path, err)
	}
	return list, nil
}

var (
	errNotText = errors.New(
		`is not a string: the chart requires a string that contains a JSON list, '["https://sessions.example.org/*"]'`,
	)
	errNotList = errors.New(`is not a JSON list of strings such as '["https://sessions.example.org/*"]'`)
)

func jsonList(v any) ([]string, error) {
	text, ok := v.(string)
	if !ok {
		return nil, errNotText
	}
	list := []string{}
	if strings.TrimSpace(text) == "" {
		return list, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, errNotList
	}
	for i := range list {
		list[i] = clean.Text(list[i])
	}
	return list, nil
}

func redirectHost(ctx context.Context, e steps.Env) (any, error) {
	host, _, err := redirect(ctx, e)
	return host, err
}

func redirectPort(ctx context.Context, e steps.Env) (any, error) {
	_, port, err := redirect(ctx, e)
	if err != nil {
		return nil, err
	}
	return port, nil
}

// redirect returns the session host and port in extraRedirectUris. It ignores Renku's own domain.
// It returns an AbsentError unless the URIs contain exactly one other host and port.
func redirect(ctx context.Context, e steps.Env) (host string, port int, err error) {
	list, err := helmList(ctx, e, redirectsPath)
	if err != nil {
		return "", 0, err
	}
	own, err := e.Own.Text("renku-domain")
	if err != nil {
		own = ""
	}
	places := redirectPlaces(list, own)
	switch len(places) {
	case 1:
		return places[0].host, places[0].port, nil
	case 0:
		return "", 0, steps.Absent("Renku's Helm value %s names no session host", redirectsPath)
	}
	return "", 0, steps.Absent(
		"Renku's Helm value %s names %d hosts, so the host for this cluster is unclear", redirectsPath, len(places),
	)
}

type callback struct {
	host string
	port int
}

// redirectPlaces returns the distinct hosts and ports of uris in the format
// "https://HOST[:PORT]/*". It ignores other URIs and Renku's own domain.
func redirectPlaces(uris []string, domain string) []callback {
	own, _ := splitDomain(domain)
	var out []callback
	for _, uri := range uris {
		rest, ok := strings.CutPrefix(uri, "https://")
		if !ok {
			continue
		}
		at, ok := strings.CutSuffix(rest, "/*")
		u, err := url.Parse("https://" + at)
		if !ok || err != nil || u.Host != at || u.Hostname() == "" || strings.Contains(at, "*") {
			continue
		}
		p := callback{u.Hostname(), 443}
		if u.Port() != "" {
			if p.port, err = strconv.Atoi(u.Port()); err != nil {
				continue
			}
		}
		if !strings.EqualFold(p.host, own) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func splitDomain(domain string) (host, port string) {
	u, err := url.Parse("https://" + domain)
	if err != nil {
		return domain, ""
	}
	return u.Hostname(), u.Port()
}
