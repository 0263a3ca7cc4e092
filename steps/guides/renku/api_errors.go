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

// knownError explains one kind of error from Renku's API. The field means is the explanation, and
// next is the fix.
type knownError struct {
	code        int    // Renku's own error code; 0: any
	holds       string // substring of the message or detail, case-insensitive; "": any
	means, next string
}

// notLoaded is a substring of Renku's 404 message for a cluster whose kubeconfig it has not loaded.
const notLoaded = "in the list of clusters"

// knownErrors lists errors from renku-data-services
// (components/renku_data_services/base_api/error_handler.py, errors/errors.py; crc/core.py,
// crc/db.py). The first match applies. If another cluster already has the name, POST returns 409,
// but PATCH and PUT return 500 with the database's error. This error contains the name of the index
// (migrations/versions/1d2f64a405aa).
var knownErrors = []knownError{
	{
		1401, "", "Renku rejects the token, which is missing, expired or from another Renku",
		"carrick apply LINK --step register    # signs in",
	},
	{
		1403, "", "you are not an admin in Renku",
		"ask a Keycloak admin to give your user the role renku-admin in the realm Renku, then sign in again",
	},
	{
		1404, notLoaded,
		"Renku has not loaded the cluster's kubeconfig: its services read kubeconfigs only when they start",
		"carrick apply LINK --step restart, then retry",
	},
	{
		1404, "Cluster definition", "Renku has no cluster with that ID, because the cluster was deleted",
		"carrick apply LINK --step register",
	},
	{
		1404, "or resource pool with id", "Renku has no user or resource pool with that ID",
		"set pool.members to existing users",
	},
	{
		1404, "resource pool with id", "Renku has no resource pool with that ID, because the pool was deleted",
		"carrick apply LINK --step pool",
	},
	{
		1404, "does not exist", "Renku has no user, group or project with that ID",
		"set pool.members to existing users, groups or projects",
	},
	{1409, "config_name", "another cluster in Renku has that config_name", "set cluster.config-name to another name"},
	{1409, "name", "another cluster in Renku has that name", "set cluster.name to another name"},
	{
		1422, "removing both", "with https, Renku requires a TLS Secret or the default certificate",
		"set sessions.tls-secret, or leave it empty to use the default certificate. Then apply again",
	},
	{
		1422, "both", "the TLS Secret and the default certificate are mutually exclusive",
		"set sessions.tls-secret, or leave it empty to use the default certificate. Then apply again",
	},
	{
		1422, "Please set only one", "with https, Renku requires a TLS Secret or the default certificate",
		"set sessions.tls-secret, or leave it empty to use the default certificate. Then apply again",
	},
	{
		1422, "not compatible with the quota", "a resource class is larger than the pool's quota",
		"reduce the resource class or increase the quota, then apply again",
	},
	{1422, "wrong type", "Renku reports a value of the wrong type", "review the plan: carrick diff LINK"},
	{1422, "", "Renku rejects a value", "review the plan: carrick diff LINK"},
	{
		1500, "protocol_tls_secrets", "Renku's database rejects this combination of TLS Secret and default certificate",
		"carrick apply LINK --step register    # sends both again",
	},
	{
		1500, "too long", "a name is longer than Renku's database allows (40 characters)",
		"set cluster.name and cluster.config-name to shorter names",
	},
	{
		1500, "clusters_config_name", "another cluster in Renku has that config_name",
		"set cluster.config-name to another name",
	},
	{1500, "clusters_name", "another cluster in Renku has that name", "set cluster.name to another name"},
	{
		1500, "Database error", "Renku's database rejects the request",
		"kubectl -n RENKU logs deployment/renku-data-service --tail=50",
	},
	{
		1500, "Error on remote connection", "Renku cannot reach the remote cluster's API server",
		"set reach.job to yes to test the connection from inside the local cluster",
	},
	{
		1500, "",
		"Renku returned an error without naming the cause. Usually the remote cluster rejected Renku's kubeconfig (403), " +
			"or an object already exists (409)",
		"kubectl -n RENKU logs -l app=renku-data-service --tail=50; then carrick check LINK",
	},
}

// plainly explains an API error. next is the fix, or "" if no fix is known.
func plainly(err error) (found, next string) {
	e := (*web.Error)(nil)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		return "Renku's certificate is not trusted: " + bad.Err.Error(),
			"verify that this server is Renku. If your own CA signed the certificate, add the CA to Renku's " +
				"global.certificates.customCAs or to this machine's trusted CAs"
	}
	if !errors.As(err, &e) {
		return failure.Explain(err), ""
	}
	said := strings.TrimSpace(e.Message)
	if e.Detail != "" {
		said += ": " + e.Detail
	}
	for _, t := range knownErrors {
		if t.code == codeOf(e) && strings.Contains(strings.ToLower(said), strings.ToLower(t.holds)) {
			return fmt.Sprintf("%s (HTTP %d: %s)", t.means, e.Status, said), t.next
		}
	}
	return fmt.Sprintf("%s answered HTTP %d: %s", e.URL, e.Status, said), ""
}

// codeOf returns Renku's error code. Errors from a proxy in front of Renku have no code. For a 401
// or 403 error from a proxy, codeOf returns the code that Renku uses for this status.
func codeOf(e *web.Error) int {
	if e.Code == 0 && (e.Status == 401 || e.Status == 403) {
		return 1000 + e.Status
	}
	return e.Code
}

// apiError is returned for a failed operation in Renku's API. It does not wrap the original error,
// because found already explains certificate errors and timeouts.
type apiError struct{ doing, found, next string }

func (e *apiError) Error() string {
	text := e.doing + ": " + e.found
	if e.next != "" {
		text += "; " + e.next
	}
	return text
}

// failing adds the failed operation and an explanation to an API error. It returns an AbsentError
// unchanged.
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

// unasked returns the verdict for a check whose API request failed.
func unasked(e steps.Env, err error) steps.Result {
	if steps.IsAbsent(err) {
		return steps.Errored(err)
	}
	found, next := plainly(err)
	return steps.Result{Status: steps.Unknown, Found: found, Fix: commands(e, next), Err: err}
}
