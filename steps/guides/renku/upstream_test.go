package renku_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"carrick/cluster/clustertest"
	"carrick/cluster/clustertest/upstream"
	"carrick/cluster/probe"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// apiBase is where Renku's data service answers.
const apiBase = "/api/data"

// TestUpstreamAPI has Renku's OpenAPI documents judge what carrick asks of Renku, and what its stand-in answers.
func TestUpstreamAPI(t *testing.T) {
	src := upstream.Find(t, "renku-data-services")
	box := seeded(t)
	answers := site(t, box, map[string]any{"sessions.namespace": "upstream-sessions"})
	j := judge(t, src, box)
	answers["renku.url"] = j.url
	s := stepstest.Open(t, box, renku.Guide(), assets, "upstream", answers)
	stepstest.Apply(t, s)
	stepstest.Undo(t, s)
	src.Try(
		t, "requests of apply, check and undo are as the OpenAPI documents say", func(t *testing.T) { j.tell(t, j.requests) },
	)
	src.Try(t, "the stand-in answers as the OpenAPI documents say", func(t *testing.T) { j.tell(t, j.responses) })
	src.Try(t, "each address that is asked is in the OpenAPI documents", func(t *testing.T) { j.tell(t, j.unknown) })
	if len(j.asked) < 10 {
		t.Errorf("no more was asked than %q", j.asked)
	}
}

// contradicted reports whether Renku's documents are not what Renku does: PATCH and PUT of a cluster answer 201, and
// the documents know 200.
//
// Source: SwissDataScienceCenter/renku-data-services v0.79.0, components/renku_data_services/crc/blueprints.py
// (ClustersBP).
func contradicted(what string, status int) bool {
	return status == http.StatusCreated &&
		(strings.HasPrefix(what, "PATCH /clusters/") || strings.HasPrefix(what, "PUT /clusters/"))
}

// merge makes one schema of those that it is all of: the first allows no property of the others, so that nothing is
// valid.
func merge(s *openapi3.Schema) {
	all := s.AllOf
	s.AllOf, s.Properties = nil, openapi3.Schemas{}
	for _, part := range all {
		maps.Copy(s.Properties, part.Value.Properties)
		s.Required = append(s.Required, part.Value.Required...)
		if part.Value.AdditionalProperties.Has != nil {
			s.AdditionalProperties = part.Value.AdditionalProperties
		}
	}
}

// judged is a proxy before Renku that looks at what goes through.
type judged struct {
	url string

	mu                           sync.Mutex
	asked                        []string // "POST /resource_pools"
	requests, responses, unknown []string // what is wrong
}

func (j *judged) tell(t *testing.T, wrong []string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.Sort(wrong)
	for _, w := range slices.Compact(wrong) {
		t.Error(w)
	}
}

func judge(t *testing.T, src upstream.Checkout, box *clustertest.Sandbox) *judged {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(src.Dir, "components", "renku_data_services", "*", "api.spec.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("OpenAPI documents of %s: %d, %v", src.Dir, len(files), err)
	}
	var known []routers.Router
	for _, path := range files {
		loader := openapi3.NewLoader()
		loader.IsExternalRefsAllowed = true
		doc, err := loader.LoadFromFile(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if filtered := doc.Components.Schemas["ResourceClassWithIdFiltered"]; filtered != nil {
			merge(filtered.Value)
		}
		doc.Servers = openapi3.Servers{{URL: apiBase}}
		router, err := gorillamux.NewRouter(doc)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		known = append(known, router)
	}
	to, ca := realRenku(t, box)
	j := &judged{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	pool, err := probe.Pool(ca)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	server := httptest.NewTLSServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { j.pass(w, r, known, proxy) }),
	)
	t.Cleanup(server.Close)
	j.url = server.URL
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	box.Run(t, clustertest.Local, "", "-n", "renku", "patch", "secret", "renku-ca", "-p",
		fmt.Sprintf(`{"data":{"ca.crt":%q}}`, base64.StdEncoding.EncodeToString(append(ca, own...))))
	return j
}

// realRenku is where the Renku of the sandbox answers, and its authority.
func realRenku(t *testing.T, box *clustertest.Sandbox) (*url.URL, []byte) {
	t.Helper()
	s := stepstest.Open(t, box, renku.Guide(), assets, "where", nil)
	defer s.Close()
	for _, a := range s.Answers(t.Context(), s.Guide().Step("register")) {
		text, _ := a.Value.(string)
		if a.Question.Key != "renku.url" || text == "" {
			continue
		}
		to, err1 := url.Parse(text)
		encoded := box.Run(
			t, clustertest.Local, "", "-n", "renku", "get", "secret", "renku-ca", "-o", `jsonpath={.data.ca\.crt}`,
		)
		ca, err2 := base64.StdEncoding.DecodeString(encoded)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return to, ca
	}
	t.Fatal("the site does not tell where Renku is")
	return nil, nil
}

// pass hands a request on, and judges it and the answer.
func (j *judged) pass(w http.ResponseWriter, r *http.Request, known []routers.Router, to http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	again := func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }
	r.Body = again()
	answer := httptest.NewRecorder()
	to.ServeHTTP(answer, r)
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	if !strings.HasPrefix(r.URL.Path, apiBase+"/") {
		return // Keycloak's, and the stand-in's own
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	what := r.Method + " " + strings.TrimPrefix(r.URL.Path, apiBase)
	j.asked = append(j.asked, what)
	for _, router := range known {
		route, params, err := router.FindRoute(r)
		if err != nil {
			continue
		}
		r.Body = again()
		options := &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
		}
		options.WithCustomSchemaErrorFunc(func(e *openapi3.SchemaError) string {
			return strings.Join(e.JSONPointer(), "/") + ": " + e.Reason
		})
		in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil && answer.Code < 400 {
			j.requests = append(j.requests, fmt.Sprintf("%s: %v; of %s", what, err, body))
		}
		out := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: in, Status: answer.Code, Header: answer.Header(), Options: options,
		}
		out.SetBodyBytes(answer.Body.Bytes())
		if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil && !contradicted(what, answer.Code) {
			j.responses = append(
				j.responses, fmt.Sprintf("%s answers %d: %v; of %s", what, answer.Code, err, answer.Body.String()),
			)
		}
		return
	}
	j.unknown = append(j.unknown, what)
}
