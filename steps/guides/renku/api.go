package renku

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carrick/cluster/bearer"
	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/web"
	"carrick/steps"
)

const fromAPI = "Renku API"

const notSignedIn = "not signed in to Renku"

// apiAddress returns the address of Renku's API and the token for it (renku-data-services
// components/renku_data_services/crc/api.spec.yaml). The published guide names the path /cluster,
// but the correct path is /api/data/clusters.
func apiAddress(_ context.Context, e steps.Env) (web.Address, error) {
	token := e.Answers.Masked("renku.token")
	if err := issuedThere(e, token); err != nil {
		return web.Address{}, err
	}
	return renkuAt(e, "/api/data", token)
}

// issuedThere returns an error if renku.url has its default value and the server at that address
// did not issue the token. The default comes from Renku's Helm release, so anyone who can write
// Secrets in the release's namespace could redirect the token to another server. Renku's Keycloak
// issues the tokens and has the portal's address (SwissDataScienceCenter/renku:
// helm-chart/renku/values.yaml, global.renku.domain).
func issuedThere(e steps.Env, token masked.Value) error {
	base := renkuURL(e)
	if token.IsZero() || base == "" || e.Answered("renku.url") {
		return nil
	}
	t, err := bearer.Parse(token)
	if err != nil || sameServer(t.Issuer, base) {
		return nil // signedInAPI never sends an unreadable token
	}
	return fmt.Errorf(
		"carrick did not send the token to %s, the default for renku.url, because %q issued the token. If the default is "+
			"correct, set renku.url to the same address",
		base, clean.Text(t.Issuer),
	)
}

// realmAddress returns the address of Renku's Keycloak realm, without a token.
func realmAddress(e steps.Env) (web.Address, error) {
	return renkuAt(e, "/auth/realms/Renku", masked.Value{})
}

func renkuAt(e steps.Env, path string, token masked.Value) (web.Address, error) {
	base := renkuURL(e)
	if base == "" {
		return web.Address{}, steps.Absent("Renku's address is unknown: set renku.url")
	}
	ca, err := renkuTrust(e)
	if err != nil {
		return web.Address{}, err
	}
	return web.Address{Base: base + path, Token: token, CA: ca}, nil
}

func renkuURL(e steps.Env) string { return strings.TrimSuffix(e.Answers.Text("renku.url"), "/") }

// renkuOrigin returns the web origin of Renku's pages, such as "https://renku.example.org". It
// returns "" if renku.url is not set.
func renkuOrigin(e steps.Env) string {
	u, err := url.Parse(renkuURL(e))
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func localFacts(e steps.Env) steps.Facts {
	if e.Side == steps.Local {
		return e.Own
	}
	return e.Peer
}

func remoteFacts(e steps.Env) steps.Facts {
	if e.Side == steps.Remote {
		return e.Own
	}
	return e.Peer
}

func checkRenkuURL(v string) error {
	u, err := url.Parse(v)
	if err != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is more than the portal's address: enter https://HOST without a path", v)
	}
	return nil
}

// signedInAPI returns an API client that uses renku.token. It returns an AbsentError if the token
// is not set or if Renku would reject it.
func signedInAPI(e steps.Env) (*web.Client, error) {
	m := e.Answers.Masked("renku.token")
	if m.IsZero() {
		return nil, steps.Absent(notSignedIn)
	}
	if _, why := badToken(m, time.Now()); why != "" {
		return nil, steps.Absent("%s", why)
	}
	return e.API()
}

func get(ctx context.Context, e steps.Env, path string, out any) error {
	api, err := signedInAPI(e)
	if err != nil {
		return err
	}
	_, err = api.JSON(ctx, "GET", path, nil, out)
	return err
}

func theRows(ctx context.Context, e steps.Env) ([]map[string]any, error) {
	var rows []map[string]any
	err := get(ctx, e, "/clusters", &rows)
	return rows, err
}

func textOf(m map[string]any, key string) string { s, _ := m[key].(string); return s }

// noCluster is the prefix of the error message for a cluster that is not registered in Renku.
const noCluster = "Renku has no cluster"

// clusterRow returns this link's cluster in Renku. It searches by config_name, because Renku uses
// the config_name to find the kubeconfig. The cluster's name in Renku can differ from the link's
// answer.
func clusterRow(ctx context.Context, e steps.Env) (any, error) {
	rows, err := theRows(ctx, e)
	if err != nil {
		return nil, refusedIsAbsent(err)
	}
	row := rowOf(rows, e.Answers.Text("cluster.config-name"))
	if row == nil {
		return nil, steps.Absent("%s with config_name %s", noCluster, e.Answers.Text("cluster.config-name"))
	}
	return row, nil
}

func rowOf(rows []map[string]any, config string) map[string]any {
	for _, row := range rows {
		if textOf(row, "config_name") == config {
			return row
		}
	}
	return nil
}

func registeredID(_ context.Context, e steps.Env) (any, error) {
	row, err := localFacts(e).Map("cluster-row")
	if err != nil {
		return nil, err
	}
	if id := textOf(row, "id"); ulid.MatchString(id) {
		return id, nil
	}
	return nil, fmt.Errorf("the cluster's ID %q is not a ULID", textOf(row, "id"))
}

// refusedIsAbsent turns a 401 or 403 error into an AbsentError, so that only the sign-in checks
// report the error.
func refusedIsAbsent(err error) error {
	if e := (*web.Error)(nil); errors.As(err, &e) && (e.Status == 401 || e.Status == 403) {
		found, _ := plainly(err)
		return steps.Absent("%s", found)
	}
	return err
}

// renkuTrust returns the CA certificates that clients of Renku must trust in addition to the
// system's roots. It returns "" if there are none.
func renkuTrust(e steps.Env) (string, error) {
	ca, err := localFacts(e).Text("renku-ca")
	if err != nil && !steps.IsAbsent(err) && !apierrors.IsForbidden(err) {
		return "", err // without the CA, a valid certificate could look untrusted
	}
	return ca, nil
}
