package renku_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/stepstest"
)

// fakeRenku is a small fake of Renku's API for tests of actions. It stores clusters and pools, and
// imitates the peculiarities of POST and PATCH that the guide must handle. It creates nothing on
// the remote cluster.
type fakeRenku struct {
	url string
	ca  []byte

	mu       sync.Mutex
	clusters map[string]map[string]any
	pools    map[int]map[string]any
	members  map[int][]map[string]any
	next     int
	changes  []string // "POST /clusters", in order
	signIns  int

	passesFlag bool   // a Renku that stores the flag of the default certificate, and then no empty Secret beside it
	loses      string // a request whose answer is lost
}

// startRenku starts a fakeRenku that already contains a cluster of another user.
func startRenku(tb testing.TB) *fakeRenku {
	f := &fakeRenku{
		clusters: map[string]map[string]any{}, pools: map[int]map[string]any{}, members: map[int][]map[string]any{}, next: 1,
	}
	f.clusters[f.id()] = map[string]any{"name": "Paris", "config_name": "paris.yaml", "session_protocol": "http"}
	server, ca := stepstest.ServeTLS(tb, http.HandlerFunc(f.serve))
	f.url, f.ca = server.URL, ca
	return f
}

func (f *fakeRenku) id() string {
	f.next++
	return fmt.Sprintf("01JQ%022d", f.next)
}

// adminToken returns a token that fakeRenku accepts. fakeRenku verifies no tokens.
func adminToken() string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"RS256"}`)) + "." + enc([]byte(`{"sub":"1","aud":"renku-cli","exp":32503680000}`)) + "." +
		enc([]byte("stand-in"))
}

func (f *fakeRenku) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/api/data")
	var body map[string]any
	if ok && r.Method != http.MethodGet {
		f.changes = append(f.changes, r.Method+" "+path)
		if !strings.HasSuffix(path, "/members") {
			_ = json.NewDecoder(r.Body).Decode(&body)
		}
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	status, answer := 404, any(problem(1404, "Requested URL "+r.URL.Path+" not found"))
	switch {
	case r.URL.Path == "/auth/realms/Renku/protocol/openid-connect/auth/device" && r.Method == http.MethodPost:
		status, answer = 200, map[string]any{
			"device_code": "x", "user_code": "FAKE-CODE", "verification_uri": f.url + "/device", "expires_in": 60, "interval": 1,
		}
	case r.URL.Path == "/auth/realms/Renku/protocol/openid-connect/token" &&
		r.Method == http.MethodPost: // somebody approves at once
		f.signIns++
		status, answer = 200, map[string]any{"access_token": adminToken()}
	case path == "/version":
		status, answer = 200, map[string]any{"version": "0.80.1"}
	case path == "/spec.json":
		status, answer = 200, json.RawMessage(
			`{"components":{"schemas":{"Cluster":{"properties":{"session_ingress_use_default_cluster_tls_cert":{},"service_account_name":{}}}}}}`,
		)
	case ok && r.Header.Get("Authorization") != "Bearer "+adminToken():
		status, answer = 401, problem(1401, "Please provide valid access credentials in the Authorization header.")
	case path == "/user":
		status, answer = 200, map[string]any{"username": "jane", "is_admin": true}
	case parts[0] == "clusters":
		status, answer = f.serveClusters(r.Method, parts[1:], body)
	case parts[0] == "resource_pools":
		status, answer = f.servePools(r, parts[1:], body)
	}
	if f.loses != "" && f.loses == r.Method+" "+path {
		f.loses = ""
		panic(http.ErrAbortHandler) // it was done, and nobody hears of it
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func problem(code int, message string) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": message}}
}

func (f *fakeRenku) serveClusters(method string, rest []string, body map[string]any) (int, any) {
	if len(rest) == 0 {
		if method == http.MethodPost {
			return f.postCluster(body)
		}
		all := []any{}
		for id, c := range f.clusters {
			all = append(all, withID(id, c))
		}
		return 200, all
	}
	id := rest[0]
	c := f.clusters[id]
	switch {
	case method == http.MethodDelete:
		delete(f.clusters, id)
		for _, p := range f.pools {
			if p["cluster_id"] == id {
				p["cluster_id"] = nil
			}
		}
		return 204, nil
	case c == nil:
		return 404, problem(1404, "Cluster definition id='"+id+"' does not exist.")
	case method == http.MethodPatch:
		return f.patchCluster(id, c, body)
	}
	return 200, withID(id, c)
}

// withID returns a cluster as Renku's API does: without null fields, and always with the flag of
// the default certificate.
func withID(id string, c map[string]any) map[string]any {
	out := map[string]any{"id": id, "session_ingress_use_default_cluster_tls_cert": false}
	for k, v := range c {
		if v != nil {
			out[k] = v
		}
	}
	return out
}

func (f *fakeRenku) postCluster(c map[string]any) (int, any) {
	for _, other := range f.clusters {
		for _, key := range []string{"name", "config_name"} {
			if other[key] == c[key] {
				return 409, problem(1409, "Cannot create a cluster because the "+key+" is already used")
			}
		}
	}
	flag := c["session_ingress_use_default_cluster_tls_cert"] == true
	if code, message := tlsRule(c); code != 0 {
		return code, problem(1000+code, message)
	}
	if !f.passesFlag {
		if flag && c["session_tls_secret_name"] == nil {
			return 500, problem(1500, `Database error occurred: violates check constraint "protocol_tls_secrets"`)
		}
		c["session_ingress_use_default_cluster_tls_cert"] = false // as upstream does
	} else if flag && c["session_tls_secret_name"] != nil {
		return 500, problem(1500, `Database error occurred: violates check constraint "protocol_tls_secrets"`)
	}
	id := f.id()
	f.clusters[id] = c
	return 201, withID(id, c)
}

func tlsRule(c map[string]any) (int, string) {
	flag, named := c["session_ingress_use_default_cluster_tls_cert"] == true, c["session_tls_secret_name"] != nil &&
		c["session_tls_secret_name"] != ""
	switch {
	case c["session_protocol"] != "https":
	case flag && named:
		return 422, "you have set both"
	case !flag && !named:
		return 422, "neither is set. Please set only one of these two options."
	}
	return 0, ""
}

func (f *fakeRenku) patchCluster(id string, c, body map[string]any) (int, any) {
	now := maps.Clone(c)
	maps.Copy(now, body)
	if now["session_tls_secret_name"] == "" && body["session_tls_secret_name"] != nil {
		now["session_tls_secret_name"] = nil
	}
	counted := maps.Clone(now) // the new flag and the saved one together
	if c["session_ingress_use_default_cluster_tls_cert"] == true {
		counted["session_ingress_use_default_cluster_tls_cert"] = true
	}
	if code, message := tlsRule(counted); code != 0 {
		return code, problem(1000+code, message)
	}
	if now["session_protocol"] == "https" &&
		(now["session_tls_secret_name"] != nil) == (now["session_ingress_use_default_cluster_tls_cert"] == true) {
		return 500, problem(1500, `Database error occurred: violates check constraint "protocol_tls_secrets"`)
	}
	f.clusters[id] = now
	return 201, withID(id, now)
}

func (f *fakeRenku) servePools(r *http.Request, rest []string, body map[string]any) (int, any) {
	if len(rest) == 0 {
		if r.Method == http.MethodPost {
			f.next++
			delete(body, "cpu_limit_factor") // as upstream does
			f.pools[f.next] = body
			return 201, f.pool(f.next)
		}
		all := []any{}
		for id := range f.pools {
			p := f.pool(id)
			delete(p, "cluster")
			all = append(all, p)
		}
		return 200, all
	}
	id, _ := strconv.Atoi(rest[0])
	switch {
	case f.pools[id] == nil && r.Method != http.MethodDelete:
		return 404, problem(1404, "Resource pool with id "+rest[0]+" cannot be found")
	case len(rest) == 2 && r.Method == http.MethodPost:
		var some []map[string]any
		_ = json.NewDecoder(r.Body).Decode(&some)
		f.members[id] = append(f.members[id], some...)
		return 201, f.members[id]
	case len(rest) == 2:
		return 200, append([]map[string]any{}, f.members[id]...)
	case r.Method == http.MethodDelete:
		delete(f.pools, id)
		return 204, nil
	case r.Method == http.MethodPatch:
		maps.Copy(f.pools[id], body)
	}
	return 200, f.pool(id)
}

func (f *fakeRenku) pool(id int) map[string]any {
	out := maps.Clone(f.pools[id])
	out["id"] = id
	if c, ok := out["cluster_id"].(string); ok {
		out["cluster"] = map[string]any{"id": c}
	}
	delete(out, "cluster_id")
	return out
}

// did returns the changes since the previous call.
func (f *fakeRenku) did() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.changes
	f.changes = nil
	return out
}

// fakeSpace is the namespace of fakeRenku's objects on the local cluster. The sandbox has its own
// Renku in another namespace.
const fakeSpace = "renku-fake"

const fakeObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: renku-fake}
---
apiVersion: v1
kind: Secret
metadata: {name: renku-ca, namespace: renku-fake}
data: {ca.crt: %s}
---
apiVersion: v1
kind: Secret
metadata: {name: renku-notebooks, namespace: renku-fake}
stringData: {NB_SESSIONS__CA_CERTS__SECRETS: "- secret: renku-ca\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: renku-remote-clusters, namespace: renku-fake}
stringData: {paris.yaml: "somebody else's"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: renku-data-service, namespace: renku-fake, labels: {app: renku-data-service, release: renku}}
spec:
  replicas: 0
  selector: {matchLabels: {app: renku-data-service}}
  template:
    metadata: {labels: {app: renku-data-service}}
    spec:
      containers: [{name: data-service, image: example.org/data-service}]
      volumes: [{name: remote-cluster-kubeconfigs, secret: {secretName: renku-remote-clusters}}]
`

// answers returns the answers of a link to this fakeRenku, with the given answers added.
func (f *fakeRenku) answers(tb testing.TB, box *clustertest.Sandbox, given map[string]any) map[string]any {
	tb.Helper()
	box.Run(tb, clustertest.Local, fmt.Sprintf(fakeObjects, base64.StdEncoding.EncodeToString(f.ca)), "apply", "-f", "-")
	u, err := url.Parse(f.url)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]any{
		"renku.namespace": fakeSpace, "renku.url": f.url, "renku.token": adminToken(),
		"sessions.host": "localhost", "sessions.port": u.Port(),
	}
	maps.Copy(out, given)
	return out
}
