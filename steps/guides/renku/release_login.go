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

// These values of Renku's release configure the Keycloak client that signs users in to
// sessions. The lists are strings that contain JSON (the chart accepts them since 2.17.0):
// '["https://sessions.example.org/*"]'.
const (
	clientPath    = "notebooks.oidc.clientId"
	redirectsPath = "notebooks.oidc.extraRedirectUris"
	originsPath   = "notebooks.oidc.extraWebOrigins"
)

// helmList returns a value of Renku's release that is a string with a JSON list, which can be
// empty. It returns an AbsentError if the chart has no such value.
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

// redirect returns the host and port at which Renku's login expects sessions. It reads them from
// the extra redirect URIs of the sessions' client and ignores Renku's own domain. If they name
// no host or several hosts, it returns an AbsentError.
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
		"Renku's Helm value %s names %d hosts: it is unclear which one is for this cluster", redirectsPath, len(places),
	)
}

type callback struct {
	host string
	port int
}

// redirectPlaces returns the distinct hosts and ports of URIs "https://HOST[:PORT]/*", without
// Renku's own domain.
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

// splitDomain splits a domain into host and port.
func splitDomain(domain string) (host, port string) {
	u, err := url.Parse("https://" + domain)
	if err != nil {
		return domain, ""
	}
	return u.Hostname(), u.Port()
}
