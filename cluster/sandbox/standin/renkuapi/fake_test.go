package renkuapi

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// fakeCluster is a fake API server that stores any object without a schema, and records the requests.
type fakeCluster struct {
	*httptest.Server
	mu       sync.Mutex
	objects  map[string]map[string]*unstructured.Unstructured // by collection path, by name
	denied   map[string]bool                                  // "list priorityclasses"
	requests []string                                         // "list priorityclasses metadata.name=x"
	tokens   map[string]bool                                  // tokens in requests
}

func newFakeCluster(t *testing.T) *fakeCluster {
	f := &fakeCluster{
		objects: map[string]map[string]*unstructured.Unstructured{}, denied: map[string]bool{}, tokens: map[string]bool{},
	}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeCluster) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

func (f *fakeCluster) config() *rest.Config {
	return &rest.Config{Host: f.URL, TLSClientConfig: rest.TLSClientConfig{CAData: f.ca()}}
}

// put stores an object in a collection, such as "/api/v1/namespaces/renku/pods".
func (f *fakeCluster) put(collection string, object map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := &unstructured.Unstructured{Object: object}
	if f.objects[collection] == nil {
		f.objects[collection] = map[string]*unstructured.Unstructured{}
	}
	f.objects[collection][u.GetName()] = u
}

// get returns an object, or nil if the object does not exist.
func (f *fakeCluster) get(collection, name string) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.objects[collection][name]; u != nil {
		return u.Object
	}
	return nil
}

func (f *fakeCluster) remove(collection, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects[collection], name)
}

func (f *fakeCluster) deny(rights ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rights {
		f.denied[r] = true
	}
}

// asked returns the requests since the last call.
func (f *fakeCluster) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.requests
	f.requests = nil
	return all
}

// plurals lists the collections that the fake serves.
var plurals = []string{"pods", "secrets", "resourcequotas", "priorityclasses", "ingresses"}

func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	collection, name := r.URL.Path, ""
	if !slices.Contains(plurals, path.Base(collection)) {
		collection, name = path.Dir(collection), path.Base(collection)
	}
	resource := path.Base(collection)
	verb := map[string]string{"POST": "create", "PATCH": "patch", "DELETE": "delete", "GET": "get"}[r.Method]
	if r.Method == http.MethodGet && name == "" {
		verb = "list"
	}
	f.requests = append(f.requests, strings.TrimSpace(verb+" "+resource+" "+r.URL.Query().Get("fieldSelector")))
	f.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] = true
	held := f.objects[collection]
	switch u := held[name]; {
	case f.denied[verb+" "+resource]:
		status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case verb == "list":
		f.list(w, r, collection)
	case verb == "create":
		f.create(w, r, collection)
	case u == nil:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case verb == "patch":
		sent := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		maps.Copy(u.Object["spec"].(map[string]any), sent["spec"].(map[string]any))
		answer(w, http.StatusOK, u.Object)
	case verb == "delete":
		delete(held, name)
		answer(w, http.StatusOK, u.Object)
	default:
		answer(w, http.StatusOK, u.Object)
	}
}

func (f *fakeCluster) list(w http.ResponseWriter, r *http.Request, collection string) {
	wanted, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	only, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	items := []any{}
	for at, held := range f.objects {
		everywhere := path.Base(at) == path.Base(collection) && !strings.Contains(collection, "/namespaces/")
		if at != collection && !everywhere {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(held)) {
			if (only == "" || only == name) && wanted.Matches(labels.Set(held[name].GetLabels())) {
				items = append(items, held[name].Object)
			}
		}
	}
	answer(w, http.StatusOK, map[string]any{"metadata": map[string]any{}, "items": items})
}

func (f *fakeCluster) create(w http.ResponseWriter, r *http.Request, collection string) {
	data, _ := io.ReadAll(r.Body)
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	if f.objects[collection][u.GetName()] != nil {
		status(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	if f.objects[collection] == nil {
		f.objects[collection] = map[string]*unstructured.Unstructured{}
	}
	f.objects[collection][u.GetName()] = u
	answer(w, http.StatusCreated, u.Object)
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: fmt.Sprintf("the fake says %s", reason),
	})
}
