package renku

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"carrick/cluster/web"
	"carrick/steps"
)

func token(alg, claims string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"`+alg+`"}`)) + "." + enc([]byte(claims)) + "." + enc([]byte("stand-in"))
}

// carrick rejects answers that Renku, its database or Kubernetes would reject later, and gives the
// reason.
func TestBadAnswersAreRefusedWhereTheyAreTyped(t *testing.T) {
	const small = `{"name":"small","cpu":1,"memory":2,"gpu":0,"max_storage":4,"default_storage":1,"default":true}`
	pool := func(classes, more string) string {
		return `{"name":"A pool","public":true,"default":false,"quota":{"cpu":2,"memory":8,"gpu":0,"id":"a-pool"},` + more +
			`"classes":[` + classes + `]}`
	}
	later := time.Now().Add(time.Hour).Unix()
	for _, tc := range []struct{ key, typed, why string }{
		{"cluster.name", "abcd", "4 characters"},
		{"cluster.name", strings.Repeat("x", 41), "41 characters"},
		{"cluster.name", "abcde", ""},
		{"cluster.name", strings.Repeat("é", 40), ""},
		{"cluster.config-name", "remote.yml", "end the name in .yaml"},
		{"cluster.config-name", "a/b.yaml", "letters, digits"},
		{"cluster.config-name", strings.Repeat("x", 36) + ".yaml", "41"},
		{"cluster.config-name", "remote-1.yaml", ""},
		{"sessions.host", "https://sessions.example.org", "no scheme"},
		{"sessions.host", "sessions.example.org:443", "no port"},
		{"sessions.host", "my_sessions.example.org", "not a host name"},
		{"sessions.host", "10.0.0.1", "an Ingress requires a host name"},
		{"sessions.host", "Sessions.example.org", "lower-case"},
		{"sessions.host", "sessions.example.org", ""},
		{"sessions.path", "/sessions/", "ends with /"},
		{"sessions.path", "sessions", "does not begin with /"},
		{"sessions.path", "/a//b", "not a path"},
		{"sessions.path", "/sessions", ""},
		{"sessions.port", "0", "not a port"},
		{"sessions.annotations", "enable-cors", "not key=value"},
		{"sessions.annotations", "{a:true}", "not key=value"},
		{"sessions.annotations", "a/b/c=1", "not a valid annotation name"},
		{"sessions.annotations", "map[enable-cors:true]", "annotations must be strings"},
		{"sessions.annotations", "nginx.ingress.kubernetes.io/enable-cors=true", ""},
		{"renku.url", "https://renku.example.org/api/data", "without a path"},
		{"renku.url", "renku.example.org", "is not a URL"},
		{"renku.url", "https://renku.example.org/", ""},
		{"renku.token", "letmein", "not a JWT"},
		{"renku.token", token("RS256", `{"aud":"renku","exp":1700000000}`), "expired on 2023"},
		{"renku.token", token("HS256", fmt.Sprintf(`{"aud":"renku","exp":%d}`, later)), "only RS256"},
		{"renku.token", token("RS256", fmt.Sprintf(`{"aud":"account","exp":%d}`, later)), "audience is account"},
		{"renku.token", token("RS256", fmt.Sprintf(`{"aud":["account","swagger"],"exp":%d}`, later)), ""},
		{"pool.members", "user:jane", "not a UUID"},
		{"pool.members", "robot:1", "not user:UUID"},
		{"pool.members", "group:1:owner", "not a role of a group"},
		{"pool.members", "user:01234567-89ab-cdef-0123-456789abcdef:prohibited", ""},
		{"pool.spec", "# nothing", "contains only comments"},
		{"pool.spec", pool(small, ""), ""},
		{"pool.spec", pool(small+","+strings.Replace(small, "small", "large", 1), ""), "but 2 classes are: small, large"},
		{"pool.spec", pool(strings.Replace(small, `"memory":2`, `"memory":9`, 1), ""), "exceeds the quota"},
		{"pool.spec", pool(small, `"remote":{},`), "FirecREST"},
	} {
		q, _ := Guide().Question(tc.key)
		_, err := q.Parse(tc.typed)
		switch {
		case tc.why == "" && err != nil:
			t.Errorf("%s: %q is refused: %v", tc.key, tc.typed, err)
		case tc.why != "" && (err == nil || !strings.Contains(err.Error(), tc.why)):
			t.Errorf("%s: %q: error %v, want one with %q", tc.key, tc.typed, err, tc.why)
		}
		if q.Secret && err != nil && strings.Contains(err.Error(), tc.typed) {
			t.Errorf("%s: the error shows the secret: %v", tc.key, err)
		}
	}
}

func TestErrorsOfTheAPIInPlainWords(t *testing.T) {
	for _, tc := range []struct {
		status, code       int
		message            string
		means, next, never string
	}{
		{
			status: 401, code: 1401, message: "Please provide valid access credentials in the Authorization header.",
			means: "rejects the token", next: "--step register",
		},
		{status: 401, message: "Unauthorized", means: "rejects the token"},
		{
			status: 403, code: 1403, message: "You do not have the required permissions for this operation.",
			means: "not an admin",
			next:  "renku-admin",
		},
		{
			status: 404, code: 1404, message: "Could not find cluster with id 01 in the list of clusters.",
			means: "has not loaded the cluster's kubeconfig", next: "--step restart",
		},
		{status: 404, code: 1404, message: "Cluster definition id='01' does not exist.", means: "no cluster with that ID"},
		{
			status: 404, code: 1404, message: "User with ID 01 does not exist", means: "no user, group or project",
			next: "pool.members",
		},
		{status: 404, code: 1404, message: "Requested URL /api/data/x not found", means: "HTTP 404", never: "no user"},
		{
			status: 409, code: 1409,
			message: "Cannot create a cluster because the name is already used, please try a different name.",
			means:   "has that name", next: "cluster.name",
		},
		{
			status: 409, code: 1409,
			message: "Cannot create a cluster because the config_name is already used, please try a different one.",
			means:   "config_name", next: "cluster.config-name",
		},
		{
			status: 500, code: 1500,
			message: "Database error occurred: duplicate key value violates unique constraint " +
				"\"ix_resource_pools_clusters_name\"",
			means: "has that name", next: "cluster.name",
		},
		{
			status: 500, code: 1500,
			message: "Database error occurred: duplicate key value violates unique constraint " +
				"\"ix_resource_pools_clusters_config_name\"",
			means: "has that config_name", next: "cluster.config-name",
		},
		{
			status: 500, code: 1500,
			message: "Database error occurred: duplicate key value violates unique constraint \"resource_pools_pkey\"",
			means:   "Renku's database rejects the request",
		},
		{
			status: 404, code: 1404, message: "The resource pool with id 7 cannot be found.",
			means: "no resource pool with that ID", next: "--step pool",
		},
		{
			status: 404, code: 1404, message: "Resource pool with id 7 does not exist", means: "no resource pool with that ID",
			never: "no user",
		},
		{
			status: 404, code: 1404, message: "Cannot find the resource pool with ID 7.", means: "no resource pool with that ID",
		},
		{
			status: 422, code: 1422, message: "you are also removing both the TLS secret name and the flag",
			means: "requires a TLS Secret or the default certificate", never: "mutually exclusive",
		},
		{
			status: 422, code: 1422,
			message: "neither the TLS secret name nor the flag are set. Please set only one of these two options.",
			means:   "requires a TLS Secret or the default certificate",
		},
		{
			status: 422, code: 1422, message: "you are using or will use both the TLS secret name and the flag",
			means: "mutually exclusive",
		},
		{
			status: 422, code: 1422, message: "There are errors in the following fields, name: too short",
			means: "rejects a value", next: "diff",
		},
		{
			status: 422, code: 1422, message: "The resource class with name X is not compatible with the quota.",
			means: "larger than the pool's quota",
		},
		{
			status: 500, code: 1500, message: "Database error occurred: violates check constraint \"protocol_tls_secrets\"",
			means: "this combination of TLS Secret",
		},
		{
			status: 500, code: 1500, message: "Database error occurred: value too long for type character varying(40)",
			means: "longer than Renku's database", next: "shorter",
		},
		{
			status: 500, code: 1500, message: "Error on remote connection GET https://remote: refused",
			means: "cannot reach the remote cluster", next: "reach.job",
		},
		{
			status: 500, code: 1500, message: "An unexpected error occurred", means: "without naming the cause",
			next: "-n renku logs",
		},
		{status: 502, message: "Bad Gateway", means: "HTTP 502", never: "without naming the cause"},
	} {
		err := &web.Error{Status: tc.status, Code: tc.code, Message: tc.message, URL: "https://renku/api/data/x"}
		found, next := plainly(err)
		if !strings.Contains(found, tc.means) || !strings.Contains(found, tc.message) ||
			(tc.never != "" && strings.Contains(found, tc.never)) {
			t.Errorf("%d %q: found %q", tc.status, tc.message, found)
		}
		if tc.next != "" && !strings.Contains(strings.ReplaceAll(next, "kubectl -n RENKU", "kubectl -n renku"), tc.next) {
			t.Errorf("%d %q: next %q", tc.status, tc.message, next)
		}
	}
}

// Renku's 404 for an unknown user differs from its 404 for an unknown URL.
func TestAnUnknownMemberIsNoUnservedAddress(t *testing.T) {
	for _, tc := range []struct {
		status, code int
		message      string
		unserved     bool
	}{
		{404, 1404, "User with ID 01 does not exist", false},
		{404, 1404, "The group with id 01 does not exist", false},
		{404, 1404, "Requested URL /api/data/resource_pools/2/members not found", true},
		{404, 0, "404 page not found", true},
		{405, 1405, "Method POST not allowed for URL /x", true},
	} {
		if got := noSuchPath(&web.Error{Status: tc.status, Code: tc.code, Message: tc.message}); got != tc.unserved {
			t.Errorf("%d %q: %v", tc.status, tc.message, got)
		}
	}
}

// If Renku cannot delete a pool, the pool does not count as deleted, and the error names the next
// step.
func TestAPoolThatRenkuKeeps(t *testing.T) {
	e := steps.Env{Link: "milan"}
	for _, tc := range []struct {
		status        int
		message, next string
		gone          bool
	}{
		{500, "An unexpected error occurred", "carrick apply milan.yaml --step identity", false},
		{404, "Could not find cluster with id 01 in the list of clusters.", "carrick apply milan.yaml --step restart", false},
		{404, "Resource pool with id 2 cannot be found", "", true},
	} {
		err := &web.Error{Status: tc.status, Code: 1000 + tc.status, Message: tc.message}
		if got := notRemoved(e, 2, err).Error(); !strings.Contains(got, tc.next) || isGone(err) != tc.gone {
			t.Errorf("%d %q: gone %v, %q", tc.status, tc.message, isGone(err), got)
		}
	}
}

// nameFromLink proposes a name for the cluster that is derived from the link's name.
func TestNamesFromTheLink(t *testing.T) {
	for link, want := range map[string]any{"milan": "milan", "ab": "remote-ab", strings.Repeat("x", 41): nil} {
		if got, _ := nameFromLink(steps.Env{Link: link}); got != want {
			t.Errorf("link %s: name %v", link, got)
		}
	}
}
