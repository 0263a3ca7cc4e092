package stepstest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"k8s.io/apimachinery/pkg/api/meta"

	"carrick/cluster/clustertest/merge"
	"carrick/steps"
)

// server is the fake API server of one side.
type server struct {
	*httptest.Server
	side    steps.Side
	objects []*unstructured.Unstructured
	denied  []string
	version string
	skew    time.Duration
	down    bool
	hangs   chan struct{} // closed at the end; nil if the server answers
	pair    *pair
	signs   *authority
	logs    map[string]string
	refuses bool            // no credentials are accepted
	minted  map[string]bool // tokens on a host, which are valid until they expire
	pages   map[string][]webAnswer

	admission []admission
	refusals  []admission                  // rules for dry runs that merge
	also      []schema.GroupVersionKind    // additional served kinds
	level     string                       // Pod Security level of namespaces that set none
	written   []*unstructured.Unstructured // objects that the guide writes; their kinds are served, too
	merger    *merge.Merger                // nil if dry runs merge nothing
	mutant    atomic.Pointer[server]       // answers instead of this server, unless it is nil
	asked     *asked                       // nil if requests are not recorded
}

// admin is the user of the link's contexts.
const admin = "admin"

func newServer(side steps.Side) *server {
	s := &server{
		side: side, version: "v1.36.3", pair: newPair(), minted: map[string]bool{},
		signs: newAuthority(string(side) + "-kubernetes"),
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // some states cause failing handshakes
	s.TLS, s.EnableHTTP2 = s.signs.tls(), true     // like real API servers
	s.StartTLS()
	return s
}

// set applies a state to the server.
func (s *server) set(st *state) error {
	s.objects, s.logs, s.pages, s.admission = st.objects[s.side], st.logs, st.web, st.admission[s.side]
	for _, d := range st.denied {
		if rest, ok := strings.CutPrefix(d, string(s.side)+" "); ok {
			s.denied = append(s.denied, rest)
		}
	}
	for _, words := range st.server[s.side] {
		what, arg, _ := strings.Cut(words, " ")
		switch what {
		case "down":
			s.down = true
			s.Close()
		case "refuses":
			s.refuses = true
		case "hangs":
			s.hangs = make(chan struct{})
		case "version":
			s.version = arg
		case "serves":
			version, kind, _ := strings.Cut(arg, " ")
			s.also = append(s.also, schema.FromAPIVersionAndKind(version, kind))
		case "level":
			s.level = arg
		case "skew":
			d, err := time.ParseDuration(arg)
			if err != nil {
				return err
			}
			s.skew = d
		default:
			return fmt.Errorf("unknown server state %q", words)
		}
	}
	return nil
}

// away reports whether the server does not answer.
func (s *server) away() bool { return s.down || s.hangs != nil }

// direct answers the admin's requests without a connection. Other requests go to the server over TLS, such as those
// with the credentials of a kubeconfig that a guide has written, and all requests to a server that does not answer.
type direct struct {
	server *server
	others http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if !byAdmin(r) || d.server.away() {
		return d.others.RoundTrip(r)
	}
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.server.serve(w, r)
	out := w.Result()
	out.Request = r
	return out, nil
}

// minor returns the minor version, such as 36 for "v1.36.3".
func (s *server) minor() int {
	n, _ := strconv.Atoi(strings.Split(s.version, ".")[1])
	return n
}

func (s *server) stop() {
	if s.hangs != nil {
		close(s.hangs)
	}
	s.Close()
}

func (s *server) ca() []byte { return s.signs.pem() }

// expand replaces macros whose values are known only after the server has started.
func (s *server) expand(text string) string {
	text = strings.ReplaceAll(text, "${ca}", base64.StdEncoding.EncodeToString(s.ca()))
	text = strings.ReplaceAll(text, "${ca-pem}\n", string(s.ca()))
	text = strings.ReplaceAll(text, "${server}", s.URL)
	text = s.signs.expand(s.pair.expand(text))
	return token.ReplaceAllStringFunc(text, func(m string) string {
		p := token.FindStringSubmatch(m)
		text, err := jwt(p[2], p[3], p[4], p[5])
		if err != nil {
			return err.Error()
		}
		if p[1] == "jwt" {
			return text
		}
		return base64.StdEncoding.EncodeToString([]byte(text))
	})
}

// person is the user of a request. Without a name it is anonymous.
type person struct {
	name   string
	groups []string
}

// user authenticates a request by its certificate or else by its token.
func (s *server) user(r *http.Request) person {
	if s.refuses {
		return person{}
	}
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return s.signs.client(r.TLS.PeerCertificates)
	case bearer == admin:
		return person{name: admin}
	}
	if s.minted[bearer] {
		return person{subject(bearer), []string{"system:serviceaccounts"}}
	}
	for _, o := range s.objects { // only tokens in a Secret of this cluster are valid
		if o.GetKind() != "Secret" || o.GetAnnotations()["refused"] != "" { // a token that the API server no longer accepts
			continue
		}
		v, _, _ := unstructured.NestedString(o.Object, "data", "token")
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil && string(raw) == bearer {
			return person{subject(bearer), []string{"system:serviceaccounts"}}
		}
	}
	return person{}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if m := s.mutant.Load(); m != nil {
		m.serve(w, r)
		return
	}
	s.asked.note(r)
	if s.hangs != nil {
		select {
		case <-s.hangs:
		case <-r.Context().Done():
		}
		return
	}
	w.Header().Set("Date", time.Now().Add(s.skew).UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Type", "application/json")
	who := s.user(r)
	switch {
	case r.URL.Path == "/version":
		reply(w, 200, map[string]any{"gitVersion": s.version, "major": "1", "minor": strconv.Itoa(s.minor())})
	case who.name == "":
		fail(w, 401, metav1.StatusReasonUnauthorized, "Unauthorized")
	case strings.HasSuffix(r.URL.Path, "/log"):
		a, _ := parsePath(r.URL.Path)
		text, ok := s.logs[a.Namespace+"/"+a.Name+"/"+r.URL.Query().Get("container")]
		if !ok {
			text, ok = s.logs[a.Namespace+"/"+a.Name]
		}
		if why, broken := strings.CutPrefix(text, "error 500: "); broken {
			fail(w, 500, metav1.StatusReasonInternalError, strings.TrimSpace(why))
			return
		}
		if !ok {
			fail(w, 404, metav1.StatusReasonNotFound, "no log")
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(text))
	case r.URL.Path == "/metrics":
		s.metrics(w)
	case strings.Contains(r.URL.Path, "/proxy/"):
		s.proxied(w, r, who)
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		s.discovery(w, r.URL.Path == "/api")
	case r.Method == http.MethodPost:
		s.review(w, r, who)
	case r.Method != http.MethodGet:
		s.dryRun(w, r, who)
	default:
		s.read(w, r, who)
	}
}

// metrics answers with "GET /metrics" from the web section. If the denied section contains "get /metrics", it answers
// with 403.
func (s *server) metrics(w http.ResponseWriter) {
	if slices.Contains(s.denied, "get /metrics") {
		fail(w, 403, metav1.StatusReasonForbidden, `forbidden: User "admin" cannot get path "/metrics"`)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	for _, page := range s.pages["GET /metrics"] {
		page.write(w)
		return
	}
}

func (s *server) review(w http.ResponseWriter, r *http.Request, who person) {
	switch kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; kind {
	case "selfsubjectreviews":
		var v authenticationv1.SelfSubjectReview
		v.APIVersion, v.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
		v.Status.UserInfo.Username, v.Status.UserInfo.Groups = who.name, who.groups
		reply(w, 201, v)
	case "selfsubjectaccessreviews":
		var v authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		v.Status.Allowed = s.allows(who, v.Spec.ResourceAttributes)
		reply(w, 201, v)
	case "subjectaccessreviews":
		s.reviewOther(w, r, who)
	case "selfsubjectrulesreviews":
		var v authorizationv1.SelfSubjectRulesReview
		if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
			fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		v.Status = s.rulesReview(who, v.Spec.Namespace)
		reply(w, 201, v)
	default:
		fail(w, 405, metav1.StatusReasonMethodNotAllowed, "a state is read-only")
	}
}

func (s *server) read(w http.ResponseWriter, r *http.Request, who person) {
	a, single := parsePath(r.URL.Path)
	a.Verb = map[bool]string{true: "get", false: "list"}[single]
	if !s.allows(who, a) {
		fail(
			w, 403, metav1.StatusReasonForbidden,
			fmt.Sprintf(
				"%s is forbidden: User %q cannot %s resource %q in API group %q", a.Resource, who.name, a.Verb, a.Resource, a.Group,
			),
		)
		return
	}
	sel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	only, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		fail(w, 400, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	items := []any{}
	for _, o := range s.objects {
		gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		set := fieldsOf(o)
		if gvr != (schema.GroupVersionResource{Group: a.Group, Version: a.Version, Resource: a.Resource}) ||
			(a.Namespace != "" && o.GetNamespace() != a.Namespace) {
			continue
		}
		if single && o.GetName() == a.Name {
			reply(w, 200, o.Object)
			return
		}
		if !single && sel.Matches(labels.Set(o.GetLabels())) && only.Matches(set) {
			items = append(items, o.Object)
		}
	}
	if single {
		fail(w, 404, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", a.Resource, a.Name))
		return
	}
	gv := schema.GroupVersion{Group: a.Group, Version: a.Version}.String()
	reply(
		w, 200,
		map[string]any{"apiVersion": gv, "kind": "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items},
	)
}

// fieldsOf returns the fields that a list's field selector can use.
func fieldsOf(o *unstructured.Unstructured) fields.Set {
	set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	if o.GetKind() == "Event" {
		set["type"], _, _ = unstructured.NestedString(o.Object, "type")
		set["reason"], _, _ = unstructured.NestedString(o.Object, "reason")
		set["involvedObject.kind"], _, _ = unstructured.NestedString(o.Object, "involvedObject", "kind")
		set["involvedObject.name"], _, _ = unstructured.NestedString(o.Object, "involvedObject", "name")
	}
	return set
}

// parsePath parses /api/v1/namespaces/x/pods/y and similar paths. The bool is true for a single object.
func parsePath(path string) (*authorizationv1.ResourceAttributes, bool) {
	p := strings.Split(strings.Trim(path, "/"), "/")
	a := &authorizationv1.ResourceAttributes{}
	if p[0] == "apis" && len(p) > 2 {
		a.Group, p = p[1], p[1:]
	}
	if len(p) > 1 {
		a.Version, p = p[1], p[2:]
	}
	if len(p) > 2 && p[0] == "namespaces" {
		a.Namespace, p = p[1], p[2:]
	}
	if len(p) > 0 {
		a.Resource = p[0]
	}
	if len(p) > 1 {
		a.Name = p[1]
	}
	return a, a.Name != ""
}

func reply(w http.ResponseWriter, code int, v any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	st := metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
	st.APIVersion, st.Kind = "v1", "Status"
	if reason == metav1.StatusReasonNotFound {
		st.Details = &metav1.StatusDetails{Name: message}
	}
	reply(w, int(code), st)
}
