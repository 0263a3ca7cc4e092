package cluster_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"carrick/cluster"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	roles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	secretsGVR = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgets    = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "widgets"}
	crds       = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// fakeAPI is a fake API server in memory. It uses TLS and HTTP/2 over pipes, so that a synctest bubble controls the
// clock. Objects are maps by path. Tests set faults.
type fakeAPI struct {
	t    testing.TB
	line *pipeLine
	srv  *httptest.Server

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any // by collection and name: "/api/v1/namespaces/a/configmaps/x"
	unserved map[string]bool           // collections
	watches  map[*fakeWatch]bool
	asked    []string // "WATCH /path", "LIST /path", "GET /path", "POST /path"
	fault    func(w http.ResponseWriter, r *http.Request) (done bool)
	post     func(path string, body map[string]any) map[string]any
}

type fakeWatch struct {
	collection, name string
	events           chan []byte
	cut              chan struct{}
}

// bubble runs a test with a fake API server in a synctest bubble.
func bubble(t *testing.T, run func(t *testing.T, api *fakeAPI)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, newFakeAPI(t)) })
}

func newFakeAPI(t testing.TB) *fakeAPI {
	api := &fakeAPI{
		t: t, line: newPipeLine(),
		version: 100, objects: map[string]map[string]any{}, unserved: map[string]bool{}, watches: map[*fakeWatch]bool{},
	}
	api.srv = httptest.NewUnstartedServer(http.HandlerFunc(api.serve))
	_ = api.srv.Listener.Close()
	api.srv.Listener = api.line
	api.srv.EnableHTTP2 = true
	api.srv.StartTLS()
	t.Cleanup(func() {
		api.stop()
		_ = api.line.Close()
		api.srv.Close()
	})
	return api
}

// config returns a configuration for the server.
func (api *fakeAPI) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.srv.Certificate().Raw})
	return &rest.Config{
		Host:            "https://api.test:6443",
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, ServerName: "example.com"},
		Dial:            api.line.dial,
	}
}

// open returns a cluster that is closed when the test ends.
func (api *fakeAPI) open(o cluster.Options) *cluster.Cluster {
	api.t.Helper()
	c, err := cluster.New(api.config(), o)
	if err != nil {
		api.t.Fatal(err)
	}
	api.t.Cleanup(c.Close)
	return c
}

func collectionOf(gvr schema.GroupVersionResource, namespace string) string {
	path := "/api/" + gvr.Version
	if gvr.Group != "" {
		path = "/apis/" + gvr.Group + "/" + gvr.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + gvr.Resource
}

// put writes an object; more replaces top-level fields.
func (api *fakeAPI) put(gvr schema.GroupVersionResource, namespace, name string, more map[string]any) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.version++
	key := collectionOf(gvr, namespace) + "/" + name
	kind := "ADDED"
	if api.objects[key] != nil {
		kind = "MODIFIED"
	}
	metadata := map[string]any{
		"name": name, "uid": "uid-" + name, "resourceVersion": strconv.Itoa(api.version),
		"managedFields": []any{map[string]any{"manager": "test"}},
	}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{
		"apiVersion": schema.GroupVersion{Group: gvr.Group, Version: gvr.Version}.String(), "kind": "Thing",
		"metadata": metadata,
	}
	for field, value := range more {
		if field == "annotations" {
			metadata[field] = value
			continue
		}
		object[field] = value
	}
	api.objects[key] = object
	api.send(collectionOf(gvr, namespace), name, kind, object)
}

func (api *fakeAPI) remove(gvr schema.GroupVersionResource, namespace, name string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	key := collectionOf(gvr, namespace) + "/" + name
	object := api.objects[key]
	delete(api.objects, key)
	api.send(collectionOf(gvr, namespace), name, "DELETED", object)
}

func (api *fakeAPI) send(collection, name, kind string, object map[string]any) {
	for w := range api.watches {
		if w.collection == collection && (w.name == "" || w.name == name) {
			w.events <- eventOf(kind, object)
		}
	}
}

// sendRaw writes bytes to every watch of a collection.
func (api *fakeAPI) sendRaw(gvr schema.GroupVersionResource, namespace string, raw string) {
	api.mu.Lock()
	defer api.mu.Unlock()
	for w := range api.watches {
		if w.collection == collectionOf(gvr, namespace) {
			w.events <- []byte(raw)
		}
	}
}

// cut ends every watch without an error.
func (api *fakeAPI) cut() {
	api.mu.Lock()
	defer api.mu.Unlock()
	for w := range api.watches {
		close(w.cut)
		delete(api.watches, w)
	}
}

// stop makes the server unreachable, as if it was killed. start makes it reachable again.
func (api *fakeAPI) stop()  { api.line.set(false) }
func (api *fakeAPI) start() { api.line.set(true) }

func (api *fakeAPI) setFault(fault func(w http.ResponseWriter, r *http.Request) bool) {
	api.mu.Lock()
	defer api.mu.Unlock()
	api.fault = fault
}

// requests returns the requests since the last call.
func (api *fakeAPI) requests() []string {
	synctest.Wait()
	api.mu.Lock()
	defer api.mu.Unlock()
	asked := api.asked
	api.asked = nil
	return asked
}

func eventOf(kind string, object map[string]any) []byte {
	raw, _ := json.Marshal(map[string]any{"type": kind, "object": object})
	return append(raw, '\n')
}

func verbOf(r *http.Request, single bool) string {
	switch {
	case r.Method != http.MethodGet:
		return r.Method
	case r.URL.Query().Get("watch") == "true":
		return "WATCH"
	case single:
		return "GET"
	}
	return "LIST"
}

func (api *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" && len(parts) > 3 {
		parts = parts[3:]
	} else if len(parts) > 1 {
		parts = parts[2:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	single := len(parts) == 2
	selector := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	api.mu.Lock()
	what := verbOf(r, single) + " " + path
	if selector != "" {
		what += "/" + selector
	}
	api.asked = append(api.asked, what)
	fault, post := api.fault, api.post
	api.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if r.Method == http.MethodPost && post != nil {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		answer(w, http.StatusCreated, post(path, body))
		return
	}
	collection := path
	if single {
		collection = path[:strings.LastIndex(path, "/")]
	}
	if api.isUnserved(collection) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("404 page not found\n"))
		return
	}
	switch verbOf(r, single) {
	case "WATCH":
		api.watch(w, r, collection, selector)
	case "LIST":
		api.list(w, collection, selector)
	case "GET":
		api.one(w, path, parts[1])
	}
}

func (api *fakeAPI) isUnserved(collection string) bool {
	api.mu.Lock()
	defer api.mu.Unlock()
	return api.unserved[collection]
}

// selected returns the objects of a collection. The caller holds the mutex.
func (api *fakeAPI) selected(collection, name string) []any {
	items := []any{}
	keys := make([]string, 0, len(api.objects))
	for key := range api.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, collection+"/")
		if ok && !strings.Contains(rest, "/") && (name == "" || name == rest) {
			items = append(items, api.objects[key])
		}
	}
	return items
}

func (api *fakeAPI) list(w http.ResponseWriter, collection, name string) {
	api.mu.Lock()
	list := map[string]any{
		"apiVersion": "v1", "kind": "ThingList", "items": api.selected(collection, name),
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(api.version)},
	}
	raw, _ := json.Marshal(list)
	api.mu.Unlock()
	answerRaw(w, http.StatusOK, raw)
}

func (api *fakeAPI) one(w http.ResponseWriter, path, name string) {
	api.mu.Lock()
	raw, _ := json.Marshal(api.objects[path])
	found := api.objects[path] != nil
	api.mu.Unlock()
	if !found {
		status(
			w, http.StatusNotFound, "NotFound", fmt.Sprintf("things %q not found", name),
			map[string]any{"name": name, "kind": "things"},
		)
		return
	}
	answerRaw(w, http.StatusOK, raw)
}

func (api *fakeAPI) watch(w http.ResponseWriter, r *http.Request, collection, name string) {
	watch := &fakeWatch{collection: collection, name: name, events: make(chan []byte, 4096), cut: make(chan struct{})}
	api.mu.Lock()
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	var first [][]byte
	if initial {
		for _, object := range api.selected(collection, name) {
			first = append(first, eventOf("ADDED", object.(map[string]any)))
		}
		first = append(first, eventOf("BOOKMARK", map[string]any{
			"apiVersion": "v1", "kind": "Thing",
			"metadata": map[string]any{
				"resourceVersion": strconv.Itoa(api.version), "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
			},
		}))
	}
	api.watches[watch] = true
	api.mu.Unlock()
	defer func() {
		api.mu.Lock()
		delete(api.watches, watch)
		api.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for _, event := range first {
		_, _ = w.Write(event)
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-watch.events:
			if _, err := w.Write(event); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		case <-watch.cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, code int, body map[string]any) {
	raw, _ := json.Marshal(body)
	answerRaw(w, code, raw)
}

func answerRaw(w http.ResponseWriter, code int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

func status(w http.ResponseWriter, code int, reason, message string, details map[string]any) {
	body := map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
	}
	if details != nil {
		body["details"] = details
	}
	answer(w, code, body)
}

func forbidden(w http.ResponseWriter) {
	status(
		w, http.StatusForbidden, "Forbidden",
		`things is forbidden: User "jane" cannot watch resource "things" in API group "" in the namespace "a"`, nil,
	)
}
