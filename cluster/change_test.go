package cluster

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"carrick/cluster/failure"
)

var configMapsGVR = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// script is a fake API server that answers from a table by "VERB /path", and records each request.
type script struct {
	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	asked   []string
	bodies  []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.String())
	s.bodies = append(s.bodies, string(body))
	answer := s.answers[r.Method+" "+r.URL.Path]
	s.mu.Unlock()
	if answer == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource", nil)
		return
	}
	answer(w, r)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func refuse(
	w http.ResponseWriter, code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails,
) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: details,
	})
}

func say(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovered returns one group in the format of aggregated discovery.
func discovered(group, freshness string, kinds ...string) string {
	resources := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		kind, cluster := strings.CutPrefix(kind, "cluster:")
		scope := "Namespaced"
		if cluster {
			scope = "Cluster"
		}
		resources = append(resources, fmt.Sprintf(
			`{"resource":%q,"responseKind":{"group":%q,"version":"v1","kind":%q},"scope":%q,"verbs":["get","list","watch"],
			"subresources":[{"subresource":"status","responseKind":{"group":%q,"version":"v1","kind":%q},"verbs":["get"]}]}`,
			strings.ToLower(kind)+"s", group, kind, scope, group, kind))
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","freshness":%q,"resources":[%s]}]}`,
		group, freshness, strings.Join(resources, ","))
}

func groupList(groups ...string) http.HandlerFunc {
	return say(
		aggregatedType,
		`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`+strings.Join(groups, ",")+`]}`,
	)
}

// scripted returns a cluster whose API server answers from the table. Discovery returns the core kinds and two more.
func scripted(t *testing.T, answers map[string]http.HandlerFunc) (*Cluster, *script) {
	t.Helper()
	s := &script{answers: map[string]http.HandlerFunc{
		"GET /api":  groupList(discovered("", "Current", "ConfigMap", "Secret", "Pod", "cluster:Namespace")),
		"GET /apis": groupList(discovered("apps", "Current", "Deployment"), discovered("metrics.k8s.io", "Stale")),
	}}
	for key, answer := range answers {
		s.answers[key] = answer
	}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := New(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, s
}

func TestResource(t *testing.T) {
	c, s := scripted(t, nil)
	for _, tc := range []struct {
		situation, group, kind string
		resource               string
		namespaced             bool
		is                     error
		words                  string
	}{
		{situation: "a core kind", kind: "ConfigMap", resource: "configmaps", namespaced: true},
		{situation: "a cluster-scoped kind", kind: "Namespace", resource: "namespaces"},
		{situation: "a kind of a group", group: "apps", kind: "Deployment", resource: "deployments", namespaced: true},
		{situation: "a kind that is not there", group: "apps", kind: "Nothing", is: failure.ErrNotServed},
		{situation: "a group that is not there", group: "liqo.io", kind: "ForeignCluster", is: failure.ErrNotServed},
		{situation: "a group that does not answer", group: "metrics.k8s.io", kind: "PodMetrics", words: "metrics.k8s.io/v1"},
		{situation: "no kind", words: "do not identify a kind"},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			gvr, namespaced, err := c.Resource(
				t.Context(), schema.GroupVersionKind{Group: tc.group, Version: "v1", Kind: tc.kind},
			)
			if tc.resource == "" {
				if err == nil || tc.is != nil && !errors.Is(err, tc.is) || tc.is == nil && errors.Is(err, failure.ErrNotServed) ||
					!strings.Contains(err.Error(), tc.words) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || gvr.Resource != tc.resource || gvr.Group != tc.group || namespaced != tc.namespaced {
				t.Errorf("got %v, %v, %v", gvr, namespaced, err)
			}
		})
	}
	// Once for the first, and once more for each of the three that are not among what is served.
	if got := len(s.requests()); got != 8 {
		t.Errorf("%d requests: %v", got, s.requests())
	}
}

func TestResourceThatAppearsIsFoundAtOnce(t *testing.T) {
	c, s := scripted(t, nil)
	gvk := schema.GroupVersionKind{Group: "liqo.io", Version: "v1", Kind: "Tunnel"}
	if _, _, err := c.Resource(t.Context(), gvk); !errors.Is(err, failure.ErrNotServed) {
		t.Fatalf("error %v", err)
	}
	s.mu.Lock()
	s.answers["GET /apis"] = groupList(discovered("liqo.io", "Current", "Tunnel"))
	s.mu.Unlock()
	if gvr, _, err := c.Resource(t.Context(), gvk); err != nil || gvr.Resource != "tunnels" {
		t.Errorf("got %v, %v", gvr, err)
	}
}

func TestDiscoveryOfOldServers(t *testing.T) {
	c, _ := scripted(t, map[string]http.HandlerFunc{
		"GET /api": say("application/json", `{"kind":"APIVersions","versions":["v1"]}`),
		"GET /apis": say(
			"application/json",
			`{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}]}]}`,
		),
		"GET /api/v1": say("application/json", `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]},{"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["get"]}]}`),
		"GET /apis/apps/v1": say("application/json", `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
			{"name":"deployments","kind":"Deployment","namespaced":true,"verbs":["list"]}]}`),
	})
	kinds, err := c.Kinds(t.Context())
	var got []string
	for _, kind := range kinds {
		got = append(got, kind.GVR.String()+" "+kind.GVK.Kind)
	}
	want := []string{"/v1, Resource=pods Pod", "apps/v1, Resource=deployments Deployment"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestApply(t *testing.T) {
	const path = "PATCH /api/v1/namespaces/a/configmaps/x"
	good := "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: a, managedFields: [{manager: m}]}, " +
		"data: {k: v}}"
	echo := say("application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}`)

	t.Run("what is sent", func(t *testing.T) {
		c, s := scripted(t, map[string]http.HandlerFunc{path: echo})
		out, err := c.Apply(t.Context(), parsed(t, good), ApplyOptions{Manager: "carrick.l.a", DryRun: true, Force: true})
		if err != nil || out.GetName() != "x" {
			t.Fatalf("got %v, %v", out, err)
		}
		want := path + "?dryRun=All&fieldManager=carrick.l.a&fieldValidation=Strict&force=true"
		if got := s.requests()[len(s.requests())-1]; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if body := s.bodies[len(s.bodies)-1]; strings.Contains(body, "managedFields") || !strings.Contains(body, `"k":"v"`) {
			t.Errorf("body %s", body)
		}
	})
	for _, tc := range []struct{ situation, object, manager, words string }{
		{"no manager", good, "", "no field manager"},
		{"no namespace", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", "m", "has no namespace"},
		{
			"a namespace too many", "{apiVersion: v1, kind: Namespace, metadata: {name: x, namespace: a}}", "m",
			`has the namespace "a"`,
		},
		{"no name", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a}}", "m", "has no name"},
		{"no kind", "{metadata: {name: x}}", "m", "do not identify a kind"},
		{
			"a path in the name", "{apiVersion: v1, kind: ConfigMap, metadata: {name: ../x, namespace: a}}", "m",
			"cannot be part of a path",
		},
		{
			"a Secret's value that is no text",
			"{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: a}, stringData: {pin: 4711}}", "m", `value of "pin"`,
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			c, s := scripted(t, nil)
			_, err := c.Apply(t.Context(), parsed(t, tc.object), ApplyOptions{Manager: tc.manager})
			if err == nil || !strings.Contains(err.Error(), tc.words) || strings.Contains(err.Error(), "4711") {
				t.Errorf("error %v", err)
			}
			for _, request := range s.requests() {
				if strings.HasPrefix(request, "PATCH") {
					t.Errorf("%s was sent", request)
				}
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	details := &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{
			Type:    metav1.CauseTypeFieldManagerConflict,
			Message: `conflict with "kubectl-edit" using apps/v1 at 2026-01-01T00:00:00Z`, Field: ".spec.replicas",
		},
		{
			Type:    metav1.CauseTypeFieldManagerConflict,
			Message: `conflict with "a \"b\"\x1b[2J" with subresource "status" using v1`, Field: ".status.x",
		},
		{Type: metav1.CauseTypeFieldManagerConflict, Message: "something else", Field: ".x"},
		{Type: metav1.CauseTypeFieldValueInvalid, Message: "no conflict", Field: ".y"},
	}}
	c, _ := scripted(t, map[string]http.HandlerFunc{
		"PATCH /api/v1/namespaces/a/configmaps/x": func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "Apply failed with 3 conflicts\x1b[2J", details)
		},
	})
	_, err := c.Apply(
		t.Context(), parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: a}}"),
		ApplyOptions{Manager: "m"},
	)
	want := []failure.Conflict{
		{Manager: "kubectl-edit", Field: ".spec.replicas"},
		{Manager: `a "b"`, Field: ".status.x"},
		{Manager: "something else", Field: ".x"},
	}
	if diff := cmp.Diff(want, failure.Conflicts(err)); diff != "" {
		t.Error(diff)
	}
	if !apierrors.IsConflict(err) || strings.Contains(err.Error(), "\x1b") ||
		!strings.HasPrefix(err.Error(), "apply ConfigMap a/x: ") {
		t.Errorf("error %q", err)
	}
	if got := failure.Conflicts(errors.New("other")); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestPatchPreconditions(t *testing.T) {
	for _, tc := range []struct {
		situation, merge string
		o                PatchOptions
		want             string
	}{
		{"none", `{"data":{"a":null}}`, PatchOptions{}, `{"data":{"a":null}}`},
		{
			"both", `{"metadata":{"labels":{"a":"b"}}}`,
			PatchOptions{UID: "u", ResourceVersion: "7"},
			`{"metadata":{"labels":{"a":"b"},"resourceVersion":"7","uid":"u"}}`,
		},
		{"no metadata yet", `{}`, PatchOptions{UID: "u"}, `{"metadata":{"uid":"u"}}`},
		{"no object", `[]`, PatchOptions{}, ""},
		{"null", `null`, PatchOptions{}, ""},
		{"metadata that is no object", `{"metadata":7}`, PatchOptions{UID: "u"}, ""},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			got, err := withPreconditions([]byte(tc.merge), tc.o)
			if string(got) != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	const path = "DELETE /api/v1/namespaces/a/configmaps/x"
	t.Run("what is sent", func(t *testing.T) {
		c, s := scripted(
			t, map[string]http.HandlerFunc{path: say("application/json", `{"kind":"Status","status":"Success"}`)},
		)
		if err := c.Delete(t.Context(), configMapsGVR, "a", "x", "u1"); err != nil {
			t.Fatal(err)
		}
		want := `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u1"},"propagationPolicy":"Background"}`
		if diff := cmp.Diff(want, s.bodies[0]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("gone already", func(t *testing.T) {
		c, _ := scripted(t, nil)
		if err := c.Delete(t.Context(), configMapsGVR, "a", "x", "u1"); err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing is deleted without a UID", func(t *testing.T) {
		c, s := scripted(t, nil)
		if err := c.Delete(t.Context(), configMapsGVR, "a", "x", ""); err == nil || len(s.requests()) > 0 {
			t.Errorf("error %v, requests %v", err, s.requests())
		}
	})
}

func TestFind(t *testing.T) {
	const path = "GET /api/v1/configmaps"
	page := func(name, next string) string {
		return fmt.Sprintf(
			`{"kind":"PartialObjectMetadataList","metadata":{"continue":%q},"items":[{"metadata":{"name":%q}}]}`, next, name,
		)
	}
	names := func(found []metav1.PartialObjectMetadata) (out string) {
		for _, item := range found {
			out += item.Name
		}
		return out
	}
	t.Run("page by page", func(t *testing.T) {
		c, s := scripted(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
				t.Errorf("accept %q", r.Header.Get("Accept"))
			}
			if r.URL.Query().Get("continue") == "" {
				say("application/json", page("a", "next"))(w, r)
				return
			}
			say("application/json", page("b", ""))(w, r)
		}})
		found, err := c.Find(t.Context(), configMapsGVR, "", Selector{Labels: "carrick/link.x", Fields: "metadata.name=a"})
		if err != nil || names(found) != "ab" {
			t.Errorf("got %v, %v", found, err)
		}
		if want := path +
			"?fieldSelector=metadata.name%3Da&labelSelector=carrick%2Flink.x&limit=500"; s.requests()[0] != want {
			t.Errorf("asked %s", s.requests()[0])
		}
	})
	t.Run("a next page that has expired", func(t *testing.T) {
		c, _ := scripted(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Query().Get("continue") != "":
				refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old", nil)
			case r.URL.Query().Get("limit") != "":
				say("application/json", page("a", "next"))(w, r)
			default:
				say("application/json", page("ab", ""))(w, r)
			}
		}})
		if found, err := c.Find(t.Context(), configMapsGVR, "", Selector{}); err != nil || names(found) != "ab" {
			t.Errorf("got %v, %v", found, err)
		}
	})
	t.Run("a resource that is not there", func(t *testing.T) {
		c, _ := scripted(t, nil)
		if _, err := c.Find(t.Context(), configMapsGVR, "", Selector{}); !errors.Is(err, failure.ErrNotServed) {
			t.Errorf("error %v", err)
		}
	})
}

func TestRequestsThatFail(t *testing.T) {
	get := "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: a}}"
	const path = "GET /api/v1/namespaces/a/configmaps/x"
	t.Run("ctx ends it at once", func(t *testing.T) {
		reached := make(chan struct{}, 1)
		c, _ := scripted(t, map[string]http.HandlerFunc{path: func(_ http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			<-r.Context().Done()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-reached; cancel() }()
		start := time.Now()
		if _, err := c.Fetch(ctx, parsed(t, get)); !errors.Is(err, context.Canceled) || time.Since(start) > time.Minute {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
	t.Run("a proxy's page is no object", func(t *testing.T) {
		c, _ := scripted(t, map[string]http.HandlerFunc{path: say("text/html", "<html>log in</html>")})
		if _, err := c.Fetch(t.Context(), parsed(t, get)); !errors.Is(err, failure.ErrNotJSON) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("an object that is not there", func(t *testing.T) {
		c, _ := scripted(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, _ *http.Request) {
			refuse(
				w, http.StatusNotFound, metav1.StatusReasonNotFound, `configmaps "x" not found`,
				&metav1.StatusDetails{Name: "x", Kind: "configmaps"},
			)
		}})
		if _, err := c.Fetch(t.Context(), parsed(t, get)); !apierrors.IsNotFound(err) ||
			errors.Is(err, failure.ErrNotServed) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a kind that is not there", func(t *testing.T) {
		c, _ := scripted(t, nil)
		if _, err := c.Fetch(
			t.Context(), parsed(t, "{apiVersion: liqo.io/v1, kind: X, metadata: {name: x}}"),
		); !errors.Is(err, failure.ErrNotServed) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLogs(t *testing.T) {
	c, s := scripted(t, map[string]http.HandlerFunc{
		"GET /api/v1/namespaces/a/pods/x/log": say("text/plain", "one\x1b[31m\ntwo\n"),
	})
	got, err := c.Logs(t.Context(), "a", "x", "main", 10)
	if err != nil || got != "one\ntwo\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if want := "GET /api/v1/namespaces/a/pods/x/log?container=main&limitBytes=1048576&tailLines=10"; s.requests()[0] != want {
		t.Errorf("asked %s", s.requests()[0])
	}
}

// parsed returns the object in a YAML text, or nil for "".
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}
