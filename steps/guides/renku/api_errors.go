package renku

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"carrick/cluster/failure"
	"carrick/cluster/web"
	"carrick/steps"
)

// trouble describes one kind of error of Renku's API.
type trouble struct {
	code        int    // Renku's own error code; 0: any
	holds       string // a part of its message or detail, case-insensitive; "": any
	means, next string
}

// notLoaded is part of the 404 for a cluster whose kubeconfig Renku has not loaded.
const notLoaded = "in the list of clusters"

// troubles are the errors of renku-data-services
// (components/renku_data_services/base_api/error_handler.py, errors/errors.py; crc/core.py,
// crc/db.py). The first match counts. If another cluster already has a name, POST answers 409,
// but PATCH and PUT answer 500 with the database's error, which names the index
// (migrations/versions/1d2f64a405aa).
var troubles = []trouble{
	{
		1401, "", "Renku rejects the token: it is missing, expired or from another Renku",
		"carrick apply LINK --step register    # signs in",
	},
	{
		1403, "", "Renku reports that you are not an admin",
		"ask a Keycloak admin to give your user the role renku-admin in the realm Renku, then sign in again",
	},
	{
		1404, notLoaded,
		"Renku has not loaded the cluster's kubeconfig: its services read kubeconfigs only when they start",
		"carrick apply LINK --step restart, then again",
	},
	{
		1404, "Cluster definition", "Renku has no cluster with that id: it was deleted",
		"carrick apply LINK --step register",
	},
	{1404, "or resource pool with id", "Renku has no user or resource pool with that id", "answer pool.members"},
	{
		1404, "resource pool with id", "Renku has no resource pool with that id: it was deleted",
		"carrick apply LINK --step pool",
	},
	{1404, "does not exist", "Renku has no user, group or project with that id", "answer pool.members"},
	{1409, "config_name", "another cluster in Renku has that config_name", "answer cluster.config-name with another one"},
	{1409, "name", "another cluster in Renku has that name", "answer cluster.name with another one"},
	{
		1422, "removing both", "with https Renku requires a TLS Secret or the default certificate",
		"answer sessions.tls-secret, or leave it empty, then apply again",
	},
	{
		1422, "both", "the TLS Secret and the default certificate are mutually exclusive",
		"answer sessions.tls-secret, or leave it empty, then apply again",
	},
	{
		1422, "Please set only one", "with https Renku requires a TLS Secret or the default certificate",
		"answer sessions.tls-secret, or leave it empty, then apply again",
	},
	{
		1422, "not compatible with the quota", "a resource class is larger than the pool's quota",
		"make the class smaller or the quota larger, then apply again",
	},
	{1422, "wrong type", "Renku reports a value of the wrong type", "review the plan: carrick diff LINK"},
	{1422, "", "Renku rejects a value", "review the plan: carrick diff LINK"},
	{
		1500, "protocol_tls_secrets", "Renku's database rejects this combination of TLS Secret and default certificate",
		"carrick apply LINK --step register    # sends both again",
	},
	{
		1500, "too long", "a name is longer than Renku's database allows (40 characters)",
		"answer cluster.name and cluster.config-name with shorter names",
	},
	{
		1500, "clusters_config_name", "another cluster in Renku has that config_name",
		"answer cluster.config-name with another one",
	},
	{1500, "clusters_name", "another cluster in Renku has that name", "answer cluster.name with another one"},
	{
		1500, "Database error", "Renku's database rejects the request",
		"kubectl -n RENKU logs deployment/renku-data-service --tail=50",
	},
	{
		1500, "Error on remote connection", "Renku cannot reach the remote cluster's API server",
		"answer reach.job with yes: the Job tests the connection from inside the local cluster",
	},
	{
		1500, "",
		"Renku failed without naming the cause: most often the remote cluster rejected its kubeconfig (403), or an object " +
			"already exists (409)",
		"kubectl -n RENKU logs -l app=renku-data-service --tail=50; then carrick check LINK",
	},
}

// plainly returns the meaning of an API error and what to do about it.
func plainly(err error) (found, next string) {
	e := (*web.Error)(nil)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		return "Renku's certificate is not trusted: " + bad.Err.Error(),
			"verify that this is Renku. If your own CA signed the certificate, add the CA to Renku's " +
				"global.certificates.customCAs or to this machine's roots"
	}
	if !errors.As(err, &e) {
		return failure.Explain(err), ""
	}
	said := strings.TrimSpace(e.Message)
	if e.Detail != "" {
		said += ": " + e.Detail
	}
	for _, t := range troubles {
		if t.code == codeOf(e) && strings.Contains(strings.ToLower(said), strings.ToLower(t.holds)) {
			return fmt.Sprintf("%s (HTTP %d: %s)", t.means, e.Status, said), t.next
		}
	}
	return fmt.Sprintf("%s answered HTTP %d: %s", e.URL, e.Status, said), ""
}

// codeOf returns Renku's error code. Errors from a proxy in front of Renku have no code; of
// these, only 401 and 403 have the same meaning and get the code that Renku uses.
func codeOf(e *web.Error) int {
	if e.Code == 0 && (e.Status == 401 || e.Status == 403) {
		return 1000 + e.Status
	}
	return e.Code
}

// apiError is an explained API error with the operation that failed. It does not wrap its
// cause, because the text already explains certificate errors and timeouts.
type apiError struct{ doing, found, next string }

func (e *apiError) Error() string {
	text := e.doing + ": " + e.found
	if e.next != "" {
		text += "; " + e.next
	}
	return text
}

// failing explains an API error. It returns nil and AbsentErrors unchanged.
func failing(e steps.Env, doing string, err error) error {
	if err == nil || steps.IsAbsent(err) {
		return err
	}
	found, next := plainly(err)
	return &apiError{doing, found, commands(e, next)}
}

// commands replaces the placeholders LINK and RENKU in a fix.
func commands(e steps.Env, text string) string {
	kubectl := "kubectl"
	if e.Side == steps.Local {
		kubectl = e.Kubectl()
	}
	return strings.NewReplacer("LINK", e.LinkFile(), "kubectl -n RENKU", kubectl+" -n "+renkuNamespace(e)).Replace(text)
}

// unasked returns the verdict of a check whose API request failed.
func unasked(e steps.Env, err error) steps.Result {
	if steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	found, next := plainly(err)
	return steps.Result{Status: steps.Unknown, Found: found, Fix: commands(e, next), Err: err}
}
