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

// fromAPI is where the checks of Renku's records look from.
const fromAPI = "Renku API"

// nobody is the reason of what can't be known without a token.
const nobody = "nobody is signed in to Renku"

// apiAddress says where Renku's HTTP API is, and who asks
// (renku-data-services components/renku_data_services/crc/api.spec.yaml; the
// published guide calls it /cluster, it is /api/data/clusters).
func apiAddress(_ context.Context, e steps.Env) (web.Address, error) {
	token := e.Answers.Masked("renku.token")
	if err := issuedThere(e, token); err != nil {
		return web.Address{}, err
	}
	return renkuAt(e, "/api/data", token)
}

// issuedThere refuses to send a token to an address that the admin did not answer, unless the token's issuer has it
// too. The default is read from Renku's Helm release, and whoever can write Secrets beside it chooses that address.
// Renku's Keycloak is under the portal's address (SwissDataScienceCenter/renku: helm-chart/renku/values.yaml,
// global.renku.domain).
func issuedThere(e steps.Env, token masked.Value) error {
	base := renkuURL(e)
	if token.IsZero() || base == "" || e.Answered("renku.url") {
		return nil
	}
	t, err := bearer.Parse(token)
	if err != nil || sameServer(t.Issuer, base) {
		return nil // what can't be read is not sent: badToken
	}
	return fmt.Errorf(
		"the token is not sent to %s, the default of renku.url: it was issued by %q. If that address is right, answer "+
			"renku.url with it",
		base, clean.Text(t.Issuer),
	)
}

// realmAddress is Keycloak's realm, where one signs in. It is asked without a
// token.
func realmAddress(e steps.Env) (web.Address, error) {
	return renkuAt(e, "/auth/realms/Renku", masked.Value{})
}

func renkuAt(e steps.Env, path string, token masked.Value) (web.Address, error) {
	base := renkuURL(e)
	if base == "" {
		return web.Address{}, steps.Absent("Renku's address is not known: answer renku.url")
	}
	ca, err := renkuTrust(e)
	if err != nil {
		return web.Address{}, err
	}
	return web.Address{Base: base + path, Token: token, CA: ca}, nil
}

func renkuURL(e steps.Env) string { return strings.TrimSuffix(e.Answers.Text("renku.url"), "/") }

// renkuOrigin is the origin of Renku's pages, as browsers name it.
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
		return fmt.Errorf("%q is more than the portal's address: write https://HOST, without a path", v)
	}
	return nil
}

// signedInAPI is the API with a token that can be good, or why there is none.
func signedInAPI(e steps.Env) (*web.Client, error) {
	m := e.Answers.Masked("renku.token")
	if m.IsZero() {
		return nil, steps.Absent(nobody)
	}
	if _, why := badToken(m, time.Now()); why != "" {
		return nil, steps.Absent("%s", why)
	}
	return e.API()
}

// get asks the API as who is signed in.
func get(ctx context.Context, e steps.Env, path string, out any) error {
	api, err := signedInAPI(e)
	if err != nil {
		return err
	}
	_, err = api.JSON(ctx, "GET", path, nil, out)
	return err
}

// theRows are all clusters that Renku knows.
func theRows(ctx context.Context, e steps.Env) ([]map[string]any, error) {
	var rows []map[string]any
	err := get(ctx, e, "/clusters", &rows)
	return rows, err
}

func textOf(m map[string]any, key string) string { s, _ := m[key].(string); return s }

// noCluster begins what is said where Renku was asked and has no such cluster.
const noCluster = "Renku knows no cluster"

// clusterRow is the row with our config name: with it Renku finds the
// kubeconfig, so that row is this link's cluster whatever it is called.
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
	return nil, fmt.Errorf("the cluster's id %q is no ULID", textOf(row, "id"))
}

// refusedIsAbsent makes "may not be looked at" of 401 and 403: the checks of
// the sign-in say it, once.
func refusedIsAbsent(err error) error {
	if e := (*web.Error)(nil); errors.As(err, &e) && (e.Status == 401 || e.Status == 403) {
		found, _ := plainly(err)
		return steps.Absent("%s", found)
	}
	return err
}

// renkuTrust is what Renku's own addresses are trusted by besides the system's
// roots; "" is nothing.
func renkuTrust(e steps.Env) (string, error) {
	ca, err := localFacts(e).Text("renku-ca")
	if err != nil && !steps.IsAbsent(err) && !apierrors.IsForbidden(err) {
		return "", err // without its CA, a good certificate could look bad
	}
	return ca, nil
}
