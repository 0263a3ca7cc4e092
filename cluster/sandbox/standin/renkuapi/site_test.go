package renkuapi

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

// testClock is a clock that the test sets. A caller that waits sends its channel to waits.
type testClock struct {
	mu    sync.Mutex
	at    time.Time
	waits chan chan time.Time
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *testClock) after(time.Duration) <-chan time.Time {
	wait := make(chan time.Time, 1)
	c.waits <- wait
	return wait
}

// site is a fake Renku with two fake clusters.
type site struct {
	*Server
	t             *testing.T
	local, remote *fakeCluster
	clock         *testClock
	tick          chan time.Time // triggers the next poll
	client        *http.Client
	admin         string // a token
}

func newSite(t *testing.T, faults ...string) *site {
	t.Helper()
	s := &site{t: t, local: newFakeCluster(t), remote: newFakeCluster(t)}
	s.clock = &testClock{at: time.Now(), waits: make(chan chan time.Time, 100)}
	on := map[string]bool{}
	for _, name := range faults {
		on[name] = true
	}
	server, err := start(t.Context(), Options{
		Local: s.local.config(), Remote: s.remote.config(), Namespace: "renku", Release: "renku", Faults: on,
	}, clock{now: s.clock.now, after: s.clock.after})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.Server = server
	s.tick = <-s.clock.waits // the watch has looked once
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.CA())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	s.client = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	s.admin = s.token(url.Values{})
	return s
}

// look triggers a poll of the pods, and waits until the poll is done.
func (s *site) look() {
	s.tick <- s.clock.now()
	s.tick = <-s.clock.waits
}

func (s *site) token(query url.Values) string {
	s.t.Helper()
	out := struct {
		Token string `json:"access_token"`
	}{}
	if status := s.form("/stand-in/token", query, &out); status != http.StatusOK {
		s.t.Fatalf("no token: %d", status)
	}
	return out.Token
}

// form posts a form to Renku's domain.
func (s *site) form(path string, values url.Values, out any) int {
	s.t.Helper()
	answer, err := s.client.PostForm("https://"+s.Domain()+path, values)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		s.t.Fatalf("POST %s: %v", path, err)
	}
	return answer.StatusCode
}

// reply is a response of the API.
type reply struct {
	status, code int
	message      string // of an error
	body         []byte
}

// object decodes the reply.
func (r reply) object(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal(r.body, &out); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return out
}

func (r reply) list(t *testing.T) []map[string]any {
	t.Helper()
	out := []map[string]any{}
	if err := json.Unmarshal(r.body, &out); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return out
}

// as sends a request to the API with a token. body is JSON text, a value to encode as JSON, or nil.
func (s *site) as(token, method, path string, body any) reply {
	s.t.Helper()
	data, isText := []byte(nil), false
	if text, ok := body.(string); ok {
		data, isText = []byte(text), true
	}
	if body != nil && !isText {
		data, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(
		s.t.Context(), method, "https://"+s.Domain()+apiPath+path, bytes.NewReader(data),
	)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	r := reply{status: answer.StatusCode}
	if r.body, err = io.ReadAll(answer.Body); err != nil {
		s.t.Fatal(err)
	}
	failure := struct {
		Error struct {
			Code    int
			Message string
		}
	}{}
	if r.status >= 400 && json.Unmarshal(r.body, &failure) == nil {
		r.code, r.message = failure.Error.Code, failure.Error.Message
	}
	return r
}

// call is like as, with the admin's token.
func (s *site) call(method, path string, body any) reply {
	s.t.Helper()
	return s.as(s.admin, method, path, body)
}

// must is like call, but fails the test unless the response has the status.
func (s *site) must(status int, method, path string, body any) reply {
	s.t.Helper()
	r := s.call(method, path, body)
	if r.status != status {
		s.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
	}
	return r
}

// object is a JSON object.
type object = map[string]any

// with returns a copy of o with changes applied. A nil value removes the key.
func with(o object, changes object) object {
	next := object{}
	for k, v := range o {
		next[k] = v
	}
	for k, v := range changes {
		next[k] = v
		if v == nil {
			delete(next, k)
		}
	}
	return next
}

const podsAt = "/api/v1/namespaces/renku/pods"

// restart replaces the pod of a service on the local cluster, and waits until the new pod's process has started.
func (s *site) restart(app string) {
	s.t.Helper()
	s.clock.advance(time.Minute)
	name := fmt.Sprintf("%s-%d", app, s.clock.now().Unix())
	s.addPod(app, name, object{"name": configVolume, "secret": object{"secretName": "renku-remote-clusters"}})
	s.look()
}

func (s *site) addPod(app, name string, volumes ...any) {
	s.local.put(podsAt, object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{
			"name": name, "namespace": "renku", "uid": "uid-" + name, "labels": object{"app": app, "release": "renku"},
			"creationTimestamp": s.clock.now().UTC().Format(time.RFC3339),
		},
		"spec":   object{"containers": []any{object{"name": "service"}}, "volumes": volumes},
		"status": object{"conditions": []any{object{"type": "Ready", "status": "True"}}},
	})
}

// mount writes the Secret that contains the kubeconfigs.
func (s *site) mount(files map[string]string) {
	data := object{}
	for name, text := range files {
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	s.local.put("/api/v1/namespaces/renku/secrets", object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "renku-remote-clusters", "namespace": "renku"},
		"data": data,
	})
}

// kubeconfigOf returns a valid kubeconfig for a cluster. It is JSON, which is valid YAML.
func kubeconfigOf(f *fakeCluster) object {
	return object{
		"apiVersion": "v1", "kind": "Config", "current-context": "remote",
		"contexts": []any{
			object{"name": "remote", "context": object{"cluster": "c", "user": "u", "namespace": "renku-user-sessions"}},
		},
		"clusters": []any{object{"name": "c", "cluster": object{
			"server": f.URL, "certificate-authority-data": base64.StdEncoding.EncodeToString(f.ca()),
		}}},
		"users": []any{object{"name": "u", "user": object{"token": "token-of-the-service-account"}}},
	}
}

func text(o any) string {
	data, _ := json.Marshal(o)
	return string(data)
}

// guideCluster returns the published guide's payload for a cluster.
func guideCluster() object {
	return object{
		"name": "Bern cluster", "config_name": "bern.yaml", "session_protocol": "https",
		"session_host": "sessions.example.org",
		"session_port": 443, "session_path": "/sessions", "session_ingress_class_name": "renku-user-session-ingress-class",
		"session_ingress_annotations": object{}, "session_storage_class": "renku-user-session-storage-class",
		"session_tls_secret_name": "", tlsFlag: true,
	}
}

// join registers a cluster whose kubeconfig refers to the remote cluster, restarts data-service, and returns the
// cluster's ID.
func (s *site) join() string {
	s.t.Helper()
	s.mount(map[string]string{"bern.yaml": text(kubeconfigOf(s.remote))})
	id, _ := s.must(http.StatusCreated, "POST", "/clusters", guideCluster()).object(s.t)["id"].(string)
	s.restart(dataService)
	return id
}
